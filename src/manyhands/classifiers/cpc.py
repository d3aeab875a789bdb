"""CPC, clustering crowds (Kajino, Tsuboi and Kashima 2013): a convex model of personal classifiers.

The paper in order, and where each part stands below:

1. Each worker has a logistic regression, and so has the target; all share the features: `Nodes`.
2. A fusion penalty on the distances between them makes workers with similar errors equal: `choose_edges`.
3. The convex problem is solved by ADMM with Newton steps by conjugate gradients: `solve`.
4. Workers whose classifiers are equal form a cluster: `clusters`.

`CPC` chooses the strength of the penalty by held-out labels and predicts with the target.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from manyhands._core.arrays import Array
from manyhands._core.randomness import Seed, make_generator
from manyhands._core.system import check_memory
from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.network import FitResult, TrainingContext, TrainingData
from manyhands.exceptions import ParameterError
from manyhands.features import Rows
from manyhands.heldout import class_shares, hold_out, predictive_log_likelihood, worker_confusions
from manyhands.linear import PrincipalAxes, one_vs_rest_proba, standardise_and_rotate
from manyhands.validation import Constraint, NoneOr, Number, OneOf, RandomState

# ----------------------------------------------------------------------------------------------------
# Logistic regressions of all workers at once, each on its own labels of shared features.
#
# Node 0 is the target classifier, which has an L2 penalty; the other nodes are the workers. Weights have the shape
# (n_nodes, n_problems, n_features + 1), with the intercept last. Two classes are one binary problem, more classes one
# binary problem per class (one against the rest).

_CACHE_BYTES = 1 << 28  # memory for a float32 copy of the rows of every label; beyond it, rows are indexed when needed

# Of each node: the codes of its items, and their binary targets (n_labels, n_problems).
NodeLabels = list[tuple[npt.NDArray[np.intp], Array]]


def labels_by_node(annotations: Annotations, gold: npt.NDArray[np.int32] | None) -> tuple[NodeLabels, int]:
    """Group the labels by node: gold for the target, then the labels of each worker who has any.

    Shapes: gold (n_items,); returns labels (n,).
    """
    n_classes = annotations.n_classes
    columns = np.arange(n_classes)[(1 if n_classes == 2 else 0) : (0 if n_classes == 1 else None)]
    codes = np.full(annotations.n_items, -1) if gold is None else gold
    gold_items = np.flatnonzero(codes >= 0)
    labels = [(gold_items, (codes[gold_items, None] == columns).astype(float))]
    order = np.argsort(annotations.worker, kind="stable")
    for of_worker in np.split(order, np.flatnonzero(np.diff(annotations.worker[order])) + 1):
        target = (annotations.label[of_worker, None] == columns).astype(float)
        labels.append((annotations.item[of_worker].astype(np.intp), target))
    return labels, len(columns)


class Nodes:
    """The smooth part of CPC's objective: logistic losses of all nodes and the L2 penalty of node 0.

    f(w) = sum over labels of log(1 + exp(s)) - y s  +  eta / 2 ||w_0||^2,   s = w_node . (x_item - shift, 1)

    Shapes: X (n_items, n_features); shift (n_features,); labels (n,).
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

        Shapes: w (n_nodes, n_problems, n_features + 1); returns (n_labels, n_problems).
        """
        scores = (w[..., -1] - w[..., :-1] @ self.shift.astype(w.dtype))[self.node]
        for node, own in self.slices:
            scores[own] += self.rows(node, w.dtype) @ w[node, :, :-1].T
        return np.asarray(scores)

    def scores_transposed(self, values: Array) -> Array:
        """Apply the transpose of the linear map `scores`: from values of labels to a gradient of weights.

        Shapes: values (n_labels, n_problems); returns (n_nodes, n_problems, n_features + 1).
        """
        product = np.zeros(self.shape, values.dtype)
        for node, own in self.slices:
            product[node, :, :-1] = _transposed_product(values[own], self.rows(node, values.dtype))
            product[node, :, -1] = values[own].sum(axis=0)
        if self.shift.any():
            product[..., :-1] -= product[..., -1:] * self.shift.astype(values.dtype)
        return product

    def loss_and_gradient(self, w: Array) -> tuple[float, Array, Array]:
        """Return the negative log-likelihood with the L2 penalty of node 0, its gradient, and the scores.

        Shapes: w (n_nodes, n_problems, n_features + 1); returns gradient (n_nodes, n_problems, n_features + 1);
        returns score (n_labels, n_problems).
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

        Shapes: weight (n_labels, n_problems); direction (n_nodes, n_problems, n_features + 1); returns (n_nodes,
        n_problems, n_features + 1).
        """
        product = self.scores_transposed(weight * self.scores(direction))
        product[0] += self.eta * direction[0]
        return product

    def hessian_diagonal(self, weight: Array) -> Array:
        """Return an approximation of the Hessian's diagonal, with the mean squares of all items for every node.

        Shapes: weight (n_labels, n_problems); returns (n_nodes, n_problems, n_features + 1).
        """
        total = np.zeros(self.shape[:2])
        np.add.at(total, self.node, weight)
        diagonal = total[..., None] * self._mean_squares + 1e-9 * self.eta
        diagonal[0] += self.eta
        return np.asarray(diagonal)

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
    """Minimise a smooth function by L-BFGS to high precision."""
    from scipy.optimize import minimize

    def scaled_loss(flat: Array) -> tuple[float, Array]:
        value, gradient = loss(flat.reshape(start.shape) * scale)
        return value, (gradient * scale).ravel()

    options = {"maxiter": 1000, "maxfun": 2000, "ftol": 1e-13, "gtol": 1e-7}
    optimum = minimize(scaled_loss, (start / scale).ravel(), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(optimum.x.reshape(start.shape) * scale)


# ----------------------------------------------------------------------------------------------------
# The graph of CPC's fusion penalty: edges between the classifiers of workers and target, and the clusters.

_CHUNK = 1 << 16  # numbers of an array over edges that are processed together, so that they stay in the cache
_ALL_PAIRS, _BYTES, _NEAREST = 100, 1 << 30, 5  # "auto": limits of workers and memory for all pairs; else neighbours
_BLOCK = 1024  # workers compared with all others at once


class Graph:
    """Edges between nodes, with the incidence matrix D and the graph Laplacian L = D' D.

    Shapes: edges (n_edges, 2).
    """

    def __init__(self, edges: npt.NDArray[np.intp], n_nodes: int, n_problems: int, width: int) -> None:
        from scipy.sparse import coo_array

        n = len(edges)
        value, row = np.repeat([1.0, -1.0], n), np.tile(np.arange(n), 2)
        self.edges = edges
        self.incidence = coo_array((value, (row, edges.T.ravel())), shape=(n, n_nodes)).tocsr()
        laplacian = self.incidence.T @ self.incidence
        self.degree = laplacian.diagonal()
        self.laplacian = laplacian.toarray() if 4 * laplacian.nnz > n_nodes**2 else laplacian
        rows = max(1, _CHUNK // max(n_problems * width, 1))
        chunks = [slice(first, first + rows) for first in range(0, n, rows)]
        self.chunks = [(chunk, self.incidence[chunk]) for chunk in chunks]

    def laplacian_product(self, w: Array) -> Array:
        """Return L w.

        Shapes: w (n_nodes, n_problems, width); returns (n_nodes, n_problems, width).
        """
        return np.asarray(self.laplacian.astype(w.dtype) @ w.reshape(len(w), -1)).reshape(w.shape)

    def incidence_transposed(self, phi: Array) -> Array:
        """Return D' phi, the gradient of <phi, D w> in the weights w.

        Shapes: phi (n_edges, n_problems, width); returns (n_nodes, n_problems, width).
        """
        return np.asarray(self.incidence.T @ phi.reshape(len(phi), -1)).reshape(-1, *phi.shape[1:])


def choose_edges(nodes: Nodes, kind: str) -> npt.NDArray[np.intp]:
    """Return the pairs of classifiers that the penalty fuses.

    Shapes: returns (n_edges, 2).
    """
    n, edge_bytes = len(nodes.labels), 8 * 3 * nodes.shape[1] * nodes.shape[2]
    need = n * (n - 1) // 2 * edge_bytes
    if kind == "all":
        check_memory(need, f"All pairs of {n} classifiers", "Set edges='target', or take fewer features.")
    if kind == "all" or (kind == "auto" and n - 1 <= _ALL_PAIRS and need <= _BYTES):
        return np.column_stack(np.triu_indices(n, 1))
    star = np.column_stack((np.zeros(n - 1, np.intp), np.arange(1, n)))
    if kind == "nearest" or (kind == "auto" and n * (_NEAREST + 1) * edge_bytes <= _BYTES):
        return np.concatenate([star, nearest(nodes, _NEAREST)])
    return star


def nearest(nodes: Nodes, k: int) -> npt.NDArray[np.intp]:
    """Return edges between each worker and the k workers of the most similar gradient at the pooled weights.

    Similarity is the cosine. It needs no items that two workers both labelled.

    Shapes: returns (n_edges, 2).
    """
    n_workers = len(nodes.labels) - 1
    pooled = np.repeat(nodes.pooled[None], n_workers + 1, axis=0)
    gradient = nodes.loss_and_gradient(pooled)[1][1:].reshape(n_workers, -1)
    gradient /= np.maximum(np.linalg.norm(gradient, axis=1, keepdims=True), 1e-300)
    pairs = []
    for first in range(0, n_workers, _BLOCK):
        distance = -np.round(gradient[first : first + _BLOCK] @ gradient.T, 9)
        distance[np.arange(len(distance)), first + np.arange(len(distance))] = np.inf
        close = np.argsort(distance, axis=1, kind="stable")[:, : min(k, n_workers - 1)]
        pairs.append(np.column_stack([np.repeat(first + np.arange(len(distance)), close.shape[1]), close.ravel()]))
    return np.unique(np.sort(np.concatenate(pairs), axis=1), axis=0) + 1


def clusters(graph: Graph, is_separated: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the connected components of the nodes whose classifiers are equal.

    Shapes: is_separated (n_edges,); returns (n_nodes,).
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    fused = graph.edges[~is_separated]
    n = len(graph.degree)
    links = coo_array((np.ones(len(fused)), (fused[:, 0], fused[:, 1])), shape=(n, n))
    return np.asarray(connected_components(links, directed=False)[1], np.int64)


# ----------------------------------------------------------------------------------------------------
# Logistic regressions with a fusion penalty (the convex problem of CPC), solved by ADMM.
#
#     min  f(w) + strength sum over edges ||w_j - w_k||
#     f(w) = sum over labels of log(1 + exp(s)) - y s  +  eta / 2 ||w_0||^2,   s = w_node . x      `Nodes`
#
# ADMM splits u = w_j - w_k on each edge (u = D w), with Lagrange multipliers phi and step size rho:
#
#     w    one Newton step on f(w) + rho / 2 sum over edges ||w_j - w_k - u - phi / rho||^2
#     v = rho (w_j - w_k) - phi,   phi = -(v projected to norm <= strength),   u = (v + phi) / rho
#
# This is the soft thresholding of v by `strength`, without division by a norm of 0. The multipliers phi are the only
# array over edges that is kept, since u - D w = (phi - phi of the previous iteration) / rho. The binary problems of all
# classes are solved side by side.
#
# ADMM starts at the pooled solution with the smallest multipliers for which it is stationary: where no norm of these
# exceeds `strength`, the pooled solution is the optimum already.

# Conjugate gradients in a Newton step: maximal steps, and relative residual at the end. An inexact step is enough, as
# the next iteration of ADMM takes another one.
_CG_STEPS, _CG_TOLERANCE = 25, 0.2
# Ratio of primal and dual residual beyond which rho is adapted. Boyd et al. (2011, section 3.4.1) use 10 and compare at
# every iteration; here, where rho may change at iterations 1, 2, 4, 8, ... only, half of that is a choice of ours.
_RESIDUAL_RATIO = 5.0


class State(NamedTuple):
    """Variables of ADMM after an iteration."""

    w: Array  # (n_nodes, n_problems, n_features + 1)
    phi: Array  # (n_edges, n_problems, n_features + 1)
    is_separated: npt.NDArray[np.bool_]  # (n_edges,); whether u is not 0: the two classifiers of the edge differ
    rho: float | None = None  # step size; None before the first iteration


class Step(NamedTuple):
    """What one iteration of ADMM reports."""

    objective: float
    primal: float  # primal residual ||D w - u||, relative to ||D w||
    dual: float  # dual residual: norm of gradient f - D' phi, relative to the larger of the two norms


def pooled_state(nodes: Nodes, graph: Graph) -> State:
    """Return the pooled solution, with the multipliers of smallest norm that satisfy D' phi = gradient of f."""
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
    """Run ADMM until both relative residuals are at most `tol`."""
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

    Shapes: w (n_nodes, n_problems, n_features + 1); phi (n_edges, n_problems, n_features + 1); is_separated
    (n_edges,).
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

    Shapes: w (n_nodes, n_problems, n_features + 1); linear (n_nodes, n_problems, n_features + 1).
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
    """Solve product(d) = target approximately by preconditioned conjugate gradients."""
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


# ----------------------------------------------------------------------------------------------------
# CPC, clustering crowds: a classifier per worker, fused with each other and with the target classifier.
#
#     min  sum over labels of log(1 + exp(w_j . x_i)) - y_ij w_j . x_i
#          + (mu / W) sum over 0 <= j < k <= W of ||w_j - w_k||  +  eta / 2 ||w_0||^2,      w_0 is the target
#
# The fusion penalty is a norm, not its square, so that workers with similar errors get exactly equal classifiers: a
# cluster. The problem is convex. More than two classes are treated one against the rest.

_STEPS, _EVEN = 6, 0.01  # maximal number of values of mu; a difference in log-likelihood that may be chance
_ROUGHLY = 10.0  # factor of `tol` while mu is chosen


class CPC(CrowdClassifier):
    """One logistic regression per worker, fused with each other and with a target classifier that predicts.

    Use it to find clusters of workers who label alike. Features are standardised internally. Workers without labels
    take no part. Gold counts as labels of the target.

    Parameters
    ----------
    mu : float or None, default=None
        Strength of the fusion penalty: 0 leaves the classifiers independent, so that the target learns from gold alone
        and there must be some; a large value makes all equal. None starts with the value that makes all equal, and
        quarters it until the held-out log-likelihood is clearly lower.
    eta : float, default=1.0
        L2 penalty of the target.
    edges : {"auto", "all", "nearest", "target"}, default="auto"
        Pairs that are fused: all; each worker with the target only; or each worker also with the five workers whose
        gradients at the pooled classifier are most similar. "auto" is all up to 100 workers and 1 GB, otherwise nearest
        within 1 GB.
    validation : float, default=0.1
        Share of the labels held out to choose `mu`.
    rho : float, default=1.0
        Initial step size of the multipliers in ADMM; it is adapted to the residuals.
    tol : float, default=0.003
        Stop when both relative residuals of ADMM are at most this.
    max_iter : int, default=100
        Maximal number of ADMM iterations.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of the held-out split.

    Attributes
    ----------
    mu_ : float
        The strength in use.
    worker_coef_ : ndarray of shape (n_workers, n_problems, n_features + 1)
        Classifier of each worker, its intercept last; one problem for two classes, otherwise one per class.
    cluster_ : ndarray of shape (n_workers,)
        Workers with the same number have equal classifiers; 0 is the target's cluster.
    objective_ : ndarray of shape (n_iterations,)
        Augmented Lagrangian after each iteration.
    history_ : list of dict
        One dict per iteration.
    module_ : sklearn.linear_model.LogisticRegression
        The weights found, for features as they were given.

    References
    ----------
    H. Kajino, Y. Tsuboi and H. Kashima (2013), Clustering crowds, AAAI.

    Examples
    --------
    >>> import numpy as np
    >>> from manyhands import Annotations
    >>> from manyhands.classifiers import CPC
    >>> X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    >>> votes = Annotations.from_matrix(np.repeat([[0, 0, 1], [1, 1, 1]], 20, axis=0))
    >>> CPC(random_state=0).fit(X, votes).predict([[0.0, 1.0], [1.0, 0.0]]).tolist()
    [0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        "mu": NoneOr(Number(least=0)),
        "eta": Number(above=0),
        "edges": OneOf(("auto", "all", "nearest", "target")),
        "validation": Number(least=0, most=0.5),
        "rho": Number(above=0),
        "tol": Number(above=0),
        "max_iter": Number(whole=True, least=1),
        "random_state": RandomState(),
    }

    mu_: float
    worker_coef_: Array
    cluster_: npt.NDArray[Any]
    objective_: Array

    def __init__(
        self,
        mu: float | None = None,
        eta: float = 1.0,
        edges: str = "auto",
        *,
        validation: float = 0.1,
        rho: float = 1.0,
        tol: float = 3e-3,
        max_iter: int = 100,
        random_state: Seed = None,
    ) -> None:
        self.mu = mu
        self.eta = eta
        self.edges = edges
        self.validation = validation
        self.rho = rho
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _learn(self, context: TrainingContext) -> FitResult:
        data = context.data
        if self.mu == 0 and (data.gold is None or not (data.gold >= 0).any()):
            raise ParameterError(
                "With mu=0 no worker's labels reach the target classifier, which has nothing to learn from without "
                "gold: set mu above 0, leave it at None (chosen by held-out labels), or give gold."
            )
        standard = standardise_and_rotate(data.rows)
        share = 1.0 if self.mu is not None else self._choose_share(data, standard)
        nodes, graph = self._problem(data, data.annotations, standard.X, standard.shift)
        start = pooled_state(nodes, graph)
        mu = share * self._fusing_mu(start) if self.mu is None else float(self.mu)
        state, history = self._solve(nodes, graph, start, mu, self.tol)
        active, n_workers = np.unique(data.annotations.worker), data.annotations.n_workers
        worker_coef = np.repeat(standard.raw(state.w[0])[None], n_workers, axis=0)
        worker_coef[active] = [standard.raw(w) for w in state.w[1:]]
        cluster = np.zeros(n_workers, np.int64)
        cluster[active] = clusters(graph, state.is_separated)[1:]
        objective = np.array([step.objective for step in history])
        results = {"mu_": mu, "worker_coef_": worker_coef, "cluster_": cluster, "objective_": objective}
        module = as_classifier(standard.raw(state.w[0]), data.annotations.n_classes)
        return FitResult(module, [step._asdict() for step in history], results=results)

    def _problem(self, data: TrainingData, annotations: Annotations, X: Any, shift: Array) -> tuple[Nodes, Graph]:
        """The regressions of all workers and the pairs to fuse; no pairs where mu is 0 or there is one class."""
        labels, n_problems = labels_by_node(annotations, data.gold)
        nodes = Nodes(X, shift, labels, self.eta, n_problems)
        penalised = self.mu != 0 and n_problems > 0
        edges = choose_edges(nodes, self.edges) if penalised else np.zeros((0, 2), np.intp)
        return nodes, Graph(edges, *nodes.shape)

    def _solve(self, nodes: Nodes, graph: Graph, start: State, mu: float, tol: float) -> tuple[State, list[Step]]:
        strength = mu / max(len(nodes.labels) - 1, 1)
        return solve(nodes, graph, start, strength, rho=self.rho, tol=tol, max_iter=self.max_iter)

    def _fusing_mu(self, pooled: State) -> float:
        """An upper bound of the smallest mu that makes all classifiers equal."""
        return max(max_norm(pooled.phi) * (len(pooled.w) - 1), 1e-9)

    def _choose_share(self, data: TrainingData, standard: PrincipalAxes) -> float:
        """Share of that mu: quartered until the held-out log-likelihood is clearly lower."""
        training, heldout = hold_out(data.annotations, self.validation, make_generator(self.random_state))
        best, best_score = 1.0, -np.inf
        if heldout is None:
            return best
        nodes, graph = self._problem(data, training, standard.X, standard.shift)
        state = pooled_state(nodes, graph)
        fusing_mu = self._fusing_mu(state)
        for share in (0.25 ** np.arange(_STEPS)).tolist():
            state, _ = self._solve(nodes, graph, state, share * fusing_mu, _ROUGHLY * self.tol)
            proba = self._proba(as_classifier(standard.raw(state.w[0]), training.n_classes), data.rows)
            confusions, shares = worker_confusions(training, proba), class_shares(training, proba)
            score = predictive_log_likelihood(proba, confusions, shares, heldout)
            if score > best_score:
                best, best_score = share, score
            elif score < best_score - _EVEN:
                break
        return best

    def _trains_network(self) -> bool:
        return False

    def _proba(self, module: Any, rows: Rows) -> Array:
        return one_vs_rest_proba(module.coef_, module.intercept_, rows, len(module.classes_))


def as_classifier(raw: Array, n_classes: int) -> Any:
    """Return coefficients as a scikit-learn LogisticRegression, which can be saved; `CPC` computes its own proba."""
    from sklearn.linear_model import LogisticRegression

    module = LogisticRegression()
    module.coef_, module.intercept_, module.classes_ = raw[:, :-1], raw[:, -1], np.arange(n_classes)
    module.n_features_in_ = raw.shape[1] - 1
    return module
