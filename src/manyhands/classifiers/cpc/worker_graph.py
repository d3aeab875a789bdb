"""Who pulls whom in CPC: the edges between workers' classifiers, and the clusters they form."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.classifiers.cpc.worker_regressions import Nodes
from manyhands.em.kernels import Array
from manyhands.validation import check_memory

_STRETCH = 1 << 16  # numbers of the edges' array looked at together, so that they stay in the cache
_ALL_PAIRS, _BYTES, _NEAREST = 100, 1 << 30, 5  # workers and memory for all pairs in "auto"; neighbours else
_BLOCK = 1024  # workers compared with all others at once


class Graph:
    """The edges along which nodes pull each other."""

    def __init__(self, edges: npt.NDArray[np.intp], n_nodes: int, n_problems: int, width: int) -> None:
        from scipy.sparse import coo_array

        n = len(edges)
        value, row = np.repeat([1.0, -1.0], n), np.tile(np.arange(n), 2)
        self.edges = edges  # (n_edges, 2)
        self.incidence = coo_array((value, (row, edges.T.ravel())), shape=(n, n_nodes)).tocsr()  # D
        laplacian = self.incidence.T @ self.incidence
        self.degree = laplacian.diagonal()
        self.laplacian = laplacian.toarray() if 4 * laplacian.nnz > n_nodes**2 else laplacian
        rows = max(1, _STRETCH // max(n_problems * width, 1))
        parts = [slice(first, first + rows) for first in range(0, n, rows)]
        self.parts = [(part, self.incidence[part]) for part in parts]

    def spread(self, w: Array) -> Array:
        """The Laplacian, times w."""
        return np.asarray(self.laplacian.astype(w.dtype) @ w.reshape(len(w), -1)).reshape(w.shape)

    def held(self, phi: Array) -> Array:
        """D' phi: how the edges pull each node."""
        return np.asarray(self.incidence.T @ phi.reshape(len(phi), -1)).reshape(-1, *phi.shape[1:])


def choose_edges(nodes: Nodes, kind: str) -> npt.NDArray[np.intp]:
    """(n_edges, 2) of this kind: "all", "nearest", "target", or "auto", which goes by the number and by memory."""
    n, each = len(nodes.labels), 8 * 3 * nodes.shape[1] * nodes.shape[2]  # bytes for an edge
    need = n * (n - 1) // 2 * each
    if kind == "all":
        check_memory(need, f"All pairs of {n} classifiers", "Set edges='target', or take fewer features.")
    if kind == "all" or (kind == "auto" and n - 1 <= _ALL_PAIRS and need <= _BYTES):
        return np.column_stack(np.triu_indices(n, 1))
    star = np.column_stack((np.zeros(n - 1, np.intp), np.arange(1, n)))
    if kind == "nearest" or (kind == "auto" and n * (_NEAREST + 1) * each <= _BYTES):
        return np.concatenate([star, nearest(nodes, _NEAREST)])
    return star


def nearest(nodes: Nodes, k: int) -> npt.NDArray[np.intp]:
    """(n_edges, 2) ties of each worker to the k who pull the pooled weights most nearly his way."""
    n_workers = len(nodes.labels) - 1
    everywhere = np.repeat(nodes.pooled[None], n_workers + 1, axis=0)
    slope = nodes.smooth(everywhere)[1][1:].reshape(n_workers, -1)
    slope /= np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-300)
    found = []
    for first in range(0, n_workers, _BLOCK):
        far = -np.round(slope[first : first + _BLOCK] @ slope.T, 9)
        far[np.arange(len(far)), first + np.arange(len(far))] = np.inf
        close = np.argsort(far, axis=1, kind="stable")[:, : min(k, n_workers - 1)]
        found.append(np.column_stack([np.repeat(first + np.arange(len(far)), close.shape[1]), close.ravel()]))
    return np.unique(np.sort(np.concatenate(found), axis=1), axis=0) + 1


def clusters(graph: Graph, apart: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """(n_nodes,) a number for each group of nodes that have become one; the target's is 0."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    fused = graph.edges[~apart]
    n = len(graph.degree)
    links = coo_array((np.ones(len(fused)), (fused[:, 0], fused[:, 1])), shape=(n, n))
    return np.asarray(connected_components(links, directed=False)[1], np.int64)
