"""Groups of workers who are connected by common items, found shard by shard."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.em.packed import Packed

Groups = npt.NDArray[np.int32]


def no_groups(n_workers: int) -> Groups:
    """Return the groups before any label is seen: every worker is one.

    Parameters
    ----------
    n_workers : int
        Number of workers.

    Returns
    -------
    ndarray of shape (n_workers,) of int32
        Number of the group of each worker.
    """
    return np.arange(n_workers, dtype=np.int32)


def join_by_items(groups: Groups, packed: Packed) -> Groups:
    """Join the groups of workers who labelled the same item.

    Parameters
    ----------
    groups : ndarray of shape (n_workers,) of int32
        Groups so far.
    packed : Packed
        Labels of some items.

    Returns
    -------
    ndarray of shape (n_workers,) of int32
        The new groups.
    """
    worker = packed.code // np.int32(packed.n_classes)
    same_item = np.ones(max(len(worker) - 1, 0), bool)
    inner = packed.start[1:-1]
    same_item[inner[(inner > 0) & (inner < len(worker))] - 1] = False
    return _join(groups, worker[:-1][same_item], worker[1:][same_item])


def join_groups(groups: Groups, others: Groups) -> Groups:
    """Join two partitions of the same workers.

    Parameters
    ----------
    groups : ndarray of shape (n_workers,) of int32
        Groups of some items.
    others : ndarray of shape (n_workers,) of int32
        Groups of other items.

    Returns
    -------
    ndarray of shape (n_workers,) of int32
        The groups of all of them.
    """
    order = np.argsort(others, kind="stable")
    linked = others[order[1:]] == others[order[:-1]]
    return _join(groups, order[:-1][linked], order[1:][linked])


def _join(groups: Groups, first: npt.NDArray[Any], second: npt.NDArray[Any]) -> Groups:
    """Join the groups of pairs of workers; most pairs are in one group already, and cost no more than a comparison."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    a, b = groups[first], groups[second]
    differ = a != b
    if not differ.any():
        return groups
    n_groups = int(groups.max()) + 1
    ends = (a[differ], b[differ])
    graph = coo_array((np.ones(len(ends[0]), np.int8), ends), shape=(n_groups, n_groups))
    _, joined = connected_components(graph, directed=False)
    renamed: Groups = joined[groups].astype(np.int32)
    return renamed
