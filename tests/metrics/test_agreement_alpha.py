"""Krippendorff's alpha: the published example, the krippendorff library, plain loops with repeated labels."""

from itertools import permutations

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from manyhands import Annotations
from manyhands.exceptions import AlignmentError, AnnotationError, LimitError, ParameterError
from manyhands.metrics import agreement as module
from manyhands.metrics import class_agreement, krippendorff_alpha
from strategies import annotations, triples_of

LEVELS = ["nominal", "ordinal", "interval"]
NONE = np.nan
OBSERVERS = np.array(  # four workers x twelve items
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NONE, NONE, NONE],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NONE, 3],
        [NONE, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NONE],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NONE],
    ]
)


def alpha_of(votes, level="nominal", values=None):
    return krippendorff_alpha(votes, level, values, n_bootstrap=0).value


def slow_alpha(votes, level, numbers):
    """Coincidences of all pairs of workers, by plain loops; None where it is undefined."""
    n_classes = votes.n_classes
    labels_of = {}
    for item, worker, label in triples_of(votes):
        labels_of.setdefault(item, {}).setdefault(worker, []).append(label)
    together = np.zeros((n_classes, n_classes))
    for workers in labels_of.values():
        for one, other in permutations(workers.values(), 2):
            for c in one:
                for k in other:
                    together[c, k] += 1 / len(one) / len(other) / (len(workers) - 1)
    total = together.sum(axis=1)
    apart = np.zeros((n_classes, n_classes))
    for c in range(n_classes):
        for k in range(c):
            ordinal = total[k : c + 1].sum() - (total[c] + total[k]) / 2
            distance = {"nominal": 1, "ordinal": ordinal**2, "interval": (numbers[c] - numbers[k]) ** 2}[level]
            apart[c, k] = apart[k, c] = distance
    expected = np.sum(np.outer(total, total) * apart)
    return None if expected == 0 else 1 - (total.sum() - 1) * np.sum(together * apart) / expected


@pytest.mark.parametrize("level, expected", [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_published_example(level, expected):
    """Four observers, twelve units, missing cells; one unit has a single label and drops out."""
    found = krippendorff_alpha(Annotations.from_matrix(OBSERVERS.T), level)
    assert found.value == pytest.approx(expected, abs=5e-4)
    assert (found.n_items, found.n_labels) == (11, 40)
    assert found.low < found.value < found.high <= 1


@pytest.mark.parametrize("level", LEVELS)
@given(table=st.lists(st.lists(st.integers(0, 4), min_size=4, max_size=4), min_size=2, max_size=12))
def test_alpha_is_that_of_the_krippendorff_library(level, table):
    """0 is a missing cell; the others are the numbers 1, 2, 4 and 8."""
    matrix = np.array([np.nan, 1, 2, 4, 8])[np.array(table)]
    pairable = matrix[np.sum(~np.isnan(matrix), axis=1) > 1]
    assume(len(np.unique(pairable[~np.isnan(pairable)])) > 1)
    votes = Annotations.from_matrix(matrix)
    expected = krippendorff.alpha(reliability_data=matrix.T, level_of_measurement=level)
    assert alpha_of(votes, level) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("level", LEVELS)
@given(votes=annotations())
def test_alpha_is_that_of_plain_loops(level, votes):
    """Also where workers labelled an item several times, and with classes without labels."""
    numbers = [0.3, 1.0, 1.5, 7.0, -2.0][: votes.n_classes]
    if level == "ordinal":
        numbers.sort()  # the loops take the classes in their order
    found = alpha_of(votes, level, None if level == "nominal" else numbers)
    expected = slow_alpha(votes, level, numbers)
    assert np.isnan(found) if expected is None else found == pytest.approx(expected, abs=1e-9)


@given(votes=annotations())
def test_each_class_is_alpha_against_the_rest(votes):
    """The same as alpha after all other classes were merged."""
    found = class_agreement(votes, n_bootstrap=0)
    for k in range(votes.n_classes):
        merged = Annotations(
            votes.item,
            votes.worker,
            (votes.label == k).astype(int),
            item_ids=votes.item_ids,
            worker_ids=votes.worker_ids,
            classes=[0, 1],
        )
        expected = krippendorff_alpha(merged, n_bootstrap=0)
        assert found.value[k] == pytest.approx(expected.value, abs=1e-12, nan_ok=True)


def test_each_class_has_an_interval_and_a_number():
    """The rare class has the lowest alpha; a class without labels is undefined, and so are its bounds."""
    matrix = [[0, 0, 0]] * 20 + [[1, 1, 1]] * 15 + [[2, 0, 0], [2, 2, 1], [1, 2, 1]]
    found = class_agreement(Annotations.from_matrix(matrix, classes=[0, 1, 2, 3]))
    assert np.nanargmin(found.value) == 2 and found.n_labels.tolist() == [62, 48, 4, 0]
    assert np.all(found.low[:3] <= found.value[:3]) and np.all(found.value[:3] <= found.high[:3])
    assert np.isnan([found.value[3], found.low[3], found.high[3]]).all()


def test_one_class_is_undefined_against_others():
    """All labels name the class: undefined."""
    found = class_agreement(Annotations.from_matrix([[0, 0], [0, 0]]))
    assert np.isnan(found.value).all() and np.isnan(found.low).all()


def test_many_classes_times_many_resamples_are_refused(monkeypatch):
    """The message gives a number of resamples that is allowed."""
    monkeypatch.setattr(module, "_MAX_NUMBERS", 100)
    with pytest.raises(LimitError, match="n_bootstrap=50"):
        class_agreement(Annotations.from_matrix([[0, 1]]))


@pytest.mark.parametrize("level", ["ordinal", "interval"])
def test_text_that_reads_as_numbers_is_numbers(level):
    """The text "10" is above "9", against alphabetical order; "2" and "2.0" are one point of the scale."""
    numbers = np.array([[9, 10], [10, 10], [2, 9], [2, 2], [2, 10]])
    expected = alpha_of(Annotations.from_matrix(numbers), level)
    as_text = np.array([["9", "10"], ["10", "10"], ["2", "9"], ["2", "2.0"], ["2.0", "10"]], object)
    assert alpha_of(Annotations.from_matrix(as_text), level) == pytest.approx(expected, abs=1e-12)


def test_the_caller_gives_the_order():
    """As classes from low to high, as numbers by class, or as numbers in the order of the classes."""
    words = np.array([["low", "mid"], ["mid", "mid"], ["high", "mid"], ["low", "low"], ["low", "low"]], object)
    code = {"low": 0, "mid": 1, "high": 2}
    expected = alpha_of(Annotations.from_matrix(np.vectorize(code.get)(words)), "ordinal")
    votes = Annotations.from_matrix(words)
    assert votes.classes.tolist() == ["high", "low", "mid"]
    for values in (["low", "mid", "high"], {"low": 1, "mid": 5, "high": 6}, [9, -1, 0.5], np.array([2, 0, 1])):
        assert alpha_of(votes, "ordinal", values) == pytest.approx(expected)
    assert alpha_of(votes, "ordinal", ["mid", "low", "high"]) != pytest.approx(expected)


def test_numbers_by_class_make_an_interval():
    """Words with distances; shifting and scaling the numbers changes nothing."""
    votes = Annotations.from_matrix(np.array([["a", "b"], ["c", "c"], ["a", "a"], ["b", "c"]], object))
    expected = alpha_of(Annotations.from_matrix([[0, 1], [5, 5], [0, 0], [1, 5]]), "interval")
    assert alpha_of(votes, "interval", [0, 1, 5]) == pytest.approx(expected)
    assert alpha_of(votes, "interval", [1e9, 1e9 + 1, 1e9 + 5]) == pytest.approx(expected)
    assert alpha_of(votes, "interval", {"a": -1e308, "b": -0.6e308, "c": 1e308}) == pytest.approx(expected)


@pytest.mark.parametrize("level", ["ordinal", "interval"])
def test_equal_numbers_are_one_class(level):
    """Two classes at one point of the scale: undefined, as with one class."""
    found = krippendorff_alpha(Annotations.from_matrix([[0, 1], [1, 0]]), level, [3, 3])
    assert np.isnan(found.value) and "one class" in found.reason


@pytest.mark.parametrize("level", ["ordinal", "interval"])
def test_undefined_levels_are_undefined_too(level):
    """Without a label, and without a pair."""
    assert "two workers" in krippendorff_alpha(Annotations.from_triples([], [], []), level).reason
    assert "two workers" in krippendorff_alpha(Annotations.from_matrix([[1, -1], [-1, 2]]), level).reason


WORDS = Annotations.from_matrix(np.array([["low", "high"], ["low", "low"]], object))


@pytest.mark.parametrize(
    "level, values, error, message",
    [
        ("ratio", None, ParameterError, "one of 'nominal', 'ordinal', 'interval'"),
        ("nominal", [1, 2], ParameterError, "`values`.*nominal"),
        ("ordinal", None, ParameterError, "one is 'high'; give values=, the classes from low to high"),
        ("interval", None, ParameterError, "one is 'high'; give values=, a number for each"),
        ("interval", ["low", "high"], ParameterError, "values that are numbers"),
        ("interval", [1, 2, 3], AlignmentError, "2 classes, but 3 values"),
        ("interval", {"low": 1}, AnnotationError, "without a value are not known: 'high'"),
        ("interval", {"low": 1, "high": "much"}, ParameterError, "class 'high' must be a finite number. Got 'much'"),
        ("interval", [1, np.inf], ParameterError, "finite number"),
        ("ordinal", ["low", "low"], ParameterError, "each class once"),
        ("ordinal", ["low", "mid"], AnnotationError, "without a place in values are not known: 'high'"),
        ("ordinal", 7, AnnotationError, "must be a column"),
    ],
)
def test_undefined_scales_are_refused(level, values, error, message):
    """One sentence each."""
    with pytest.raises(error, match=message):
        krippendorff_alpha(WORDS, level, values)


def test_classes_without_labels_need_no_number():
    """A class "other" in the list does not hinder a scale."""
    votes = Annotations.from_matrix(np.array([["1", "2"], ["2", "2"]], object), classes=["1", "2", "other"])
    assert alpha_of(votes, "interval") == pytest.approx(0)
