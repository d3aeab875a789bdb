"""Representation learners in scikit-learn: pipelines and grid search."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyhands.testing.assertions import quietly
from manyhands.testing.learners import brief_copy
from manyhands.testing.small_crowds import feature_crowd


def check_pipeline_and_grid_search(learner: Any) -> None:
    """The learner works in a `Pipeline` before `two-stage`, and `GridSearchCV` with `cv=KFold` tunes its parameters.

    Parameters
    ----------
    learner : Embedder
        An unfitted representation learner; small copies of it are fitted.
    """
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    from manyhands.classifiers.two_stage import TwoStage

    X, votes, _ = feature_crowd(2)
    last = TwoStage("majority-vote", "logistic-regression")
    steps: Any = [("scale", StandardScaler()), ("embed", brief_copy(learner)), ("classify", last)]
    search = GridSearchCV(Pipeline(steps), {"embed__embedding_size": [2, 8]}, cv=KFold(2), error_score="raise")
    quietly(lambda: search.fit(X, votes))
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.named_steps["embed"].transform(X).shape[1] in (2, 8)
    assert set(search.predict(X)) <= set(votes.classes.tolist())
