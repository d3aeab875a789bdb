"""One-vs-rest probabilities beside scikit-learn's, and for one class."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from manyhands.features import as_rows
from manyhands.linear import one_vs_rest_proba

pytestmark = pytest.mark.fast


def test_probabilities_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)).astype(np.float32), rng.integers(0, 3, 60)
    for n_classes in (2, 3):
        theirs = OneVsRestClassifier(LogisticRegression()).fit(X[y < n_classes], y[y < n_classes])
        coef = np.vstack([each.coef_ for each in theirs.estimators_])
        intercept = np.concatenate([each.intercept_ for each in theirs.estimators_])
        found = one_vs_rest_proba(coef, intercept, as_rows(X), n_classes)
        np.testing.assert_allclose(found, theirs.predict_proba(X), rtol=1e-6)


def test_a_single_class_has_probability_one():
    found = one_vs_rest_proba(np.ones((1, 2)), np.zeros(1), as_rows(np.ones((3, 2))), 1)
    np.testing.assert_array_equal(found, np.ones((3, 1)))
