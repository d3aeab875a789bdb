"""Classifiers in scikit-learn: grid search and pipelines."""

from __future__ import annotations

import numpy as np

from manyhands.classifiers.base import CrowdClassifier
from manyhands.testing.assertions import quietly
from manyhands.testing.learners import brief_copy
from manyhands.testing.small_crowds import feature_crowd


def check_grid_search_and_pipeline(classifier: CrowdClassifier) -> None:
    """The classifier works in a `Pipeline` and in `GridSearchCV` with `cv=KFold`, without any truth.

    Parameters
    ----------
    classifier : CrowdClassifier
        An unfitted classifier; small copies of it are fitted.
    """
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, votes, _ = feature_crowd(2)
    pipeline = make_pipeline(StandardScaler(), brief_copy(classifier))
    step = pipeline.steps[-1][0]
    search = GridSearchCV(pipeline, {f"{step}__random_state": [0, 1]}, cv=KFold(2), error_score="raise")
    quietly(lambda: search.fit(X, votes))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert set(search.predict(X)) <= set(votes.classes.tolist())
