"""Logistic regressions of all workers at once, each on its own labels of shared features; needs no torch.

Node 0 is the target classifier, which has an L2 penalty; the other nodes are the workers. Weights have the shape
(n_nodes, n_problems, n_features + 1), with the intercept last. Two classes are one binary problem, more classes one
binary problem per class (one against the rest).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from manyhands.annotations import Annotations
from manyhands.em.kernels import Array

_CACHE_BYTES = 1 << 28  # memory for a float32 copy of the rows of every label; beyond it, rows are indexed when needed

# Of each node: the codes of its items, and their binary targets (n_labels, n_problems).
NodeLabels = list[tuple[npt.NDArray[np.intp], Array]]


def labels_by_node(annotations: Annotations, gold: npt.NDArray[np.int32] | None) -> tuple[NodeLabels, int]:
    """Group the labels by node: gold for the target, then the labels of each worker who has any.

    Parameters
    ----------
    annotations : Annotations
        The labels.
    gold : ndarray of shape (n_items,) or None
        Known classes, -1 where unknown.

    Returns
    -------
    labels : list of (ndarray of shape (n,), ndarray of shape (n, n_problems))
        Items and binary targets of each node.
    n_problems : int
        Number of binary problems: 0 for one class, 1 for two, otherwise the number of classes.
    """
    n_classes = annotations.n_classes
    columns = np.arange(n_classes)[(1 if n_classes == 2 else 0) : (0 if n_classes == 1 else None)]
    codes = np.full(annotations.n_items, -1) if gold is None else gold
    known = np.flatnonzero(codes >= 0)
    labels = [(known, (codes[known, None] == columns).astype(float))]
    order = np.argsort(annotations.worker, kind="stable")
    for of_worker in np.split(order, np.flatnonzero(np.diff(annotations.worker[order])) + 1):
        target = (annotations.label[of_worker, None] == columns).astype(float)
        labels.append((annotations.item[of_worker].astype(np.intp), target))
    return labels, len(columns)


class Nodes:
    """The smooth part of CPC's objective: logistic losses of all nodes and the L2 penalty of node 0.

    f(w) = sum over labels of log(1 + exp(s)) - y s  +  eta / 2 ||w_0||^2,   s = w_node . (x_item - shift, 1)

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_items, n_features)
        Features.
    shift : ndarray of shape (n_features,)
        Subtracted from each row; kept apart so that sparse features stay sparse.
    labels : list of (ndarray of shape (n,), ndarray of shape (n, n_problems))
        Items and binary targets of each node, as `labels_by_node` returns them.
    eta : float
        L2 penalty of node 0.
    n_problems : int
        Number of binary problems.

    Attributes
    ----------
    shape : tuple of int
        Shape of the weights, (n_nodes, n_problems, n_features + 1).
    node : ndarray of shape (n_labels,)
        Node of each label; labels are sorted by node.
    target : ndarray of shape (n_labels, n_problems)
        Binary targets of all labels.
    slices : list of (int, slice)
        Nodes with labels, and where their labels are.
    """

    def __init__(self, X: Any, shift: Array, labels: NodeLabels, eta: float, n_problems: int) -> None:
        self.X, self.shift, self.labels, self.eta = X, shift, labels, eta
        self.shape = len(labels), n_problems, len(shift) + 1
        self.counts = np.array([len(items) for items, _ in labels])
        self.node = np.repeat(np.arange(len(labels)), self.counts)
        self.target = np.concatenate([y for _, y in labels])
        last = np.cumsum(self.counts)
        self.slices = [(j, slice(last[j] - n, last[j])) for j, n in enumerate(self.counts.tolist()) if n]

    @cached_property
    def _cached_rows(self) -> list[Any] | None:
        """Rows of the labels of each node as float32; None where they would need too much memory."""
        numbers = self.X.nnz / max(self.X.shape[0], 1) if hasattr(self.X, "tocsr") else self.shape[2]
        fit = 4 * len(self.node) * numbers <= _CACHE_BYTES
        return [self.X[items].astype(np.float32) for items, _ in self.labels] if fit else None

    def rows(self, node: int, dtype: npt.DTypeLike) -> Any:
        """Return the features of the items that a node labelled, in its order of labels."""
        if self._cached_rows is not None and dtype == np.float32:
            return self._cached_rows[node]
        return self.X[self.labels[node][0]].astype(dtype, copy=False)

    def scores(self, w: Array) -> Array:
        """Return the score w_node . x of each label.

        Parameters
        ----------
        w : ndarray of shape (n_nodes, n_problems, n_features + 1)
            Weights; their dtype is that of the computation.

        Returns
        -------
        ndarray of shape (n_labels, n_problems)
        """
        found = (w[..., -1] - w[..., :-1] @ self.shift.astype(w.dtype))[self.node]
        for node, own in self.slices:
            found[own] += self.rows(node, w.dtype) @ w[node, :, :-1].T
        return np.asarray(found)

    def scores_transposed(self, values: Array) -> Array:
        """Apply the transpose of the linear map `scores`: from values of labels to a gradient of weights.

        Parameters
        ----------
        values : ndarray of shape (n_labels, n_problems)
            One number per label and problem.

        Returns
        -------
        ndarray of shape (n_nodes, n_problems, n_features + 1)
        """
        found = np.zeros(self.shape, values.dtype)
        for node, own in self.slices:
            found[node, :, :-1] = _transposed_product(values[own], self.rows(node, values.dtype))
            found[node, :, -1] = values[own].sum(axis=0)
        if self.shift.any():
            found[..., :-1] -= found[..., -1:] * self.shift.astype(values.dtype)
        return found

    def loss_and_gradient(self, w: Array) -> tuple[float, Array, Array]:
        """Return the negative log-likelihood with the L2 penalty of node 0, its gradient, and the scores.

        Parameters
        ----------
        w : ndarray of shape (n_nodes, n_problems, n_features + 1)
            Weights.

        Returns
        -------
        value : float
        gradient : ndarray of shape (n_nodes, n_problems, n_features + 1)
        score : ndarray of shape (n_labels, n_problems)
        """
        score = self.scores(w)
        value = self.eta / 2 * float(np.sum(w[0] ** 2)) + float(np.sum(np.logaddexp(0.0, score) - self.target * score))
        gradient = self.scores_transposed(expit(score) - self.target)
        gradient[0] += self.eta * w[0]
        return value, gradient, score

    def hessian_weights(self, score: Array) -> Array:
        """Return the second derivative p (1 - p) of each label's loss in its score, (n_labels, n_problems)."""
        return np.asarray(expit(score) * expit(-score))

    def hessian_product(self, weight: Array, direction: Array) -> Array:
        """Return the product of the Hessian of the loss with a direction.

        Parameters
        ----------
        weight : ndarray of shape (n_labels, n_problems)
            The result of `hessian_weights`; its dtype and that of the direction are those of the computation.
        direction : ndarray of shape (n_nodes, n_problems, n_features + 1)
            A direction of the weights.

        Returns
        -------
        ndarray of shape (n_nodes, n_problems, n_features + 1)
        """
        found = self.scores_transposed(weight * self.scores(direction))
        found[0] += self.eta * direction[0]
        return found

    def hessian_diagonal(self, weight: Array) -> Array:
        """Return an approximation of the Hessian's diagonal, with the mean squares of all items for every node.

        Parameters
        ----------
        weight : ndarray of shape (n_labels, n_problems)
            The result of `hessian_weights`.

        Returns
        -------
        ndarray of shape (n_nodes, n_problems, n_features + 1)
            All entries are positive.
        """
        total = np.zeros(self.shape[:2])
        np.add.at(total, self.node, weight)
        found = total[..., None] * self._mean_squares + 1e-9 * self.eta
        found[0] += self.eta
        return np.asarray(found)

    @cached_property
    def _mean_squares(self) -> Array:
        """Mean square of each shifted feature, and 1 for the intercept, (n_features + 1,)."""
        X = self.X
        squares = X.multiply(X).mean(axis=0) if hasattr(X, "tocsr") else np.einsum("ij,ij->j", X, X) / len(X)
        return np.append(np.maximum(np.asarray(squares).ravel() - self.shift**2, 0.0), 1.0)

    @cached_property
    def pooled(self) -> Array:
        """Weights of one regression on the labels of all nodes, with the L2 penalty, (n_problems, n_features + 1)."""
        items, place = np.unique(np.concatenate([items for items, _ in self.labels]), return_inverse=True)
        X, n_labels = self.X[items], np.bincount(place)[:, None].astype(float)
        target = np.zeros((len(items), self.shape[1]))
        np.add.at(target, place, self.target)

        def loss(w: Array) -> tuple[float, Array]:
            score = X @ w[:, :-1].T + (w[:, -1] - w[:, :-1] @ self.shift)
            losses = n_labels * np.logaddexp(0.0, score) - target * score
            value = self.eta / 2 * float(np.sum(w**2)) + float(np.sum(losses))
            residual, gradient = n_labels * expit(score) - target, self.eta * w
            total = residual.sum(axis=0)[:, None]
            return value, gradient + np.hstack([_transposed_product(residual, X) - total * self.shift, total])

        scale = 1 / np.sqrt(len(self.node) / 4 * self._mean_squares + self.eta)
        return minimise(loss, np.zeros(self.shape[1:]), scale)


def _transposed_product(values: Array, rows: Any) -> Array:
    """`values` transposed times `rows`, dense or sparse, (n_problems, n_features)."""
    return np.asarray((rows.T @ values).T if hasattr(rows, "tocsr") else values.T @ rows)


def minimise(loss: Callable[[Array], tuple[float, Array]], start: Array, scale: Array | float = 1.0) -> Array:
    """Minimise a smooth function by L-BFGS to high precision.

    Parameters
    ----------
    loss : callable (ndarray) -> (float, ndarray)
        Value and gradient.
    start : ndarray
        Where to begin.
    scale : ndarray or float, default=1.0
        Typical size of a step in each variable; the variables are divided by it (a diagonal preconditioner).

    Returns
    -------
    ndarray
        The minimum, of the shape of `start`.
    """
    from scipy.optimize import minimize

    def scaled_loss(flat: Array) -> tuple[float, Array]:
        value, gradient = loss(flat.reshape(start.shape) * scale)
        return value, (gradient * scale).ravel()

    options = {"maxiter": 1000, "maxfun": 2000, "ftol": 1e-13, "gtol": 1e-7}
    found = minimize(scaled_loss, (start / scale).ravel(), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x.reshape(start.shape) * scale)
