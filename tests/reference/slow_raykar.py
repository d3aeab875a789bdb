"""Reference implementations of EM with a classifier: Raykar's two-coin model with full Newton steps; AggNet's steps."""

import numpy as np


def two_coin_em(X, triples, n_workers, *, ridge, right, wrong, n_iter):
    """Raykar's binary EM after n_iter M and E steps: posterior mu, sensitivity alpha, specificity beta.

    `triples` are (item, worker, label).
    """
    n, d = X.shape
    rows = [np.append(x, 1.0) for x in X]
    ridges = np.append(np.full(d, ridge / 2), 0.5e-6)
    mu = np.array([np.mean([label for item, _, label in triples if item == i]) for i in range(n)])
    w = np.zeros(d + 1)
    for _ in range(n_iter):
        alpha, beta = np.zeros(n_workers), np.zeros(n_workers)
        for j in range(n_workers):
            own = [(i, label) for i, worker, label in triples if worker == j]
            alpha[j] = (right + sum(mu[i] * y for i, y in own)) / (right + wrong + sum(mu[i] for i, _ in own))
            beta[j] = (right + sum((1 - mu[i]) * (1 - y) for i, y in own)) / (
                right + wrong + sum(1 - mu[i] for i, _ in own)
            )
        for _ in range(20):
            p = np.array([1 / (1 + np.exp(-row @ w)) for row in rows])
            gradient = sum((mu[i] - p[i]) * rows[i] for i in range(n)) - ridges * w
            hessian = sum(p[i] * (1 - p[i]) * np.outer(rows[i], rows[i]) for i in range(n)) + np.diag(ridges)
            w = w + np.linalg.solve(hessian, gradient)
        for i in range(n):
            p = 1 / (1 + np.exp(-rows[i] @ w))
            a, b = p, 1 - p
            for item, j, y in triples:
                if item == i:
                    a *= alpha[j] if y else 1 - alpha[j]
                    b *= 1 - beta[j] if y else beta[j]
            mu[i] = a / (a + b)
    return mu, alpha, beta


def confusions(posterior, triples, n_workers, pseudo):
    """M step: confusion[worker, truth, label] from expected counts, with a pseudo-count in each cell."""
    n_classes = posterior.shape[1]
    table = np.full((n_workers, n_classes, n_classes), float(pseudo))
    for i, j, y in triples:
        for k in range(n_classes):
            table[j, k, y] += posterior[i, k]
    for j in range(n_workers):
        for k in range(n_classes):
            table[j, k] /= sum(table[j, k])
    return table


def truth(proba, triples, table):
    """E step: (n_items, n_classes) posterior ~ proba times the likelihood of each label."""
    posterior = np.array(proba, float)
    for i, j, y in triples:
        for k in range(posterior.shape[1]):
            posterior[i, k] *= table[j, k, y]
    return posterior / posterior.sum(axis=1, keepdims=True)
