"""Rows along principal axes: the same linear model, the same scores from raw rows, fewer conjugate gradients."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from manyhands import linear
from manyhands.features import as_rows
from manyhands.linear import log_proba, newton_ascent, rotate_to_principal_axes, standardise_and_rotate

pytestmark = pytest.mark.fast


def features(n_rows, n_features, seed=0):
    """Correlated features on scales from 0.01 to 100, one of them constant."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) @ rng.normal(size=(n_features, n_features)) + rng.normal(size=n_features)
    X *= np.geomspace(0.01, 100, n_features)
    X[:, 1] = 0.3
    return X


def rank_deficient_rows(n_rows, n_features):
    """Features of which one is constant and one is twice another."""
    X = np.random.default_rng(0).normal(3.0, 5.0, (n_rows, n_features)).round().astype(np.float32)
    X[:, 0] = 4.0
    X[:, -1] = 2 * X[:, 1]
    return X


def regression(X, y, n_classes):
    """Weights for raw features, fitted along principal axes."""
    rotated = rotate_to_principal_axes(X)
    start = np.zeros((rotated.X.shape[1] + 1, n_classes))
    return rotated.in_raw_features(newton_ascent(rotated.X, np.eye(n_classes)[y], start, 0.5, 50))


@pytest.mark.parametrize("shape", [(40, 6), (12, 20)])
@pytest.mark.parametrize("max_axes", [2048, 0])
def test_regression_equals_that_on_standardised_rows(shape, max_axes, monkeypatch):
    """Rotated or not, with fewer and with more features than rows."""
    monkeypatch.setattr(linear, "_MAX_AXES", max_axes)
    X, y = features(*shape), np.arange(shape[0]) % 3
    scaled = StandardScaler().fit_transform(X)
    expected = LogisticRegression(C=1 / 0.5, tol=1e-10, max_iter=10_000).fit(scaled, y).predict_proba(scaled)
    np.testing.assert_allclose(np.exp(log_proba(X, regression(X, y, 3), 3)), expected, atol=1e-5)


def test_axes_are_uncorrelated_and_no_more_than_rows():
    for shape in [(40, 6), (12, 20)]:
        rotated = rotate_to_principal_axes(features(*shape))
        assert rotated.X.shape == (shape[0], min(shape))
        products = rotated.X.T @ rotated.X
        np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-9 * products.max())


def test_sparse_rows_stay_sparse_and_give_the_same_regression():
    """They are not centred; the intercept compensates."""
    X, y = features(40, 6), np.arange(40) % 3
    X[X < 0] = 0
    weights = regression(csr_array(X), y, 3)
    assert rotate_to_principal_axes(csr_array(X)).X.nnz == np.count_nonzero(X)
    np.testing.assert_allclose(weights, regression(X, y, 3), atol=1e-3 * np.abs(weights).max())
    np.testing.assert_allclose(log_proba(X, weights, 3), log_proba(X, regression(X, y, 3), 3), atol=1e-4)


def test_newton_steps_need_fewer_hessian_products(monkeypatch):
    """Fewer than half as many as standardised features need."""
    count = [0]
    transposed_product = linear._transposed_product

    def counting(*arguments):
        count[0] += 1
        return transposed_product(*arguments)

    monkeypatch.setattr(linear, "_transposed_product", counting)
    X, target = StandardScaler().fit_transform(features(60, 30)), np.eye(3)[np.arange(60) % 3]
    needed = []
    for rows in (X, rotate_to_principal_axes(X).X):
        count[0] = 0
        newton_ascent(rows, target, np.zeros((31, 3)), 0.01, 5)
        needed.append(count[0])
    assert 2 * needed[1] < needed[0]


@pytest.mark.parametrize("max_axes", [1024, 0])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("shape", [(30, 6), (6, 30)])
def test_standardised_rows_and_raw_rows_have_the_same_scores(monkeypatch, shape, form, max_axes):
    """Rotated or not, dense or sparse; both layouts of weights agree."""
    monkeypatch.setattr(linear, "_MAX_SPAN_AXES", max_axes)
    X = rank_deficient_rows(*shape)
    found = standardise_and_rotate(as_rows(form(X)))
    rows = (found.X.toarray() if hasattr(found.X, "toarray") else found.X) - found.shift
    w = np.random.default_rng(1).normal(size=(2, rows.shape[1] + 1))
    raw = found.raw(w)
    np.testing.assert_allclose(rows @ w[:, :-1].T + w[:, -1], X @ raw[:, :-1].T + raw[:, -1], atol=1e-4)
    np.testing.assert_allclose(raw, found.in_raw_features(w.T).T, rtol=1e-9, atol=1e-12)
    deviation = (X[:, 1:] - X[:, 1:].mean(axis=0)) / X[:, 1:].std(axis=0)
    np.testing.assert_allclose(rows @ rows.T, deviation @ deviation.T, atol=1e-4)  # lengths and angles are kept
    assert found.variance == pytest.approx(shape[1] - 1)  # one feature is constant


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize(("shape", "rank"), [((30, 6), 4), ((6, 30), 5)])
def test_standardised_rows_have_as_many_axes_as_their_rank(shape, rank, form):
    """Neither a constant nor a doubled feature has an axis of its own, and columns are uncorrelated."""
    found = standardise_and_rotate(as_rows(form(rank_deficient_rows(*shape))))
    np.testing.assert_allclose(found.axes.T @ found.axes, np.eye(rank), atol=1e-6)
    gram = found.X.T @ found.X
    np.testing.assert_allclose(gram - np.diag(np.diag(gram)), 0.0, atol=1e-6)


def test_equal_rows_have_one_axis_on_which_they_are_zero():
    found = standardise_and_rotate(as_rows(np.full((5, 3), 2.0)))
    np.testing.assert_array_equal(found.X, np.zeros((5, 1)))
