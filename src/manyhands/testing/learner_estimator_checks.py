"""What makes anything that learns from features an estimator: parameters, second fits, copies and files."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

from manyhands.estimator import BaseEstimator
from manyhands.exceptions import ParameterError
from manyhands.testing.assertions import assert_equal, error_of, other_values, quietly, results_of
from manyhands.testing.estimator_checks import (
    assert_bad_values_are_refused,
    assert_clones_and_reprs_are_alike,
    assert_parameters_are_read,
)
from manyhands.testing.learners import brief, briefly, is_network, linear, output, quick
from manyhands.testing.small_crowds import feature_crowd


def check_clone_and_repr_round_trip(method: BaseEstimator) -> None:
    """scikit-learn can clone it, `repr` shows how to make it again, and `set_params` refuses what is unknown."""
    others: Any = (quick(method, **{name: value}) for name, value in other_values(method).items())
    assert_clones_and_reprs_are_alike(briefly(method, *feature_crowd(2)[:2]), [method, *others])


def check_every_parameter_is_validated(method: BaseEstimator) -> None:
    """Every constructor parameter has a constraint, and `fit` refuses what the constraint forbids, by its name."""
    assert_bad_values_are_refused(quick(method), *feature_crowd(2)[:2])


def check_every_parameter_is_read(method: BaseEstimator) -> None:
    """`fit` reads every constructor parameter, beyond the check that its value is legal."""
    assert_parameters_are_read(brief(method), *feature_crowd(2)[:2])


def check_a_second_fit_forgets_the_first(method: BaseEstimator) -> None:
    """Fitting again gives what a fresh copy gives, and nothing is left of the first fit."""
    first, second = feature_crowd(3), feature_crowd(2, n_features=3, seed=1)
    twice = briefly(method, *first[:2])
    twice.left_over_ = "a result that only the first fit had"
    quietly(lambda: twice.fit(*second[:2]))
    once = briefly(method, *second[:2])
    assert results_of(once).keys() == results_of(twice).keys(), "something is left of the first fit"
    assert_equal(output(twice, second[0]), output(once, second[0]), "the second fit remembers the first")


def check_copies_answer_the_same(method: BaseEstimator) -> None:
    """Pickled and read again, or saved as a folder and loaded, it answers and scores to the last bit the same."""
    from manyhands.persistence.models import load_model

    X, votes, _ = feature_crowd(3)
    fitted = briefly(method, X, votes)
    with tempfile.TemporaryDirectory() as folder:
        fitted.save(Path(folder) / "model")
        for again in (pickle.loads(pickle.dumps(fitted)), load_model(Path(folder) / "model")):
            assert type(again) is type(fitted) and repr(again) == repr(fitted), "a copy is something else"
            assert_equal(output(again, X), output(fitted, X), "a copy answers otherwise")
            for name in ("posterior_", "worker_accuracy_", "worker_ids_", "classes_", "history_", "notes_"):
                assert_equal(getattr(again, name), getattr(fitted, name), f"a copy has another {name}")
            if hasattr(fitted, "score"):
                assert again.score(X, votes) == fitted.score(X, votes), "a copy scores otherwise"
    if is_network(fitted):
        error_of(lambda: briefly(method, X, votes, backbone=linear).save("no such folder"), ParameterError)
