"""The imbalance ratio: of labels, of counts, of annotations."""

from collections import Counter

import numpy as np
import pytest

from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.metrics import imbalance_ratio


def test_by_hand():
    """(400 - 100) / 700, and the papers' two ends."""
    assert imbalance_ratio({"a": 100, "b": 200, "c": 400}) == pytest.approx(3 / 7)
    assert imbalance_ratio(["a", "b"] * 5) == 0
    assert imbalance_ratio(["a"] * 5, classes=["a", "b"]) == 1


def test_labels_and_their_counts_give_the_same():
    """Also where labels are numbers, as an array, and where some items have none."""
    labels = [1, 1, 2, 3, 3, 3]
    assert imbalance_ratio(labels) == imbalance_ratio(np.array(labels)) == imbalance_ratio(Counter(labels)) == 2 / 6
    assert imbalance_ratio([*labels, None, float("nan")]) == 2 / 6


def test_classes_nobody_chose_count_as_zero(votes):
    """Where the classes are given; annotations know theirs: three cats, one dog, no emu."""
    assert imbalance_ratio(["a", "a", "b"]) == pytest.approx(1 / 3)
    assert imbalance_ratio(["a", "a", "b"], classes=["a", "b", "c"]) == pytest.approx(2 / 3)
    assert imbalance_ratio(votes) == 3 / 4


@pytest.mark.parametrize(
    "given, classes, error, said",
    [
        ([], None, AnnotationError, "not a single label"),
        ([None], ["a"], AnnotationError, "not a single label"),
        ({"a": 0}, None, AnnotationError, "not a single label"),
        (["a", "b"], ["a"], AnnotationError, "Classes not known: 'b'"),
        ({"a": -1}, None, ParameterError, "count of class 'a' must be a number at least 0. Got -1"),
        ({"a": float("nan")}, None, ParameterError, "Got nan"),
        ({"a": "many"}, None, ParameterError, "Got 'many'"),
    ],
)
def test_what_cannot_be_counted(given, classes, error, said):
    """One sentence each."""
    with pytest.raises(error, match=said):
        imbalance_ratio(given, classes)
