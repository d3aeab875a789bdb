"""What makes a learner of representations an estimator beyond that: copies, files, pipelines and searches."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from manyhands.exceptions import ParameterError
from manyhands.representation.base import RepresentationLearner
from manyhands.testing.compare import assert_equal, error_of, quietly
from manyhands.testing.crowds import feature_crowd
from manyhands.testing.learners import learn, linear, quick


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
    error_of(lambda: quick(learner, backbone=linear).fit(X, votes).save("no such folder"), ParameterError)


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
