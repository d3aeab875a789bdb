"""Accuracy and its relatives: scikit-learn's figures, items without label, and sentences for what cannot be used."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as reference

from manyhands.exceptions import AlignmentError, AnnotationError
from manyhands.metrics import accuracy, balanced_accuracy, macro_f1

pytestmark = pytest.mark.fast

ALL = [accuracy, balanced_accuracy, macro_f1]
TRUTH = ["cat", "dog", "dog", "emu"]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=30))
def test_figures_are_those_of_scikit_learn(pairs):
    """All three, where every item has a label."""
    truth, label = np.array(pairs).T
    recall = reference.recall_score(truth, label, labels=np.unique(truth), average="macro", zero_division=0)
    f1 = reference.f1_score(truth, label, average="macro", zero_division=0)
    assert accuracy(truth, label) == pytest.approx(reference.accuracy_score(truth, label))
    assert balanced_accuracy(truth, label) == pytest.approx(recall)
    assert macro_f1(truth, label) == pytest.approx(f1)


@pytest.mark.parametrize("nothing", [None, float("nan"), pd.NA, pd.NaT])
def test_an_item_without_label_is_wrong(nothing):
    """Right on two of four; recall 1, 1/2 and 0; F1 1, 2/3 and 0."""
    label = ["cat", nothing, "dog", nothing]
    assert accuracy(TRUTH, label) == 0.5
    assert balanced_accuracy(TRUTH, label) == 0.5
    assert macro_f1(TRUTH, label) == pytest.approx((1 + 2 / 3 + 0) / 3)


def test_no_label_at_all_is_zero():
    """Every item without label: all wrong, without a warning."""
    assert [figure(TRUTH, [None] * 4) for figure in ALL] == [0, 0, 0]


@pytest.mark.parametrize("figure", ALL)
def test_columns_of_any_kind(figure):
    """Lists, arrays, masked arrays, series and generators; text, numbers, booleans, tuples."""
    label = ["cat", "dog", "emu", "emu"]
    expected = figure(TRUTH, label)
    assert expected < 1
    codes = {"cat": 3, "dog": 1, "emu": 2}
    for kind in (np.array, pd.Series, tuple, iter, lambda x: np.array(x, object)):
        assert figure(kind(TRUTH), kind(label)) == expected
    assert figure([codes[t] for t in TRUTH], np.array([codes[t] for t in label], np.int8)) == expected
    assert figure([(t, 0) for t in TRUTH], [(t, 0) for t in label]) == expected
    assert figure([1.0, 0.0], [True, False]) == 1
    assert figure([1, 1], np.ma.MaskedArray([1, 1], [False, True])) < 1


@pytest.mark.parametrize("figure", ALL)
def test_order_of_rows_does_not_matter(figure):
    """To the last bit."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        truth, label = rng.integers(0, 7, (2, 200))
        order = rng.permutation(200)
        assert figure(truth[order], label[order]) == figure(truth, label)


@pytest.mark.parametrize("figure", ALL)
@pytest.mark.parametrize(
    "truth, label, error, message",
    [
        ([], [], AnnotationError, "no item with truth"),
        ([1, 2], [1], AlignmentError, "2 items with truth, but 1 predictions"),
        ([1, None], [1, 1], AnnotationError, "truth in row 1 is missing"),
        ([1.0, 2.0, float("nan")], [1, 1, 1], AnnotationError, "truth in row 2 is missing"),
        (["1", "2"], [1, 2], AlignmentError, "different types"),
        ([1, 2], ["1", None], AlignmentError, "different types"),
        (np.eye(2), [1, 2], AlignmentError, "one-dimensional"),
        ([[1], [2]], [1, 2], AnnotationError, "not hashable"),
        (3, [1], AnnotationError, "must be a column"),
    ],
)
def test_what_cannot_be_compared(figure, truth, label, error, message):
    """One sentence each."""
    with pytest.raises(error, match=message):
        figure(truth, label)
