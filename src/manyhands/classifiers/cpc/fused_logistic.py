"""Logistic regressions that attract each other (the convex problem of CPC), by ADMM; needs no torch.

    min  sum over labels of log(1 + exp(s)) - y s,  s = w_j . x_i     nodes: 0 the target, then the workers
         + strength sum over edges ||w_j - w_k||  +  eta / 2 ||w_0||^2

ADMM, with u = w_j - w_k on each edge (u = D w) and its multiplier phi:

    w    a Newton step on the smooth part + rho / 2 sum ||w_j - w_k - u - phi / rho||^2
    v = rho (w_j - w_k) - phi,   phi = -(v, cut to length strength),   u = (v + phi) / rho

which is the shrinking of v by `strength`, and needs no division by a length of 0. No array of the edges' size is held
but phi, as u - D w = (phi - phi_before) / rho. All classes are solved side by side. It starts at the pooled solution
with the multipliers that would hold it: where none is longer than `strength`, that is the answer already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.classifiers.cpc.worker_graph import Graph
from manyhands.classifiers.cpc.worker_regressions import Nodes, descend
from manyhands.em.kernels import Array

_CG_STEPS, _CG_ENOUGH = 25, 0.2  # at most in a Newton step, and the share of the slope that may remain
_UNEVEN = 5.0  # how many times one residual may exceed the other before rho changes


class State(NamedTuple):
    """Where a solution has come to."""

    w: Array  # (n_nodes, n_problems, n_features + 1)
    phi: Array  # (n_edges, n_problems, n_features + 1)
    apart: npt.NDArray[np.bool_]  # (n_edges,) whether u is not 0
    rho: float | None = None


class Step(NamedTuple):
    """The augmented Lagrangian, and how far D w = u and slope = D' phi are missed, as shares of what they are about."""

    objective: float
    primal: float
    dual: float


def pooled_state(nodes: Nodes, graph: Graph) -> State:
    """All nodes at the pooled weights, with the shortest multipliers that hold each of them there."""
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    shape = nodes.shape
    if len(graph.edges) == 0:
        return State(np.zeros(shape), np.zeros((0, *shape[1:])), np.zeros(0, bool))
    w = np.repeat(nodes.pooled[None], len(nodes.labels), axis=0)
    slope = nodes.smooth(w)[1].reshape(len(w), -1)
    potential = np.zeros(slope.shape)
    potential[1:] = splu(csc_array(graph.laplacian)[1:, 1:]).solve(slope[1:])
    phi = np.asarray(graph.incidence @ potential).reshape(-1, *shape[1:])
    return State(w, phi, np.zeros(len(phi), bool))


def lengths(v: Array) -> Array:
    """(n_edges, n_problems) of each edge's vector, one for each class."""
    return np.asarray(np.sqrt(np.einsum("ekd,ekd->ek", v, v)))


def longest(phi: Array) -> float:
    return float(np.max(lengths(phi), initial=0.0))


def cut(v: Array, strength: float) -> Array:
    """Each edge's vector, one for each class, at most `strength` long."""
    return np.asarray(v * np.minimum(1.0, strength / np.maximum(lengths(v), 1e-300))[..., None])


def solve(
    nodes: Nodes, graph: Graph, start: State, strength: float, *, rho: float, tol: float, max_iter: int
) -> tuple[State, list[Step]]:
    """ADMM until both residuals are at most `tol`; rho follows them, and goes on from the start if that has one."""
    if len(graph.edges) == 0:  # nothing pulls: every node alone, in one descent
        w = descend(lambda w: nodes.smooth(w)[:2], start.w)
        return start._replace(w=w), [Step(nodes.smooth(w)[0], 0.0, 0.0)]
    if longest(start.phi) <= strength * (1 + 1e-9) and not start.apart.any():
        return start, [Step(nodes.smooth(start.w)[0], 0.0, 0.0)]
    w, phi, rho = start.w, cut(start.phi, strength), start.rho or rho
    apart = np.zeros(len(phi), bool)
    held, push = graph.held(phi), np.zeros_like(w)  # push = rho (L w - D' u), which is 0 if u = D w
    now = nodes.smooth(w)
    history: list[Step] = []
    while len(history) < max_iter:
        w, now = newton_step(nodes, graph, w, now, push - held, rho)
        rest, missed = pull_edges(graph, w, phi, apart, strength, rho)
        held, before = graph.held(phi), held
        push = before - held
        history.append(Step(now[0] + rest, missed / size_of_gaps(graph, w), miss(now[1], held)))
        _, primal, dual = history[-1]
        if max(primal, dual) <= tol:
            break
        n = len(history)
        if n & (n - 1) == 0 and max(primal, dual) > _UNEVEN * min(primal, dual):  # more and more seldom, so it settles
            change = float(np.clip(np.sqrt(primal / max(dual, 1e-300)), 0.5, 2.0))
            rho, push = rho * change, push * change
    return State(w, phi, apart, rho), history


def size_of_gaps(graph: Graph, w: Array) -> float:
    """||D w||, but at least a hundredth of what it would be if neighbours had nothing in common."""
    alone = float(graph.degree @ np.sum(w**2, axis=(1, 2)))
    return max(float(np.vdot(w, graph.spread(w))), 1e-4 * alone, 1e-300) ** 0.5


def miss(slope: Array, held: Array) -> float:
    size = max(float(np.linalg.norm(slope)), float(np.linalg.norm(held)), 1e-300)
    return float(np.linalg.norm(slope - held)) / size


def pull_edges(
    graph: Graph, w: Array, phi: Array, apart: npt.NDArray[np.bool_], strength: float, rho: float
) -> tuple[float, float]:
    """New multipliers, in place; the Lagrangian's terms that are about edges, and ||D w - u||."""
    flat, pulled, cross, square = w.reshape(len(w), -1), 0.0, 0.0, 0.0
    for part, difference in graph.parts:
        old = phi[part]
        v = np.asarray(difference @ flat).reshape(old.shape)
        v *= rho
        v -= old
        length = lengths(v)
        v *= -np.minimum(1.0, strength / np.maximum(length, 1e-300))[..., None]  # phi
        gap = v - old  # rho (u - D w)
        cross, square = cross + float(np.vdot(gap, v)), square + float(np.vdot(gap, gap))
        pulled += float(np.maximum(length - strength, 0.0).sum())
        apart[part] = (length > strength).any(axis=1)
        phi[part] = v
    return (strength * pulled + cross + square / 2) / rho, square**0.5 / rho


def newton_step(
    nodes: Nodes, graph: Graph, w: Array, now: tuple[float, Array, Array], linear: Array, rho: float
) -> tuple[Array, tuple[float, Array, Array]]:
    """Better weights, and the smooth part there; `linear` is the slope that the edges add."""
    value, slope, score = now
    bend, weight = nodes.bend(score), (graph.degree * len(w) / (len(w) - 1))[:, None, None]
    own = nodes.rough_curvature(bend)
    down = (1 / (own + rho * weight)).astype(np.float32)
    together = (rho * weight * down / np.sum(weight * own * down, axis=0)).astype(np.float32)
    bend, weight = bend.astype(np.float32), (weight * down).astype(np.float32)
    rho32 = np.float32(rho)

    def product(d: Array) -> Array:
        return nodes.curved(bend, d) + rho32 * graph.spread(d)

    def rough(r: Array) -> Array:
        """Its inverse, were features independent and the graph complete."""
        return np.asarray(r * down + together * np.sum(weight * r, axis=0))

    target = -slope - linear
    scale = max(float(np.linalg.norm(target)), 1e-300)
    step = scale * conjugate_gradients(product, rough, (target / scale).astype(np.float32)).astype(float)
    along, across = float(np.vdot(linear, step)), rho * float(np.vdot(step, graph.spread(step)))
    for t in 0.5 ** np.arange(30):  # from far away a full step may overshoot
        there = nodes.smooth(w + t * step)
        if there[0] + t * along + t**2 / 2 * across <= value + 1e-12 * abs(value):
            break
    return w + t * step, there


def conjugate_gradients(product: Callable[[Any], Any], rough: Callable[[Any], Any], target: Any) -> Any:
    """Roughly the d for which product(d) = target, whose length is 1."""
    found, left = np.zeros_like(target), target.copy()
    near = rough(left)
    direction, size = near, np.vdot(left, near)
    for _ in range(_CG_STEPS):
        if size <= 0.0 or np.linalg.norm(left) <= _CG_ENOUGH:
            break
        bent = product(direction)
        along = size / np.vdot(direction, bent)
        found += along * direction
        left -= along * bent
        near = rough(left)
        size, before = np.vdot(left, near), size
        direction = near + size / before * direction
    return found
