"""The order of items and the number of shards: fixed by the data alone, whatever holds the labels.

Items are ordered by the CRC-32 of their id's text, then by the text itself as UTF-8 bytes. A shard is a range of
CRC-32 values: its upper bits are the number of the shard, so that a file with `N_BLOCKS` blocks can be read as any
smaller number of shards, each of which is a run of consecutive blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

N_BLOCKS = 256  # the largest number of shards, and the number of blocks on disk
LABELS_PER_SHARD = 1 << 22  # a shard is 16 MB of codes
_CRC_BITS = 32


def id_text(value: Any) -> str:
    """The text of an id, by which items are ordered.

    Parameters
    ----------
    value : object
        An id: text, a number or any other value.

    Returns
    -------
    str
        Integers in decimal, text as it is, `str(value)` of anything else.

    Examples
    --------
    >>> id_text(17), id_text("a")
    ('17', 'a')
    """
    return value if type(value) is str else str(value)


def item_hashes(ids: Iterable[Any]) -> npt.NDArray[np.uint32]:
    """CRC-32 of the text of each id.

    Parameters
    ----------
    ids : iterable
        Item ids.

    Returns
    -------
    ndarray of shape (n,) of uint32

    Examples
    --------
    >>> item_hashes(["a", 17]).tolist()
    [3904355907, 1060745282]
    """
    return np.fromiter((crc32(id_text(value).encode()) for value in ids), np.uint32)


def item_order(ids: npt.NDArray[Any], hashes: npt.NDArray[np.uint32]) -> npt.NDArray[np.intp]:
    """The order of the items in the layout.

    Parameters
    ----------
    ids : ndarray of shape (n_items,)
        Item ids.
    hashes : ndarray of shape (n_items,) of uint32
        Their CRC-32 (`item_hashes`).

    Returns
    -------
    ndarray of shape (n_items,) of int
        Positions, such that `ids[order]` is in the order of the layout.
    """
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    for first, last in _runs(same):
        part = order[first : last + 1]
        texts = [(id_text(value).encode(), type(value).__name__) for value in ids[part].tolist()]
        order[first : last + 1] = part[sorted(range(len(texts)), key=texts.__getitem__)]
    return order


def _runs(same: npt.NDArray[np.intp]) -> list[tuple[int, int]]:
    """First and last position of each run of equal values, from the positions that equal their successor."""
    if len(same) == 0:
        return []
    breaks = np.flatnonzero(np.diff(same) > 1)
    firsts, lasts = np.append(same[0], same[breaks + 1]), np.append(same[breaks], same[-1]) + 1
    return list(zip(firsts.tolist(), lasts.tolist()))


def shard_count(n_labels: int, n_workers: int, n_classes: int) -> int:
    """Number of shards: a power of two that depends on the sizes of the crowd alone.

    It is the smallest with at most `LABELS_PER_SHARD` labels per shard on average, halved while a shard would have
    fewer labels than twice the numbers in a count table, and at most `N_BLOCKS`.

    Parameters
    ----------
    n_labels : int
        Number of labels, after repeats were dropped.
    n_workers : int
        Number of workers.
    n_classes : int
        Number of classes.

    Returns
    -------
    int

    Examples
    --------
    >>> shard_count(1_000, 10, 2), shard_count(10**9, 10_000, 8), shard_count(10**7, 10_000, 8)
    (1, 256, 4)
    """
    n_shards = 1
    while n_shards < N_BLOCKS and n_labels > n_shards * LABELS_PER_SHARD:
        n_shards *= 2
    while n_shards > 1 and n_labels < n_shards * 2 * n_workers * n_classes**2:
        n_shards //= 2
    return n_shards


def shard_of(hashes: npt.NDArray[np.uint32], n_shards: int) -> npt.NDArray[np.int64]:
    """Shard of each item.

    Parameters
    ----------
    hashes : ndarray of shape (n_items,) of uint32
        CRC-32 of the items.
    n_shards : int
        Number of shards, a power of two.

    Returns
    -------
    ndarray of shape (n_items,) of int

    Examples
    --------
    >>> shard_of(np.array([0, 2**31, 2**32 - 1], np.uint32), 4).tolist()
    [0, 2, 3]
    """
    return hashes.astype(np.int64) >> (_CRC_BITS - (n_shards.bit_length() - 1))
