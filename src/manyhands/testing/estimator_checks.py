"""Aggregators as estimators of scikit-learn: parameters, clones, pickles, repeated fits."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any
from unittest.mock import patch

from manyhands import registry
from manyhands.aggregation.base import Aggregator
from manyhands.exceptions import ParameterError
from manyhands.options import OptionGroup, with_nested_options
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
    with_unlabelled,
)


def check_clone_and_repr_round_trip(aggregator: Aggregator) -> None:
    """scikit-learn can clone the estimator, `repr` reproduces it, and `set_params` refuses unknown parameters.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    others = (copy_of(aggregator, **{name: value}) for name, value in other_values(aggregator).items())
    assert_clones_and_reprs_are_equal(fit(aggregator, easy_crowd(2)[0]), others)


def check_copies_are_equal(aggregator: Aggregator) -> None:
    """A pickled copy and a saved and loaded copy have the same results and give bit-identical predictions.

    A method that is not registered cannot be saved, so only its pickled copy is checked.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    votes = with_unlabelled(easy_crowd(n_classes_for(aggregator, 3))[0])
    fitted = fit(aggregator, votes, {votes.item_ids[0]: votes.classes[0]})
    others = easy_crowd(n_classes_for(aggregator, 3), seed=1)[0]
    for again in _copies(fitted):
        assert type(again) is type(fitted) and repr(again) == repr(fitted), "a copy has another type or parameters"
        assert_same_results(fitted, again, "results of a copy differ")
        assert again.annotations_ == fitted.annotations_, "the annotations of a copy differ"
        for labels in (votes, others):
            assert_equal(again.predict_proba(labels), fitted.predict_proba(labels), "predictions of a copy differ")
            assert again.score(labels) == fitted.score(labels), "the score of a copy differs"


def _copies(fitted: Any) -> Iterator[Any]:
    """Yield a pickled copy, and a saved one where the method is registered."""
    from manyhands.persistence.models import load_model

    yield pickle.loads(pickle.dumps(fitted))
    if registry.name_of(type(fitted)) is not None:
        with tempfile.TemporaryDirectory() as folder:
            fitted.save(Path(folder) / "model")
            yield load_model(Path(folder) / "model")


def check_second_fit_is_independent_of_the_first(aggregator: Aggregator) -> None:
    """A second fit gives the results of a fresh aggregator, and no attribute of the first fit is left.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    first, second = with_unlabelled(easy_crowd(n_classes_for(aggregator, 3))[0]), easy_crowd(2)[0]
    twice = fit(aggregator, first, {first.item_ids[0]: first.classes[0]})
    twice.left_over_ = "an attribute of the first fit only"
    quietly(lambda: twice.fit(second))
    once = fit(aggregator, second)
    assert_same_results(once, twice, "the second fit depends on the first")
    assert_equal(twice.predict_proba(second), once.predict_proba(second), "predictions depend on the first fit")


def check_every_parameter_is_validated(aggregator: Aggregator) -> None:
    """Every constructor parameter has a constraint, and `fit` raises a ParameterError that names the parameter.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    assert_bad_values_are_refused(copy_of(aggregator), easy_crowd(2)[0])


def check_every_parameter_is_read(aggregator: Aggregator) -> None:
    """`fit` reads every constructor parameter, apart from its validation.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.
    """
    assert_parameters_are_read(copy_of(aggregator), easy_crowd(2)[0])


def assert_clones_and_reprs_are_equal(fitted: Any, variants: Iterable[Any]) -> None:
    """Assert that a clone and the evaluated `repr` have the same parameters.

    Parameters
    ----------
    fitted : BaseEstimator
        A fitted estimator.
    variants : iterable of BaseEstimator
        Further estimators, with other parameters.
    """
    from sklearn.base import clone

    for original in (fitted, *variants):
        assert repr(clone(original).get_params()) == repr(original.get_params()), (
            f"clone changes the parameters of {original}"
        )
        groups = [type(value) for value in original.get_params(deep=False).values() if isinstance(value, OptionGroup)]
        again = eval(repr(original), {cls.__name__: cls for cls in (type(original), *groups)})
        assert repr(again.get_params()) == repr(original.get_params()), f"{original!r} does not reproduce itself"
    assert not results_of(clone(fitted)), "a clone has fitted attributes"
    error_of(lambda: clone(fitted).set_params(no_such_parameter=1), ParameterError)


def assert_bad_values_are_refused(method: Any, *data: Any) -> None:
    """Assert that `fit` refuses values that a constraint forbids, naming the parameter and before storing results.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted estimator.
    *data : object
        Arguments of `fit`.
    """
    parameters = method.get_params(deep=False)
    assert set(method._constraints) == set(parameters), "constraints and constructor parameters differ"
    for name, constraint in with_nested_options(parameters, method._constraints)[1].items():
        for bad in bad_values(constraint):
            broken = copy_of(method, **{name: bad})
            error = error_of(lambda: broken.fit(*data), ParameterError, f"{name}={bad!r}")  # noqa: B023
            assert repr(name) in str(error), f"the message does not name {name!r}: {error}"
            assert not results_of(broken), f"{name}={bad!r} was refused only after results were stored"


def assert_parameters_are_read(method: Any, *data: Any) -> None:
    """Assert that `fit` reads every constructor parameter, and every option of a group.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted estimator.
    *data : object
        Arguments of `fit`.
    """
    read: set[str] = set()

    class Spy(type(method)):  # type: ignore[misc]
        def _check_parameters(self) -> None:
            super()._check_parameters()
            read.clear()

        def __getattribute__(self, name: str) -> Any:
            read.add(name)
            return super().__getattribute__(name)

    def watch(parameter: str) -> Callable[[Any, str], Any]:
        def get(self: Any, name: str) -> Any:
            read.add(f"{parameter}__{name}")
            return object.__getattribute__(self, name)

        return get

    parameters = method.get_params(deep=False)
    groups = {name: type(value) for name, value in parameters.items() if isinstance(value, OptionGroup)}
    with ExitStack() as stack:
        for name, group in groups.items():
            stack.enter_context(patch.object(group, "__getattribute__", watch(name)))
        quietly(lambda: Spy(**parameters).fit(*data))
    options = {f"{name}__{field.name}" for name, group in groups.items() for field in fields(group)}  # type: ignore[arg-type]
    unread = (set(parameters) | options) - read
    assert not unread, f"fit never reads {sorted(unread)}"
