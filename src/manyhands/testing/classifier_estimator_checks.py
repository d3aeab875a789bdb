"""What makes a classifier an estimator beyond that: searches and pipelines."""

from __future__ import annotations

import numpy as np

from manyhands.classifiers.base import CrowdClassifier
from manyhands.testing.assertions import quietly
from manyhands.testing.learners import brief
from manyhands.testing.small_crowds import feature_crowd


def check_search_and_pipeline(classifier: CrowdClassifier) -> None:
    """`GridSearchCV` with `cv=KFold` and a `Pipeline` take it, with no truth in sight."""
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, votes, _ = feature_crowd(2)
    pipeline = make_pipeline(StandardScaler(), brief(classifier))
    step = pipeline.steps[-1][0]
    search = GridSearchCV(pipeline, {f"{step}__random_state": [0, 1]}, cv=KFold(2), error_score="raise")
    quietly(lambda: search.fit(X, votes))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert set(search.predict(X)) <= set(votes.classes.tolist())
