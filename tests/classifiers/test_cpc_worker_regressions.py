"""Logistic regressions of all nodes: loss, gradient and Hessian products against plain loops and differences."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

from manyhands.classifiers import cpc
from manyhands.classifiers.cpc import Nodes

RNG = np.random.default_rng(0)
X = RNG.normal(size=(7, 3)) * (RNG.random((7, 3)) < 0.7)
SHIFT = np.array([0.5, -1.0, 0.2])
ITEMS = [np.array([1]), np.array([0, 2, 3, 6]), np.array([2, 4, 5]), np.array([0, 6])]
LABELS = [(items, RNG.integers(0, 2, (len(items), 2)).astype(float)) for items in ITEMS]
W = RNG.normal(size=(4, 2, 4))


@pytest.fixture(params=["dense", "sparse", "uncached"])
def nodes(request, monkeypatch):
    if request.param == "uncached":
        monkeypatch.setattr(cpc, "_CACHE_BYTES", 0)
    return Nodes(csr_array(X) if request.param == "sparse" else X, SHIFT, LABELS, 0.7, 2)


def slow_value(w):
    total = 0.35 * (w[0] ** 2).sum()
    for node, (items, targets) in enumerate(LABELS):
        for item, target in zip(items, targets):
            for problem, y in enumerate(target):
                score = (X[item] - SHIFT) @ w[node, problem, :-1] + w[node, problem, -1]
                total += np.log1p(np.exp(score)) - y * score
    return total


def along(function, direction):
    return (function(W + 1e-5 * direction) - function(W - 1e-5 * direction)) / 2e-5


def test_loss_and_gradient_are_those_of_plain_loops(nodes):
    value, gradient, _ = nodes.loss_and_gradient(W)
    np.testing.assert_allclose(value, slow_value(W))
    for place in np.ndindex(W.shape):
        unit = np.zeros(W.shape)
        unit[place] = 1.0
        np.testing.assert_allclose(gradient[place], along(slow_value, unit), atol=1e-7)


@pytest.mark.parametrize(("kind", "precision"), [(np.float64, 1e-6), (np.float32, 1e-5)])
def test_hessian_products_are_differences_of_gradients(nodes, kind, precision):
    """In double precision, and in single precision with cached rows."""
    direction = np.random.default_rng(1).normal(size=W.shape)
    found = nodes.hessian_product(nodes.hessian_weights(nodes.scores(W)).astype(kind), direction.astype(kind))
    assert found.dtype == kind
    np.testing.assert_allclose(found, along(lambda w: nodes.loss_and_gradient(w)[1], direction), atol=precision)


def test_pooled_is_one_regression_on_all_labels(nodes):
    Z = np.column_stack([X - SHIFT, np.ones(len(X))])[np.concatenate(ITEMS)]
    for problem in range(2):
        target = np.concatenate([target[:, problem] for _, target in LABELS])
        one = LogisticRegression(C=1 / 0.7, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(Z, target)
        np.testing.assert_allclose(nodes.pooled[problem], one.coef_[0], atol=1e-5)
