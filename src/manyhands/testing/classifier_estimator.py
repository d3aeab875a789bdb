"""What makes a classifier an estimator beyond that: copies, files, searches and pipelines."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path

import numpy as np

from manyhands.classifiers.base import CrowdClassifier
from manyhands.testing.compare import assert_equal, quietly
from manyhands.testing.crowds import feature_crowd
from manyhands.testing.learners import learn, quick


def check_copies_predict_the_same(classifier: CrowdClassifier) -> None:
    """Pickled and read again, or saved as a folder and loaded, it predicts and scores to the last bit the same."""
    from manyhands.classifiers.saving import load_model

    X, votes, _ = feature_crowd(3)
    fitted = learn(classifier, X, votes)
    with tempfile.TemporaryDirectory() as folder:
        fitted.save(Path(folder) / "model")
        for again in (pickle.loads(pickle.dumps(fitted)), load_model(Path(folder) / "model")):
            assert_equal(again.predict_proba(X), fitted.predict_proba(X), "a copy predicts otherwise")
            assert again.score(X, votes) == fitted.score(X, votes), "a copy scores otherwise"
            assert_equal(again.predict(X), fitted.predict(X), "a copy speaks of other classes")
            for name in ("posterior_", "worker_accuracy_", "worker_ids_", "history_", "notes_"):
                assert_equal(getattr(again, name), getattr(fitted, name), f"a copy has another {name}")


def check_search_and_pipeline(classifier: CrowdClassifier) -> None:
    """`GridSearchCV` with `cv=KFold` and a `Pipeline` take it, with no truth in sight."""
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, votes, _ = feature_crowd(2)
    pipeline = make_pipeline(StandardScaler(), quick(classifier))
    step = pipeline.steps[-1][0]
    search = GridSearchCV(pipeline, {f"{step}__random_state": [0, 1]}, cv=KFold(2), error_score="raise")
    quietly(lambda: search.fit(X, votes))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert set(search.predict(X)) <= set(votes.classes.tolist())
