"""Classifiers and representation learners as estimators: parameters, repeated fits, pickles and saved models."""

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
    assert_clones_and_reprs_are_equal,
    assert_parameters_are_read,
)
from manyhands.testing.learners import brief_copy, fit_briefly, is_network, linear, output, quick_copy
from manyhands.testing.small_crowds import feature_crowd


def check_clone_and_repr_round_trip(method: BaseEstimator) -> None:
    """scikit-learn can clone the estimator, `repr` reproduces it, and `set_params` refuses unknown parameters.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
    """
    others: Any = (quick_copy(method, **{name: value}) for name, value in other_values(method).items())
    assert_clones_and_reprs_are_equal(fit_briefly(method, *feature_crowd(2)[:2]), [method, *others])


def check_every_parameter_is_validated(method: BaseEstimator) -> None:
    """Every constructor parameter has a constraint, and `fit` raises a ParameterError that names the parameter.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
    """
    assert_bad_values_are_refused(quick_copy(method), *feature_crowd(2)[:2])


def check_every_parameter_is_read(method: BaseEstimator) -> None:
    """`fit` reads every constructor parameter, apart from its validation.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
    """
    assert_parameters_are_read(brief_copy(method), *feature_crowd(2)[:2])


def check_second_fit_is_independent_of_the_first(method: BaseEstimator) -> None:
    """A second fit gives the results of a fresh copy, and no attribute of the first fit is left.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
    """
    first, second = feature_crowd(3), feature_crowd(2, n_features=3, seed=1)
    twice = fit_briefly(method, *first[:2])
    twice.left_over_ = "an attribute of the first fit only"
    quietly(lambda: twice.fit(*second[:2]))
    once = fit_briefly(method, *second[:2])
    assert results_of(once).keys() == results_of(twice).keys(), "attributes of the first fit are left"
    assert_equal(output(twice, second[0]), output(once, second[0]), "the second fit depends on the first")


def check_copies_predict_the_same(method: BaseEstimator) -> None:
    """A pickled copy and a saved and loaded copy give bit-identical predictions and scores.

    Parameters
    ----------
    method : BaseEstimator
        An unfitted classifier or representation learner; small copies of it are fitted.
    """
    from manyhands.persistence.models import load_model

    X, votes, _ = feature_crowd(3)
    fitted = fit_briefly(method, X, votes)
    with tempfile.TemporaryDirectory() as folder:
        fitted.save(Path(folder) / "model")
        for again in (pickle.loads(pickle.dumps(fitted)), load_model(Path(folder) / "model")):
            assert type(again) is type(fitted) and repr(again) == repr(fitted), (
                "a copy has another type or other parameters"
            )
            assert_equal(output(again, X), output(fitted, X), "predictions of a copy differ")
            for name in (
                "posterior_",
                "worker_accuracy_",
                "worker_ids_",
                "classes_",
                "history_",
                "notes_",
                "n_features_in_",
            ):
                assert_equal(getattr(again, name), getattr(fitted, name), f"a copy has another {name}")
            if hasattr(fitted, "score"):
                assert again.score(X, votes) == fitted.score(X, votes), "the score of a copy differs"
    if is_network(fitted):
        error_of(lambda: fit_briefly(method, X, votes, backbone=linear).save("no such folder"), ParameterError)
