"""Probabilities against truth: worked by hand, scikit-learn's log loss, and independence of the order of rows."""

import numpy as np
import pytest
from hypothesis import given
from sklearn import metrics as reference

from manyhands.exceptions import AlignmentError, AnnotationError, ParameterError
from manyhands.metrics import brier, ece, log_loss
from strategies import probability_rows, seeds

ALL = [log_loss, brier, ece]
CLASSES = ["cat", "dog", "emu"]
P = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]])


@given(seeds())
def test_log_loss_is_that_of_scikit_learn(seed):
    """Also with a class that never is the truth, columns in any order, and zeros."""
    rng = np.random.default_rng(seed)
    p, truth = probability_rows(rng, 12, 4), rng.integers(0, 3, 12)
    p[0] = [0, 0, 0, 1]
    expected = reference.log_loss(truth, p, labels=[0, 1, 2, 3])
    assert log_loss(truth, p, [0, 1, 2, 3]) == pytest.approx(expected)
    assert log_loss(truth, p[:, ::-1], [3, 2, 1, 0]) == pytest.approx(expected)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_zero_for_the_truth_costs_as_much_as_in_scikit_learn(kind):
    """-log of the eps of the type."""
    p = np.array([[1, 0], [0.5, 0.5]], kind)
    assert log_loss([1, 1], p, [0, 1]) == pytest.approx((-np.log(np.finfo(kind).eps) + np.log(2)) / 2)
    assert log_loss([1, 1], p, [0, 1]) == pytest.approx(reference.log_loss([1, 1], p, labels=[0, 1]))


def test_brier_by_hand():
    """Squares summed over classes: .09 + .04 + .01, then .01 + .36 + .49, then all on a wrong class."""
    assert brier(["cat"], P[:1], CLASSES) == pytest.approx(0.14)
    assert brier(["cat", "emu"], P[:2], CLASSES) == pytest.approx((0.14 + 0.86) / 2)
    assert brier(["cat"], [[0, 0, 1]], CLASSES) == 2
    assert brier(["emu"], [[0, 0, 1]], CLASSES) == 0


def test_ece_by_hand():
    """Four items in two bins: confidences .55, .65 (one right) and .9, .96 (both right)."""
    confidence = np.array([0.9, 0.55, 0.96, 0.65])
    p = np.stack([confidence, 1 - confidence], axis=1)
    truth = [0, 0, 0, 1]
    assert ece(truth, p, [0, 1], n_bins=2) == pytest.approx(0.5 * abs(0.6 - 0.5) + 0.5 * abs(0.93 - 1))
    assert ece(truth, p, [0, 1], n_bins=1) == pytest.approx(abs(0.765 - 0.75))
    assert ece(truth, p, [0, 1], n_bins=99) == pytest.approx(np.mean([0.1, 0.45, 0.04, 0.65]))


@given(seeds())
def test_ece_without_ties_is_a_mean_over_parts_of_equal_size(seed):
    """Against the plain form: sort, cut, compare."""
    rng = np.random.default_rng(seed)
    p, truth = probability_rows(rng, 57, 3), rng.integers(0, 3, 57)
    confidence, right = p.max(axis=1), p.argmax(axis=1) == truth
    parts = np.array_split(np.argsort(confidence), 10)
    gaps = [abs(confidence[part].mean() - right[part].mean()) * len(part) for part in parts]
    assert ece(truth, p, [0, 1, 2]) == pytest.approx(sum(gaps) / 57)


@given(seeds())
def test_order_of_rows_and_of_columns_does_not_matter(seed):
    """Even where nearly all confidences are tied, as in vote shares."""
    rng = np.random.default_rng(seed)
    p = rng.permuted(np.array([[0.6, 0.4, 0], [0.8, 0.2, 0], [1, 0, 0]])[rng.integers(0, 3, 40)], axis=1)
    truth, order, columns = rng.integers(0, 3, 40), rng.permutation(40), rng.permutation(3)
    for figure in ALL:
        expected = pytest.approx(figure(truth, p, [0, 1, 2]), abs=1e-12)
        assert figure(truth[order], p[order], [0, 1, 2]) == expected
        assert figure(truth, p[:, columns], columns) == expected


def test_ties_that_two_bins_share_count_in_both_with_their_mean():
    """Three confidences of .8, two of them right, in two bins: every order gives |.8 - 2/3|."""
    p = [[0.8, 0.2]] * 3
    for truth in ([0, 0, 1], [0, 1, 0], [1, 0, 0]):
        assert ece(truth, p, [0, 1], n_bins=2) == pytest.approx(0.8 - 2 / 3)


def test_rounded_rows_are_probabilities():
    """A table written with four digits does not sum to 1 exactly."""
    assert brier([0], [[0.3333, 0.3333, 0.3333]], [0, 1, 2]) == pytest.approx(2 / 3, abs=1e-3)


@pytest.mark.parametrize("figure", ALL)
@pytest.mark.parametrize(
    "truth, p, classes, error, said",
    [
        (["cat"], P, CLASSES, AlignmentError, r"need probabilities of shape \(1, 3\); they have \(3, 3\)"),
        (["cat"], [0.5, 0.5], ["cat", "dog"], AlignmentError, "they have"),
        (["cat", "cow"], P[:2], CLASSES, AnnotationError, "truth 'cow' in row 1 is not among the classes"),
        (["cat", None], P[:2], CLASSES, AnnotationError, "row 1 is missing"),
        (["cat"], P[:1], ["cat", "dog", "cat"], AnnotationError, "occurs twice"),
        ([], np.zeros((0, 3)), CLASSES, AnnotationError, "no item with truth"),
        (["cat", "dog"], [[1, 0, 0], [np.nan, 0, 1]], CLASSES, ParameterError, "Row 1 is not a row of prob"),
        (["cat"], [[1.5, -0.5, 0]], CLASSES, ParameterError, "Row 0"),
        (["cat"], [[1.0005, -0.0005, 0]], CLASSES, ParameterError, "Row 0"),
        (["cat"], [[0.5, 0.4, 0]], CLASSES, ParameterError, "sum to 1: 0.5, 0.4, 0"),
        (["cat"], [["a", "b", "c"]], CLASSES, ParameterError, "must be numbers"),
        (["cat", "dog"], [[1, 0, 0], [1]], CLASSES, ParameterError, "rows of equal length"),
    ],
)
def test_what_cannot_be_used(figure, truth, p, classes, error, said):
    """One sentence each."""
    with pytest.raises(error, match=said):
        figure(truth, p, classes)


@pytest.mark.parametrize("n_bins", [0, 2.5, "ten", None])
def test_bins_are_a_whole_number(n_bins):
    """And at least one."""
    with pytest.raises(ParameterError, match="n_bins"):
        ece(["cat"], P[:1], CLASSES, n_bins=n_bins)
