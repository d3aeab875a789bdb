"""What makes a method an estimator: parameters, copies, pickles."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any

from manyhands.aggregation.base import Aggregator
from manyhands.exceptions import ParameterError
from manyhands.testing.assertions import (
    assert_equal,
    assert_same_results,
    bad_values,
    copy_of,
    error_of,
    fit,
    n_classes_for,
    other_values,
    quietly,
    results_of,
)
from manyhands.testing.small_crowds import (
    easy_crowd,
    with_silence,
)


def check_clone_and_repr_round_trip(aggregator: Aggregator) -> None:
    """scikit-learn can clone it, `repr` shows how to make it again, and `set_params` refuses what is unknown."""
    others = (copy_of(aggregator, **{name: value}) for name, value in other_values(aggregator).items())
    assert_clones_and_reprs_are_alike(fit(aggregator, easy_crowd(2)[0]), others)


def check_pickle_round_trip(aggregator: Aggregator) -> None:
    """A fitted aggregator that was pickled and read again has the same results and predicts the same bits."""
    votes = with_silence(easy_crowd(n_classes_for(aggregator, 3))[0])
    fitted = fit(aggregator, votes, {votes.item_ids[0]: votes.classes[0]})
    again = pickle.loads(pickle.dumps(fitted))
    assert_same_results(fitted, again, "a pickle loses results")
    assert_equal(again.predict_proba(votes), fitted.predict_proba(votes), "a pickle predicts otherwise")
    assert again.score(votes) == fitted.score(votes), "a pickle scores otherwise"


def check_a_second_fit_forgets_the_first(aggregator: Aggregator) -> None:
    """Fitting again gives what a fresh aggregator gives, and nothing is left of the first fit."""
    first, second = with_silence(easy_crowd(n_classes_for(aggregator, 3))[0]), easy_crowd(2)[0]
    twice = fit(aggregator, first, {first.item_ids[0]: first.classes[0]})
    twice.left_over_ = "a result that only the first fit had"
    quietly(lambda: twice.fit(second))
    once = fit(aggregator, second)
    assert_same_results(once, twice, "the second fit remembers the first")
    assert_equal(twice.predict_proba(second), once.predict_proba(second), "predictions remember the first fit")


def check_every_parameter_is_validated(aggregator: Aggregator) -> None:
    """Every constructor parameter has a constraint, and `fit` refuses what the constraint forbids, by its name."""
    assert_bad_values_are_refused(copy_of(aggregator), easy_crowd(2)[0])


def check_every_parameter_is_read(aggregator: Aggregator) -> None:
    """`fit` reads every constructor parameter, beyond the check that its value is legal."""
    assert_parameters_are_read(copy_of(aggregator), easy_crowd(2)[0])


def assert_clones_and_reprs_are_alike(fitted: Any, variants: Iterable[Any]) -> None:
    """A clone and what `repr` shows have the same parameters, of a fitted one and of every variant."""
    from sklearn.base import clone

    for original in (fitted, *variants):
        assert repr(clone(original).get_params()) == repr(original.get_params()), f"clone changes {original}"
        again = eval(repr(original), {type(original).__name__: type(original)})
        assert repr(again.get_params()) == repr(original.get_params()), f"{original!r} does not make itself again"
    assert not results_of(clone(fitted)), "a clone keeps results"
    error_of(lambda: clone(fitted).set_params(no_such_parameter=1), ParameterError)


def assert_bad_values_are_refused(method: Any, *data: Any) -> None:
    """`fit(*data)` refuses what constraints forbid, by the parameter's name and before anything is stored."""
    constraints = method._constraints
    assert set(constraints) == set(method.get_params(deep=False)), "constraints and constructor parameters differ"
    for name, constraint in constraints.items():
        for bad in bad_values(constraint):
            broken = copy_of(method, **{name: bad})
            error = error_of(lambda: broken.fit(*data), ParameterError, f"{name}={bad!r}")  # noqa: B023
            assert repr(name) in str(error), f"the message does not name {name!r}: {error}"
            assert not results_of(broken), f"{name}={bad!r} was refused only after results were stored"


def assert_parameters_are_read(method: Any, *data: Any) -> None:
    """`fit(*data)` asks for every parameter of the method."""
    read: set[str] = set()

    class Spy(type(method)):  # type: ignore[misc]
        def _check_parameters(self) -> None:
            super()._check_parameters()
            read.clear()

        def __getattribute__(self, name: str) -> Any:
            read.add(name)
            return super().__getattribute__(name)

    parameters = method.get_params(deep=False)
    quietly(lambda: Spy(**parameters).fit(*data))
    unread = set(parameters) - read
    assert not unread, f"fit never reads {sorted(unread)}"
