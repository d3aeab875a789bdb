"""Many logistic regressions side by side, each on its own labels of shared rows, the first one with a ridge; no torch.

Weights are (n_nodes, n_problems, n_features + 1), the intercept last.
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

_HOLD = 1 << 28  # bytes of rows held in 32 bits, once for each label; beyond, they are gathered when needed


Labels = list[tuple[npt.NDArray[np.intp], Array]]


def labels_by_node(annotations: Annotations, gold: npt.NDArray[np.int32] | None) -> tuple[Labels, int]:
    """The target's labels, which are gold, then those of the workers who gave any; and the number of problems."""
    n_classes = annotations.n_classes
    columns = np.arange(n_classes)[(1 if n_classes == 2 else 0) : (0 if n_classes == 1 else None)]
    codes = np.full(annotations.n_items, -1) if gold is None else gold
    known = np.flatnonzero(codes >= 0)
    labels = [(known, (codes[known, None] == columns).astype(float))]
    order = np.argsort(annotations.worker, kind="stable")
    for mine in np.split(order, np.flatnonzero(np.diff(annotations.worker[order])) + 1):
        said = (annotations.label[mine, None] == columns).astype(float)
        labels.append((annotations.item[mine].astype(np.intp), said))
    return labels, len(columns)


class Nodes:
    """Labels by node.

    Parameters
    ----------
    X : dense or CSR rows
    shift : what is to be subtracted from each row, which a sparse one would not survive
    labels : for each node, its items and (n, n_problems) what it said of them, 0 or 1
    eta : ridge on node 0
    """

    def __init__(self, X: Any, shift: Array, labels: Labels, eta: float, n_problems: int) -> None:
        self.X, self.shift, self.labels, self.eta = X, shift, labels, eta
        self.shape = len(labels), n_problems, len(shift) + 1
        self.counts = np.array([len(items) for items, _ in labels])
        self.node = np.repeat(np.arange(len(labels)), self.counts)
        self.said = np.concatenate([y for _, y in labels])
        last = np.cumsum(self.counts)
        self.places = [(j, slice(last[j] - n, last[j])) for j, n in enumerate(self.counts.tolist()) if n]

    @cached_property
    def _held(self) -> list[Any] | None:
        numbers = self.X.nnz / max(self.X.shape[0], 1) if hasattr(self.X, "tocsr") else self.shape[2]
        fit = 4 * len(self.node) * numbers <= _HOLD
        return [self.X[items].astype(np.float32) for items, _ in self.labels] if fit else None

    def rows(self, node: int, kind: npt.DTypeLike) -> Any:
        if self._held is not None and kind == np.float32:
            return self._held[node]
        return self.X[self.labels[node][0]].astype(kind, copy=False)

    def scores(self, w: Array) -> Array:
        """(n_labels, n_problems) what each label's node makes of its item."""
        found = (w[..., -1] - w[..., :-1] @ self.shift.astype(w.dtype))[self.node]
        for node, mine in self.places:
            found[mine] += self.rows(node, w.dtype) @ w[node, :, :-1].T
        return np.asarray(found)

    def gathered(self, rest: Array) -> Array:
        """The transpose of `scores`."""
        found = np.zeros(self.shape, rest.dtype)
        for node, mine in self.places:
            found[node, :, :-1] = _times(rest[mine], self.rows(node, rest.dtype))
            found[node, :, -1] = rest[mine].sum(axis=0)
        if self.shift.any():
            found[..., :-1] -= found[..., -1:] * self.shift.astype(rest.dtype)
        return found

    def smooth(self, w: Array) -> tuple[float, Array, Array]:
        """The logistic losses and the ridge of node 0, with their slope, and the scores."""
        score = self.scores(w)
        value = self.eta / 2 * float(np.sum(w[0] ** 2)) + float(np.sum(np.logaddexp(0.0, score) - self.said * score))
        slope = self.gathered(expit(score) - self.said)
        slope[0] += self.eta * w[0]
        return value, slope, score

    def bend(self, score: Array) -> Array:
        """(n_labels, n_problems) the second derivative of each loss."""
        return np.asarray(expit(score) * expit(-score))

    def curved(self, bend: Array, direction: Array) -> Array:
        """The second derivative of `smooth`, times a direction."""
        found = self.gathered(bend * self.scores(direction))
        found[0] += self.eta * direction[0]
        return found

    def rough_curvature(self, bend: Array) -> Array:
        """(n_nodes, n_problems, n_features + 1) its diagonal, were every node's items like all items."""
        total = np.zeros(self.shape[:2])
        np.add.at(total, self.node, bend)
        found = total[..., None] * self._squares + 1e-9 * self.eta
        found[0] += self.eta
        return np.asarray(found)

    @cached_property
    def _squares(self) -> Array:
        """(n_features + 1,) mean square of each feature; of the one that is added, 1."""
        X = self.X
        squares = X.multiply(X).mean(axis=0) if hasattr(X, "tocsr") else np.einsum("ij,ij->j", X, X) / len(X)
        return np.append(np.maximum(np.asarray(squares).ravel() - self.shift**2, 0.0), 1.0)

    @cached_property
    def pooled(self) -> Array:
        """(n_problems, n_features + 1) weights that all nodes would share: one regression, with the ridge."""
        items, place = np.unique(np.concatenate([items for items, _ in self.labels]), return_inverse=True)
        X, times = self.X[items], np.bincount(place)[:, None].astype(float)
        said = np.zeros((len(items), self.shape[1]))
        np.add.at(said, place, self.said)

        def loss(w: Array) -> tuple[float, Array]:
            score = X @ w[:, :-1].T + (w[:, -1] - w[:, :-1] @ self.shift)
            value = self.eta / 2 * float(np.sum(w**2)) + float(np.sum(times * np.logaddexp(0.0, score) - said * score))
            rest, slope = times * expit(score) - said, self.eta * w
            total = rest.sum(axis=0)[:, None]
            return value, slope + np.hstack([_times(rest, X) - total * self.shift, total])

        return descend(loss, np.zeros(self.shape[1:]), 1 / np.sqrt(len(self.node) / 4 * self._squares + self.eta))


def _times(rest: Array, rows: Any) -> Array:
    return np.asarray((rows.T @ rest).T if hasattr(rows, "tocsr") else rest.T @ rows)


def descend(loss: Callable[[Array], tuple[float, Array]], start: Array, scale: Array | float = 1.0) -> Array:
    """The minimum by L-BFGS, tightly; `scale` is the size of a step that matters."""
    from scipy.optimize import minimize

    def flat_loss(flat: Array) -> tuple[float, Array]:
        value, slope = loss(flat.reshape(start.shape) * scale)
        return value, (slope * scale).ravel()

    options = {"maxiter": 1000, "maxfun": 2000, "ftol": 1e-13, "gtol": 1e-7}
    found = minimize(flat_loss, (start / scale).ravel(), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x.reshape(start.shape) * scale)
