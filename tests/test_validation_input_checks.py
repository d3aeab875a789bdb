"""Checks of inputs, and the messages of their errors."""

import numpy as np
import pytest

from manyhands import Annotations
from manyhands._core.system import check_memory
from manyhands.exceptions import AlignmentError, AnnotationError, LimitError, ParameterError
from manyhands.validation import (
    NameOr,
    NoneOr,
    Number,
    OneOf,
    check_annotations,
    check_codes,
    check_known,
    check_parameters,
    check_same_length,
)

pytestmark = pytest.mark.fast


def test_a_parameter_is_refused_by_name():
    """The message states what was wrong and which value came."""
    with pytest.raises(ParameterError, match=r"`tol` of Thing must be a number at least 0. Got -1"):
        check_parameters("Thing", {"tol": -1}, {"tol": Number(least=0)})
    check_parameters("Thing", {"tol": 0, "free": object()}, {"tol": Number(least=0)})


def test_lengths_are_compared():
    """The message states the length of each column."""
    check_same_length({"items": [1], "workers": (2,)})
    with pytest.raises(AlignmentError, match="there are 1 items, 2 workers"):
        check_same_length({"items": [1], "workers": [1, 2]})


def test_codes_lie_in_their_range():
    """No code is below 0 or beyond the ids; an empty column of any type is allowed."""
    assert check_codes([], 0, "item").dtype == np.int32
    assert check_codes(np.array([0, 2], np.uint8), 3, "item").tolist() == [0, 2]
    for bad in ([3], [-1], [0.5], [[0]], ["0"]):
        with pytest.raises(AnnotationError, match="item codes must"):
            check_codes(bad, 3, "item")


def test_annotations_are_required():
    """A list is refused with the way to build annotations; so are annotations without a label."""
    with pytest.raises(AnnotationError, match=r"not as list. Build them with Annotations.from_triples"):
        check_annotations([[0, 1]])
    with pytest.raises(AnnotationError, match="not a single label"):
        check_annotations(Annotations.from_matrix([[-1]]))


def test_unknown_values_are_listed_up_to_five():
    """Five are shown, the rest is counted."""
    with pytest.raises(AnnotationError, match=r"Things not known: 5, 6, 7, 8, 9 and 2 more. Do so."):
        check_known(range(12), range(5), "Things", "Do so.")
    check_known([1, 2], {1, 2, 3}, "Things", "")


@pytest.mark.parametrize("value", [10**400, -(10**5000)], ids=["printable", "unprintable"])
def test_numbers_beyond_floats_are_refused_with_a_message(value):
    """Python itself refuses to print the second one."""
    with pytest.raises(ParameterError, match=r"`tol` of Model must be a number at least 0\. Got "):
        check_parameters("Model", {"tol": value}, {"tol": Number(least=0)})


def test_more_memory_than_there_is_is_refused():
    check_memory(1, "These bytes", "Use fewer.")
    with pytest.raises(LimitError, match=r"These bytes need about 1000000000 GB; there are .* GB\. Use fewer\."):
        check_memory(1e18, "These bytes", "Use fewer.")


@pytest.mark.parametrize(
    ("unknown", "known", "expected"),
    [
        ("Cat", ["cat", "dog"], "Did you mean 'cat'?"),
        ("1", [1, 2], "Did you mean 1 (int, not str)?"),
        (1, ["1", "2"], "Did you mean '1' (str, not int)?"),
        ("zebra", ["cat", "dog"], None),
        ("Cat", [f"cat{i}" for i in range(6000)], None),
    ],
)
def test_unknown_values_name_the_nearest(unknown, known, expected):
    with pytest.raises(AnnotationError) as refused:
        check_known([unknown], known, "Gold classes", "Do so.")
    shown = f" {expected}" if expected else ""
    assert str(refused.value) == f"Gold classes not known: {unknown!r}.{shown} Do so."


def test_bad_names_as_parameters_name_the_nearest():
    """Whatever lists names: one of some, a name or an object, and both with None."""
    for constraint in (OneOf(("mean", None)), NameOr(("mean",), "fit", "a model"), NoneOr(OneOf(("mean", "sum")))):
        with pytest.raises(ParameterError, match=r"Got 'maen'\. Did you mean 'mean'\?$"):
            check_parameters("f", {"a": "maen"}, {"a": constraint})
    with pytest.raises(ParameterError, match=r"Got 'x'\.$"):
        check_parameters("f", {"a": "x"}, {"a": Number()})
