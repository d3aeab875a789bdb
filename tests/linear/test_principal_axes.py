"""Turned rows: the same regression, with scores that rows as given have too, in few conjugate gradients."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from manyhands.linear import principal_axes as principal_axes
from manyhands.linear import softmax_regression
from manyhands.linear.principal_axes import turn
from manyhands.linear.softmax_regression import climb, log_proba


def features(n_rows, n_features, seed=0):
    """Features that overlap, on scales from 0.01 to 100, one of them constant."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) @ rng.normal(size=(n_features, n_features)) + rng.normal(size=n_features)
    X *= np.geomspace(0.01, 100, n_features)
    X[:, 1] = 0.3
    return X


def regression(X, y, n_classes):
    """Weights for raw features, by way of turned rows."""
    turned = turn(X)
    start = np.zeros((turned.X.shape[1] + 1, n_classes))
    return turned.in_raw_features(climb(turned.X, np.eye(n_classes)[y], start, 0.5, 50))


@pytest.mark.parametrize("shape", [(40, 6), (12, 20)])
@pytest.mark.parametrize("most_axes", [2048, 0])
def test_the_regression_is_that_on_standardised_rows(shape, most_axes, monkeypatch):
    """Turned or not, with fewer and with more features than rows."""
    monkeypatch.setattr(principal_axes, "_MOST_AXES", most_axes)
    X, y = features(*shape), np.arange(shape[0]) % 3
    scaled = StandardScaler().fit_transform(X)
    expected = LogisticRegression(C=1 / 0.5, tol=1e-10, max_iter=10_000).fit(scaled, y).predict_proba(scaled)
    np.testing.assert_allclose(np.exp(log_proba(X, regression(X, y, 3), 3)), expected, atol=1e-5)


def test_axes_do_not_overlap_and_are_no_more_than_rows():
    for shape in [(40, 6), (12, 20)]:
        turned = turn(features(*shape))
        assert turned.X.shape == (shape[0], min(shape))
        products = turned.X.T @ turned.X
        np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-9 * products.max())


def test_sparse_rows_stay_sparse_and_give_the_same():
    """They are not centred, for which the intercept makes up."""
    X, y = features(40, 6), np.arange(40) % 3
    X[X < 0] = 0
    weights = regression(csr_array(X), y, 3)
    assert turn(csr_array(X)).X.nnz == np.count_nonzero(X)
    np.testing.assert_allclose(weights, regression(X, y, 3), atol=1e-3 * np.abs(weights).max())
    np.testing.assert_allclose(log_proba(X, weights, 3), log_proba(X, regression(X, y, 3), 3), atol=1e-4)


def test_newton_steps_are_short(monkeypatch):
    """Fewer products with the Hessian than half of what untouched features take."""
    count = [0]
    across = softmax_regression._across

    def counting(*arguments):
        count[0] += 1
        return across(*arguments)

    monkeypatch.setattr(softmax_regression, "_across", counting)
    X, target = StandardScaler().fit_transform(features(60, 30)), np.eye(3)[np.arange(60) % 3]
    needed = []
    for rows in (X, turn(X).X):
        count[0] = 0
        climb(rows, target, np.zeros((31, 3)), 0.01, 5)
        needed.append(count[0])
    assert 2 * needed[1] < needed[0]
