"""What makes a learner of representations an estimator: parameters, copies, files and pipelines."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from manyhands.exceptions import ParameterError
from manyhands.representation.base import RepresentationLearner
from manyhands.testing.classifier_estimator import (
    check_clone_and_repr_round_trip,
    check_every_parameter_is_documented,
    check_every_parameter_is_read,
    check_every_parameter_is_validated,
)
from manyhands.testing.classifier_promises import learn, quick
from manyhands.testing.compare import assert_equal, error_of, quietly, results_of
from manyhands.testing.crowds import feature_crowd

__all__ = [  # of these the promise is the same as of classifiers
    "check_clone_and_repr_round_trip",
    "check_every_parameter_is_documented",
    "check_every_parameter_is_read",
    "check_every_parameter_is_validated",
]


def check_copies_transform_the_same(learner: RepresentationLearner) -> None:
    """Pickled and read again, or saved as a folder and loaded, it gives the same embedding to the last bit."""
    from manyhands.classifiers.saving import load_model

    X, votes, _ = feature_crowd(3)
    fitted = learn(learner, X, votes)
    with tempfile.TemporaryDirectory() as folder:
        fitted.save(Path(folder) / "model")
        for again in (pickle.loads(pickle.dumps(fitted)), load_model(Path(folder) / "model")):
            assert type(again) is type(fitted)
            assert_equal(again.transform(X), fitted.transform(X), "a copy gives another embedding")
            for name in ("posterior_", "worker_accuracy_", "worker_ids_", "classes_", "history_", "notes_"):
                assert_equal(getattr(again, name), getattr(fitted, name), f"a copy has another {name}")
            assert repr(again) == repr(fitted)
    error_of(lambda: quick(learner, backbone=_linear).fit(X, votes).save("no such folder"), ParameterError)


def check_a_second_fit_forgets_the_first(learner: RepresentationLearner) -> None:
    """Fitting again gives what a fresh learner gives, and nothing is left of the first fit."""
    first, second = feature_crowd(3), feature_crowd(2, n_features=3, seed=1)
    twice = learn(learner, *first[:2])
    twice.left_over_ = "a result that only the first fit had"
    quietly(lambda: twice.fit(*second[:2]))
    once = learn(learner, *second[:2])
    assert results_of(once).keys() == results_of(twice).keys(), "something is left of the first fit"
    assert_equal(twice.transform(second[0]), once.transform(second[0]), "the embedding remembers the first fit")


def check_pipeline_and_search(learner: RepresentationLearner) -> None:
    """A `Pipeline` takes it before `two-stage`, and `GridSearchCV` with `cv=KFold` sets its parameters by score."""
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    from manyhands.classifiers.two_stage import TwoStage

    X, votes, _ = feature_crowd(2)
    last = TwoStage("majority-vote", "logistic-regression")
    steps: Any = [("scale", StandardScaler()), ("embed", quick(learner)), ("classify", last)]
    search = GridSearchCV(Pipeline(steps), {"embed__embedding_size": [2, 8]}, cv=KFold(2), error_score="raise")
    quietly(lambda: search.fit(X, votes))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.named_steps["embed"].transform(X).shape[1] in (2, 8)
    assert set(search.predict(X)) <= set(votes.classes.tolist())


def _linear(n_features: int, n_outputs: int) -> Any:
    """A backbone of the caller's own."""
    from manyhands.nn.backbones import mlp

    return mlp((n_features, n_outputs))
