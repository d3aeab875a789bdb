"""Logistic regressions that attract each other (the convex problem of CPC), by ADMM; needs no torch.

    min  sum over labels of log(1 + exp(s)) - y s,  s = w_j . x_i     nodes: 0 the target, then the workers
         + strength sum over edges ||w_j - w_k||  +  eta / 2 ||w_0||^2

ADMM, with u = w_j - w_k on each edge and its multiplier phi:

    w    L-BFGS on the smooth part + rho / 2 sum ||w_j - w_k - u - phi / rho||^2
    v = rho (w_j - w_k) - phi,   phi = -(v, cut to length strength),   u = (v + phi) / rho

which is the shrinking of v by `strength`, and needs no division by a length of 0. All classes are solved side by side.
It starts at the pooled solution with the multipliers that would hold it: where none is longer than `strength`, that
is the answer already.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from manyhands.kernels import Array


class State(NamedTuple):
    """Weights (n_nodes, n_features + 1, n_problems), multipliers and differences (n_edges, n_features + 1, ...)."""

    w: Array
    phi: Array
    u: Array


@dataclass(frozen=True, eq=False)
class Problem:
    """Labels by node, and the edges along which nodes pull each other.

    `X` is dense or CSR, divided by its features' spreads; `shift` centres it without making it dense. A one is
    added to every row. `labels` holds, for each node, its items and (n, n_problems) what it said of them, 0 or 1.
    """

    X: Any
    shift: Array
    labels: list[tuple[npt.NDArray[np.intp], Array]]
    edges: npt.NDArray[np.intp]  # (n_edges, 2)
    eta: float
    n_problems: int

    @property
    def shape(self) -> tuple[int, int, int]:
        return len(self.labels), len(self.shift) + 1, self.n_problems

    def incidence(self) -> Any:
        """(n_edges, n_nodes) sparse: times w, it gives the differences along edges."""
        from scipy.sparse import coo_array

        n = len(self.edges)
        value, row = np.repeat([1.0, -1.0], n), np.tile(np.arange(n), 2)
        return coo_array((value, (row, self.edges.T.ravel())), shape=(n, len(self.labels))).tocsr()

    def smooth(self, w: Array) -> tuple[float, Array]:
        """The logistic losses and the ridge of the target, with their gradient."""
        value, slope = self.eta / 2 * float(np.sum(w[0] ** 2)), np.zeros(self.shape)
        slope[0] = self.eta * w[0]
        for node, (items, y) in enumerate(self.labels):
            if len(items):  # rows are gathered when they are needed: memory grows with one node's labels
                rows = self.X[items]
                score = rows @ w[node, :-1] + (w[node, -1] - self.shift @ w[node, :-1])
                value += float(np.sum(np.logaddexp(0.0, score) - y * score))
                rest = expit(score) - y
                slope[node, :-1] += rows.T @ rest - np.outer(self.shift, rest.sum(axis=0))
                slope[node, -1] += rest.sum(axis=0)
        return value, slope

    def pooled(self) -> Array:
        """The weights that all nodes would share: logistic regression on every label, with the target's ridge."""

        def loss(flat: Array) -> tuple[float, Array]:
            value, slope = self.smooth(np.broadcast_to(flat.reshape(self.shape[1:]), self.shape))
            return value, slope.sum(axis=0).ravel()

        return descend(loss, np.zeros(self.shape[1:]), max_iter=1000)


def descend(loss: Any, start: Array, max_iter: int) -> Array:
    """L-BFGS from here; tight, so that it is `max_iter` which ends an inner step."""
    from scipy.optimize import minimize

    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "ftol": 1e-13, "gtol": 1e-7}
    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x.reshape(start.shape))


def pooled_state(problem: Problem) -> State:
    """All nodes at the pooled weights, with the shortest multipliers that hold each of them there."""
    from scipy.sparse.linalg import splu

    w = np.repeat(problem.pooled()[None], len(problem.labels), axis=0)
    edge = problem.incidence()
    if len(problem.edges) == 0:
        return State(np.zeros(problem.shape), *np.zeros((2, 0, *problem.shape[1:])))
    slope = problem.smooth(w)[1].reshape(len(w), -1)
    potential = np.zeros(slope.shape)
    potential[1:] = splu((edge.T @ edge).tocsc()[1:, 1:]).solve(slope[1:])
    phi = (edge @ potential).reshape(-1, *problem.shape[1:])
    return State(w, phi, np.zeros_like(phi))


def longest(phi: Array) -> float:
    return float(np.max(np.linalg.norm(phi, axis=1), initial=0.0))


def cut(v: Array, strength: float) -> Array:
    """Each edge's vector, one for each class, at most `strength` long."""
    length = np.linalg.norm(v, axis=1, keepdims=True)
    return np.asarray(v * np.minimum(1.0, strength / np.maximum(length, 1e-300)))


def solve(
    problem: Problem, start: State, strength: float, *, rho: float, tol: float, max_iter: int
) -> tuple[State, list[float]]:
    """ADMM until the augmented Lagrangian changes by less than a share `tol`; its values come second."""
    if len(problem.edges) == 0:  # nothing pulls: every node alone, in one descent
        w = descend(lambda flat: _flat(problem.smooth(flat.reshape(problem.shape))), start.w, 1000)
        return State(w, start.phi, start.u), [problem.smooth(w)[0]]
    if longest(start.phi) <= strength * (1 + 1e-9) and not start.u.any():
        return start, [problem.smooth(start.w)[0]]
    edge = problem.incidence()
    laplacian = edge.T @ edge
    w, phi, u = start.w, cut(start.phi, strength), start.u
    history: list[float] = []
    while len(history) < max_iter:
        pull = (edge.T @ (u + phi / rho).reshape(len(u), -1)).reshape(w.shape)

        def loss(flat: Array) -> tuple[float, Array]:
            at = flat.reshape(problem.shape)
            value, slope = problem.smooth(at)
            spread = (laplacian @ at.reshape(len(at), -1)).reshape(at.shape)
            return value + rho * float(np.sum(at * (spread / 2 - pull))), (slope + rho * (spread - pull)).ravel()  # noqa: B023

        w = descend(loss, w, max_iter=10)
        v = rho * (edge @ w.reshape(len(w), -1)).reshape(u.shape) - phi
        phi_before, phi = phi, -cut(v, strength)
        u = (v + phi) / rho
        gap = (phi - phi_before) / rho  # u - (w_j - w_k)
        lengths = float(np.linalg.norm(u, axis=1).sum())
        history.append(problem.smooth(w)[0] + strength * lengths + float(np.sum(gap * (phi + rho / 2 * gap))))
        if len(history) > 1 and abs(history[-1] - history[-2]) <= tol * abs(history[-2]):
            break
    return State(w, phi, u), history


def _flat(found: tuple[float, Array]) -> tuple[float, Array]:
    return found[0], found[1].ravel()


def clusters(problem: Problem, state: State) -> npt.NDArray[np.int64]:
    """(n_nodes,) a number for each group of nodes that have become one; the target's is 0."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    fused = problem.edges[~state.u.any(axis=(1, 2))]
    n = len(problem.labels)
    graph = coo_array((np.ones(len(fused)), (fused[:, 0], fused[:, 1])), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)
