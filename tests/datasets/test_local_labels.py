"""Columns of items, workers, labels and truth become annotations."""

import numpy as np
import pytest

from manyhands.datasets.local import as_column, build
from manyhands.exceptions import AlignmentError, AnnotationError


def test_arrays_of_text_become_integers_too():
    assert as_column(np.array(["266", "9"])).tolist() == [266, 9]
    assert as_column(np.array([1, 2], np.int8)).dtype == np.int64


def columns(*rows):
    return [as_column(np.array(column)) for column in zip(*rows)]


def test_the_last_label_of_a_pair_stands_and_rows_lead_back():
    table = columns((2, 7, 0), (1, 7, 1), (2, 7, 1), (2, 8, 0), (1, 7, 0))
    annotations, y_true, rows = build(table, None, None, "last", "votes")
    assert y_true is None
    assert rows.tolist() == [4, 2, 3]
    assert annotations.label.tolist() == [0, 1, 0]
    everything, _, all_rows = build(table, None, None, "all", "votes")
    assert everything.n_annotations == 5
    assert table[2][all_rows].tolist() == everything.classes[everything.label].tolist()
    assert table[0][all_rows].tolist() == everything.item_ids[everything.item].tolist()


def test_truth_is_in_line_and_brings_items_and_classes_of_its_own():
    truth = columns((3, 5), (1, 0))
    annotations, y_true, _ = build(columns((2, 7, 0), (1, 7, 1)), truth, None, "last", "votes")
    assert annotations.item_ids.tolist() == [1, 2, 3]
    assert annotations.classes.tolist() == [0, 1, 5]
    assert y_true.tolist() == [0, -1, 5]
    text = build(columns((2, 7, "cat")), columns((1, "dog")), None, "last", "votes")[1]
    assert text.tolist() == ["dog", None]


def test_features_decide_the_order_of_items():
    annotations, _, _ = build(columns((2, 7, 0), (1, 7, 1)), None, np.array([9, 2, 1]), "last", "votes")
    assert annotations.item_ids.tolist() == [9, 2, 1]
    assert annotations.n_labels.tolist() == [0, 1, 1]


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(AlignmentError, match="votes has items that its features lack"):
        build(columns((2, 7, 0)), None, np.array([1]), "last", "votes")
    with pytest.raises(AnnotationError, match="one is numbers, the other is text"):
        build(columns((2, 7, 0)), columns((2, "cat")), None, "last", "votes")
