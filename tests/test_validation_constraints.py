"""Constraints of parameters: what they allow, their messages, and the types that docstrings state."""

from fractions import Fraction

import numpy as np
import pytest

from manyhands.validation import (
    Boolean,
    Device,
    Folder,
    FractionOrCount,
    LayerSizes,
    NameOr,
    NoneOr,
    Number,
    OneOf,
    Probabilities,
    RandomState,
)

pytestmark = pytest.mark.fast

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
        (FractionOrCount(), [0.1, 1, 1.0, 7], [0, 1.5, -1, NAN, "1", None]),
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
        (NoneOr(Number()), [None, 1.5], ["1"]),
        (Boolean(), [True, False, np.True_], [0, 1, None, "yes"]),
        (LayerSizes(), [(), (1,), [3, 4]], [0, (0,), (1.5,), "12", None, (1,) * 101]),
        (Folder(), [None, "here"], [1, b"here"]),
        (Device(), ["auto", "cpu", "cuda:1"], ["gpu", "cuda:", None]),
        (NameOr(("mlp",), "__call__", "a function"), ["mlp", len, dict], ["cnn", 3, None]),
        (NameOr(("a",), "fit", "an estimator"), ["a"], [type("Model", (), {"fit": len}), object()]),
    ],
    ids=lambda value: "" if isinstance(value, list) else str(value),
)
def test_constraints_allow_and_refuse(constraint, allowed, refused):
    """Each constraint allows exactly what its message states."""
    assert all(constraint.allows(value) for value in allowed)
    assert not any(constraint.allows(value) for value in refused), [v for v in refused if constraint.allows(v)]


@pytest.mark.parametrize(
    "constraint, message, type_text",
    [
        (Number(), "a number", "float"),
        (Number(whole=True, least=1), "a whole number at least 1", "int"),
        (Number(above=0, most=1), "a number above 0 and at most 1", "float"),
        (OneOf(("a", None)), "one of 'a', None", '{"a", None}'),
        (
            Probabilities(("uniform",)),
            "one of 'uniform' or a positive number for each class",
            '{"uniform"} or array-like of shape (n_classes,)',
        ),
        (NoneOr(Number(whole=True)), "None or a whole number", "int or None"),
        (Boolean(), "True or False", "bool"),
        (LayerSizes(), "a tuple of at most 100 whole numbers at least 1", "tuple of int"),
        (NameOr(("a", "b"), "fit", "an Aggregator"), "one of 'a', 'b' or an Aggregator", '{"a", "b"} or an Aggregator'),
    ],
)
def test_constraints_have_a_message_and_a_type(constraint, message, type_text):
    """The message completes "must be"; the type is that of a numpydoc entry."""
    assert str(constraint) == message
    assert constraint.type_text == type_text
