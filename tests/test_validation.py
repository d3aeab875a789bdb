"""What is refused, and in which words."""

from fractions import Fraction

import numpy as np
import pytest

from manyhands import Annotations
from manyhands.exceptions import AlignmentError, AnnotationError, ParameterError
from manyhands.validation import (
    Number,
    OneOf,
    Probabilities,
    RandomState,
    check_annotations,
    check_codes,
    check_known,
    check_parameters,
    check_same_length,
)

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    "constraint, allowed, refused",
    [
        (
            Number(least=0),
            [0, 0.5, 3, np.float32(1), np.int8(2), Fraction(1, 2)],
            [-1e-9, NAN, INF, "1", None, True, 1j, 10**400, Fraction(10**400)],
        ),
        (Number(whole=True, least=1), [1, np.int64(7)], [0, 1.0, 1.5, -1, False, np.True_]),
        (Number(above=0, most=1), [1e-9, 1, 1.0], [0, 1.1, -INF]),
        (OneOf(("a", None, True)), ["a", None, True], ["b", 1, [], NAN]),
        (
            Probabilities(("uniform",)),
            ["uniform", [0.5, 0.5], np.array([1, 2, 3]), (1,)],
            ["even", [], [0, 1], [-1, 2], [NAN, 1], [INF, 1], [[1, 2]], [[1], [1, 2]], None, {}, 3, [10**400]],
        ),
        (
            RandomState(),
            [None, 0, 7, np.int64(3), np.random.default_rng(0), np.random.SeedSequence(1)],
            [-1, 1.5, "0", True, np.random.RandomState(0)],
        ),
    ],
    ids=lambda value: "" if isinstance(value, list) else str(value),
)
def test_constraints_allow_and_refuse(constraint, allowed, refused):
    """Each constraint draws its line where its sentence says."""
    assert all(constraint.allows(value) for value in allowed)
    assert not any(constraint.allows(value) for value in refused), [v for v in refused if constraint.allows(v)]


@pytest.mark.parametrize(
    "constraint, sentence",
    [
        (Number(), "a number"),
        (Number(whole=True, least=1), "a whole number at least 1"),
        (Number(above=0, most=1), "a number above 0 and at most 1"),
        (OneOf(("a", None)), "one of 'a', None"),
        (Probabilities(("uniform",)), "one of 'uniform' or a positive number for each class"),
    ],
)
def test_constraints_say_what_they_want(constraint, sentence):
    """The sentence completes `must be`."""
    assert str(constraint) == sentence


def test_a_parameter_is_refused_by_name():
    """What was wrong, what came."""
    with pytest.raises(ParameterError, match=r"'tol' of Thing must be a number at least 0. Got -1"):
        check_parameters("Thing", {"tol": -1}, {"tol": Number(least=0)})
    check_parameters("Thing", {"tol": 0, "free": object()}, {"tol": Number(least=0)})


def test_lengths_are_compared():
    """The message counts each column."""
    check_same_length({"items": [1], "workers": (2,)})
    with pytest.raises(AlignmentError, match="there are 1 items, 2 workers"):
        check_same_length({"items": [1], "workers": [1, 2]})


def test_codes_lie_in_their_range():
    """No code below 0 or beyond the ids; an empty column of any type is fine."""
    assert check_codes([], 0, "item").dtype == np.int32
    assert check_codes(np.array([0, 2], np.uint8), 3, "item").tolist() == [0, 2]
    for bad in ([3], [-1], [0.5], [[0]], ["0"]):
        with pytest.raises(AnnotationError, match="item codes must"):
            check_codes(bad, 3, "item")


def test_annotations_are_asked_for():
    """A list is refused with the way to build annotations; so is a crowd that said nothing."""
    with pytest.raises(AnnotationError, match=r"not as list. Build them with Annotations.from_triples"):
        check_annotations([[0, 1]])
    with pytest.raises(AnnotationError, match="not a single label"):
        check_annotations(Annotations.from_matrix([[-1]]))


def test_unknown_values_are_listed_but_not_all():
    """Five are shown, the rest is counted."""
    with pytest.raises(AnnotationError, match=r"Things not known: 5, 6, 7, 8, 9 and 2 more. Do so."):
        check_known(range(12), range(5), "Things", "Do so.")
    check_known([1, 2], {1, 2, 3}, "Things", "")


@pytest.mark.parametrize("value", [10**400, -(10**5000)], ids=["printable", "unprintable"])
def test_numbers_beyond_all_bounds_are_refused_in_a_sentence(value):
    """Python itself will not print the second one."""
    with pytest.raises(ParameterError, match=r"'tol' of Model must be a number at least 0\. Got "):
        check_parameters("Model", {"tol": value}, {"tol": Number(least=0)})
