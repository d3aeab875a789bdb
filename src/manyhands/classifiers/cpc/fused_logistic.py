"""Logistic regressions with a fusion penalty (the convex problem of CPC), solved by ADMM; needs no torch.

    min  f(w) + strength sum over edges ||w_j - w_k||
    f(w) = sum over labels of log(1 + exp(s)) - y s  +  eta / 2 ||w_0||^2,   s = w_node . x      `Nodes`

ADMM splits u = w_j - w_k on each edge (u = D w), with Lagrange multipliers phi and step size rho:

    w    one Newton step on f(w) + rho / 2 sum over edges ||w_j - w_k - u - phi / rho||^2
    v = rho (w_j - w_k) - phi,   phi = -(v projected to norm <= strength),   u = (v + phi) / rho

This is the soft thresholding of v by `strength`, without division by a norm of 0. The multipliers phi are the only
array over edges that is kept, since u - D w = (phi - phi of the previous iteration) / rho. The binary problems of all
classes are solved side by side.

ADMM starts at the pooled solution with the smallest multipliers for which it is stationary: where no norm of these
exceeds `strength`, the pooled solution is the optimum already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.classifiers.cpc.worker_graph import Graph
from manyhands.classifiers.cpc.worker_regressions import Nodes, minimise
from manyhands.em.kernels import Array

_CG_STEPS, _CG_TOLERANCE = 25, 0.2  # conjugate gradients in a Newton step: maximal steps, relative residual at the end
_RESIDUAL_RATIO = 5.0  # ratio of primal and dual residual beyond which rho is adapted


class State(NamedTuple):
    """Variables of ADMM after an iteration.

    Attributes
    ----------
    w : ndarray of shape (n_nodes, n_problems, n_features + 1)
        Weights.
    phi : ndarray of shape (n_edges, n_problems, n_features + 1)
        Lagrange multipliers.
    is_separated : ndarray of shape (n_edges,)
        Whether u is not 0: the two classifiers of the edge differ.
    rho : float or None
        Step size; None before the first iteration.
    """

    w: Array
    phi: Array
    is_separated: npt.NDArray[np.bool_]
    rho: float | None = None


class Step(NamedTuple):
    """What one iteration of ADMM reports.

    Attributes
    ----------
    objective : float
        Augmented Lagrangian.
    primal : float
        Primal residual ||D w - u||, relative to ||D w||.
    dual : float
        Dual residual: norm of gradient f - D' phi, relative to the larger of the two norms.
    """

    objective: float
    primal: float
    dual: float


def pooled_state(nodes: Nodes, graph: Graph) -> State:
    """Return the pooled solution, with the multipliers of smallest norm that satisfy D' phi = gradient of f.

    Parameters
    ----------
    nodes : Nodes
        The regressions.
    graph : Graph
        The edges. Without any, all weights are 0.

    Returns
    -------
    State
    """
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    shape = nodes.shape
    if len(graph.edges) == 0:
        return State(np.zeros(shape), np.zeros((0, *shape[1:])), np.zeros(0, bool))
    w = np.repeat(nodes.pooled[None], len(nodes.labels), axis=0)
    gradient = nodes.loss_and_gradient(w)[1].reshape(len(w), -1)
    potential = np.zeros(gradient.shape)  # solves L potential = gradient; L is singular, so node 0 is fixed at 0
    potential[1:] = splu(csc_array(graph.laplacian)[1:, 1:]).solve(gradient[1:])
    phi = np.asarray(graph.incidence @ potential).reshape(-1, *shape[1:])
    return State(w, phi, np.zeros(len(phi), bool))


def norms(v: Array) -> Array:
    """Return the Euclidean norm of the vector of each edge and problem, (n_edges, n_problems)."""
    return np.asarray(np.sqrt(np.einsum("ekd,ekd->ek", v, v)))


def max_norm(phi: Array) -> float:
    """Return the largest of `norms`; 0 without edges."""
    return float(np.max(norms(phi), initial=0.0))


def project(v: Array, strength: float) -> Array:
    """Return the vector of each edge and problem, projected to the ball of radius `strength`."""
    return np.asarray(v * np.minimum(1.0, strength / np.maximum(norms(v), 1e-300))[..., None])


def solve(
    nodes: Nodes, graph: Graph, start: State, strength: float, *, rho: float, tol: float, max_iter: int
) -> tuple[State, list[Step]]:
    """Run ADMM until both relative residuals are at most `tol`.

    Parameters
    ----------
    nodes : Nodes
        The regressions.
    graph : Graph
        The edges. Without any, each regression is fitted on its own.
    start : State
        Where to begin: `pooled_state`, or the result for another strength.
    strength : float
        Factor of the fusion penalty of each edge.
    rho : float
        Initial step size, unless `start` has one; it is adapted to the ratio of the residuals.
    tol : float
        Relative tolerance of both residuals.
    max_iter : int
        Maximal number of iterations.

    Returns
    -------
    state : State
    history : list of Step
        One entry per iteration.
    """
    if len(graph.edges) == 0:
        w = minimise(lambda w: nodes.loss_and_gradient(w)[:2], start.w)
        return start._replace(w=w), [Step(nodes.loss_and_gradient(w)[0], 0.0, 0.0)]
    if max_norm(start.phi) <= strength * (1 + 1e-9) and not start.is_separated.any():
        return start, [Step(nodes.loss_and_gradient(start.w)[0], 0.0, 0.0)]
    w, phi, rho = start.w, project(start.phi, strength), start.rho or rho
    is_separated = np.zeros(len(phi), bool)
    dual_term = graph.incidence_transposed(phi)
    split_term = np.zeros_like(w)  # rho (L w - D' u), which is 0 where u = D w
    current = nodes.loss_and_gradient(w)
    history: list[Step] = []
    while len(history) < max_iter:
        w, current = newton_step(nodes, graph, w, current, split_term - dual_term, rho)
        edge_terms, violation = update_multipliers(graph, w, phi, is_separated, strength, rho)
        dual_term, before = graph.incidence_transposed(phi), dual_term
        split_term = before - dual_term
        primal, dual = violation / difference_norm(graph, w), dual_residual(current[1], dual_term)
        history.append(Step(current[0] + edge_terms, primal, dual))
        if max(primal, dual) <= tol:
            break
        n = len(history)
        # At iterations 1, 2, 4, 8, ... only: ADMM converges for a fixed rho.
        if n & (n - 1) == 0 and max(primal, dual) > _RESIDUAL_RATIO * min(primal, dual):
            change = float(np.clip(np.sqrt(primal / max(dual, 1e-300)), 0.5, 2.0))
            rho, split_term = rho * change, split_term * change
    return State(w, phi, is_separated, rho), history


def difference_norm(graph: Graph, w: Array) -> float:
    """Return ||D w||, at least a hundredth of its value for orthogonal weights at the ends of each edge."""
    orthogonal = float(graph.degree @ np.sum(w**2, axis=(1, 2)))
    return max(float(np.vdot(w, graph.laplacian_product(w))), 1e-4 * orthogonal, 1e-300) ** 0.5


def dual_residual(gradient: Array, dual_term: Array) -> float:
    """Return ||gradient f - D' phi|| relative to the larger of the two norms."""
    size = max(float(np.linalg.norm(gradient)), float(np.linalg.norm(dual_term)), 1e-300)
    return float(np.linalg.norm(gradient - dual_term)) / size


def update_multipliers(
    graph: Graph, w: Array, phi: Array, is_separated: npt.NDArray[np.bool_], strength: float, rho: float
) -> tuple[float, float]:
    """Do the u and phi steps of ADMM.

    Parameters
    ----------
    graph : Graph
        The edges.
    w : ndarray of shape (n_nodes, n_problems, n_features + 1)
        Weights.
    phi : ndarray of shape (n_edges, n_problems, n_features + 1)
        Lagrange multipliers, updated in place.
    is_separated : ndarray of shape (n_edges,)
        Whether u is not 0, updated in place.
    strength : float
        Factor of the fusion penalty.
    rho : float
        Step size.

    Returns
    -------
    edge_terms : float
        The terms of the augmented Lagrangian that belong to edges.
    violation : float
        ||D w - u||.
    """
    flat, penalty, cross, square = w.reshape(len(w), -1), 0.0, 0.0, 0.0
    for chunk, difference in graph.chunks:
        old = phi[chunk]
        v = np.asarray(difference @ flat).reshape(old.shape)
        v *= rho
        v -= old
        norm = norms(v)
        v *= -np.minimum(1.0, strength / np.maximum(norm, 1e-300))[..., None]  # the new phi
        gap = v - old  # rho (u - D w)
        cross, square = cross + float(np.vdot(gap, v)), square + float(np.vdot(gap, gap))
        penalty += float(np.maximum(norm - strength, 0.0).sum())  # rho ||u||
        is_separated[chunk] = (norm > strength).any(axis=1)
        phi[chunk] = v
    return (strength * penalty + cross + square / 2) / rho, square**0.5 / rho


def newton_step(
    nodes: Nodes, graph: Graph, w: Array, current: tuple[float, Array, Array], linear: Array, rho: float
) -> tuple[Array, tuple[float, Array, Array]]:
    """Do the w step of ADMM: a Newton step by conjugate gradients, with backtracking.

    Parameters
    ----------
    nodes : Nodes
        The regressions.
    graph : Graph
        The edges.
    w : ndarray of shape (n_nodes, n_problems, n_features + 1)
        Weights.
    current : tuple
        Value, gradient and scores of f at w.
    linear : ndarray of shape (n_nodes, n_problems, n_features + 1)
        Gradient of the edges' terms at w.
    rho : float
        Step size; the Hessian of the edges' terms is rho L.

    Returns
    -------
    w : ndarray
        New weights.
    current : tuple
        Value, gradient and scores of f at the new weights.
    """
    value, gradient, score = current
    curvature = nodes.hessian_weights(score)
    product, preconditioner = _newton_system(nodes, graph, curvature, rho)
    target = -gradient - linear
    scale = max(float(np.linalg.norm(target)), 1e-300)
    step = scale * conjugate_gradients(product, preconditioner, (target / scale).astype(np.float32)).astype(float)
    first, second = float(np.vdot(linear, step)), rho * float(np.vdot(step, graph.laplacian_product(step)))
    for t in 0.5 ** np.arange(30):  # far from the optimum a full step may increase the objective
        new = nodes.loss_and_gradient(w + t * step)
        if new[0] + t * first + t**2 / 2 * second <= value + 1e-12 * abs(value):
            break
    return w + t * step, new


def _newton_system(
    nodes: Nodes, graph: Graph, curvature: Array, rho: float
) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """Products with the Hessian of f + rho / 2 <w, L w> and with its preconditioner, in single precision.

    The preconditioner is the inverse for uncorrelated features and a complete graph: a diagonal plus a matrix of rank
    one per feature, inverted by the Sherman-Morrison formula.
    """
    n_nodes = nodes.shape[0]
    degree = (graph.degree * n_nodes / (n_nodes - 1))[:, None, None]
    diagonal = nodes.hessian_diagonal(curvature)
    inverse = (1 / (diagonal + rho * degree)).astype(np.float32)
    rank_one = (rho * degree * inverse / np.sum(degree * diagonal * inverse, axis=0)).astype(np.float32)
    curvature, weight = curvature.astype(np.float32), (degree * inverse).astype(np.float32)
    rho32 = np.float32(rho)

    def product(direction: Array) -> Array:
        return nodes.hessian_product(curvature, direction) + rho32 * graph.laplacian_product(direction)

    def preconditioner(residual: Array) -> Array:
        return np.asarray(residual * inverse + rank_one * np.sum(weight * residual, axis=0))

    return product, preconditioner


def conjugate_gradients(product: Callable[[Any], Any], preconditioner: Callable[[Any], Any], target: Any) -> Any:
    """Solve product(d) = target approximately by preconditioned conjugate gradients.

    Parameters
    ----------
    product : callable (ndarray) -> ndarray
        Multiplies with a positive definite matrix.
    preconditioner : callable (ndarray) -> ndarray
        Multiplies with an approximation of its inverse.
    target : ndarray
        Right-hand side, of norm 1.

    Returns
    -------
    ndarray
        d, where the norm of the residual is at most 0.2 or 25 steps are done.
    """
    solution, residual = np.zeros_like(target), target.copy()
    preconditioned = preconditioner(residual)
    direction, size = preconditioned, np.vdot(residual, preconditioned)
    for _ in range(_CG_STEPS):
        if size <= 0.0 or np.linalg.norm(residual) <= _CG_TOLERANCE:
            break
        image = product(direction)
        step = size / np.vdot(direction, image)
        solution += step * direction
        residual -= step * image
        preconditioned = preconditioner(residual)
        size, before = np.vdot(residual, preconditioned), size
        direction = preconditioned + size / before * direction
    return solution
