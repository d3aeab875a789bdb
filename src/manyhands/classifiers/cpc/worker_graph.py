"""The graph of CPC's fusion penalty: edges between the classifiers of workers and target, and the clusters."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.classifiers.cpc.worker_regressions import Nodes
from manyhands.em.kernels import Array
from manyhands.validation import check_memory

_CHUNK = 1 << 16  # numbers of an array over edges that are processed together, so that they stay in the cache
_ALL_PAIRS, _BYTES, _NEAREST = 100, 1 << 30, 5  # "auto": limits of workers and memory for all pairs; else neighbours
_BLOCK = 1024  # workers compared with all others at once


class Graph:
    """Edges between nodes, with the incidence matrix D and the graph Laplacian L = D' D.

    Parameters
    ----------
    edges : ndarray of shape (n_edges, 2)
        The two nodes of each edge.
    n_nodes : int
        Number of nodes.
    n_problems : int
        Number of binary problems.
    width : int
        Number of weights of a node in each problem.

    Attributes
    ----------
    incidence : CSR array of shape (n_edges, n_nodes)
        D: 1 at the first node of an edge, -1 at the second.
    laplacian : ndarray or sparse array of shape (n_nodes, n_nodes)
        L, dense where more than a quarter of it is not zero.
    degree : ndarray of shape (n_nodes,)
        Number of edges of each node.
    chunks : list of (slice, CSR array)
        Ranges of edges and their rows of D.
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

        Parameters
        ----------
        w : ndarray of shape (n_nodes, n_problems, width)
            Weights or a direction.

        Returns
        -------
        ndarray of shape (n_nodes, n_problems, width)
        """
        return np.asarray(self.laplacian.astype(w.dtype) @ w.reshape(len(w), -1)).reshape(w.shape)

    def incidence_transposed(self, phi: Array) -> Array:
        """Return D' phi, the gradient of <phi, D w> in the weights w.

        Parameters
        ----------
        phi : ndarray of shape (n_edges, n_problems, width)
            A vector per edge, such as the Lagrange multipliers.

        Returns
        -------
        ndarray of shape (n_nodes, n_problems, width)
        """
        return np.asarray(self.incidence.T @ phi.reshape(len(phi), -1)).reshape(-1, *phi.shape[1:])


def choose_edges(nodes: Nodes, kind: str) -> npt.NDArray[np.intp]:
    """Return the pairs of classifiers that the penalty fuses.

    Parameters
    ----------
    nodes : Nodes
        The regressions; node 0 is the target.
    kind : {"auto", "all", "nearest", "target"}
        All pairs; each worker with the target and with the nearest five workers; or with the target only. "auto"
        takes the first of these that stays within 100 workers and 1 GB.

    Returns
    -------
    ndarray of shape (n_edges, 2)

    Raises
    ------
    LimitError
        If all pairs were asked for and do not fit into memory.
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

    Parameters
    ----------
    nodes : Nodes
        The regressions; node 0 is the target.
    k : int
        Number of neighbours of each worker.

    Returns
    -------
    ndarray of shape (n_edges, 2)
        Each pair once, the smaller node first.
    """
    n_workers = len(nodes.labels) - 1
    pooled = np.repeat(nodes.pooled[None], n_workers + 1, axis=0)
    gradient = nodes.loss_and_gradient(pooled)[1][1:].reshape(n_workers, -1)
    gradient /= np.maximum(np.linalg.norm(gradient, axis=1, keepdims=True), 1e-300)
    found = []
    for first in range(0, n_workers, _BLOCK):
        distance = -np.round(gradient[first : first + _BLOCK] @ gradient.T, 9)
        distance[np.arange(len(distance)), first + np.arange(len(distance))] = np.inf
        close = np.argsort(distance, axis=1, kind="stable")[:, : min(k, n_workers - 1)]
        found.append(np.column_stack([np.repeat(first + np.arange(len(distance)), close.shape[1]), close.ravel()]))
    return np.unique(np.sort(np.concatenate(found), axis=1), axis=0) + 1


def clusters(graph: Graph, is_separated: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the connected components of the nodes whose classifiers are equal.

    Parameters
    ----------
    graph : Graph
        The edges.
    is_separated : ndarray of shape (n_edges,)
        Whether the two classifiers of an edge differ.

    Returns
    -------
    ndarray of shape (n_nodes,)
        Number of the cluster of each node; that of the target, node 0, is 0.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    fused = graph.edges[~is_separated]
    n = len(graph.degree)
    links = coo_array((np.ones(len(fused)), (fused[:, 0], fused[:, 1])), shape=(n, n))
    return np.asarray(connected_components(links, directed=False)[1], np.int64)
