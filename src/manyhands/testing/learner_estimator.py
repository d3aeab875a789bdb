"""What makes anything that learns from features an estimator: its parameters, and that a second fit is a first one."""

from __future__ import annotations

from typing import Any

from manyhands.parameters import Parameters
from manyhands.testing.compare import assert_equal, other_values, quietly, results_of
from manyhands.testing.crowds import feature_crowd
from manyhands.testing.estimator import (
    assert_bad_values_are_refused,
    assert_clones_and_reprs_are_alike,
    assert_parameters_are_read,
    check_every_parameter_is_documented,
)
from manyhands.testing.learners import learn, output, quick

__all__ = ["check_every_parameter_is_documented"]  # the promise of an aggregator too


def check_clone_and_repr_round_trip(method: Parameters) -> None:
    """scikit-learn can clone it, `repr` shows how to make it again, and `set_params` refuses what is unknown."""
    others: Any = (quick(method, **{name: value}) for name, value in other_values(method).items())
    assert_clones_and_reprs_are_alike(learn(method, *feature_crowd(2)[:2]), [method, *others])


def check_every_parameter_is_validated(method: Parameters) -> None:
    """Every constructor parameter has a constraint, and `fit` refuses what the constraint forbids, by its name."""
    assert_bad_values_are_refused(quick(method), *feature_crowd(2)[:2])


def check_every_parameter_is_read(method: Parameters) -> None:
    """`fit` reads every constructor parameter, beyond the check that its value is legal."""
    assert_parameters_are_read(quick(method), *feature_crowd(2)[:2])


def check_a_second_fit_forgets_the_first(method: Parameters) -> None:
    """Fitting again gives what a fresh copy gives, and nothing is left of the first fit."""
    first, second = feature_crowd(3), feature_crowd(2, n_features=3, seed=1)
    twice = learn(method, *first[:2])
    twice.left_over_ = "a result that only the first fit had"
    quietly(lambda: twice.fit(*second[:2]))
    once = learn(method, *second[:2])
    assert results_of(once).keys() == results_of(twice).keys(), "something is left of the first fit"
    assert_equal(output(twice, second[0]), output(once, second[0]), "the second fit remembers the first")
