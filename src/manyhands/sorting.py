"""Triples in their canonical order, by one 64-bit key per annotation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import compiled

Codes = npt.NDArray[np.int32]

_columns = compiled.load("_columns")
_CHUNK = 1 << 20  # keys taken apart at a time, so that a large sort needs little extra memory


def sort_triples(triples: Sequence[npt.NDArray[Any]], n_workers: int, n_classes: int) -> tuple[Codes, Codes, Codes]:
    """Sort by item, then worker, then label: the key is sorted in place and taken apart again.

    NumPy sorts integers several times faster than it finds the order of three columns.
    """
    item, worker, label = (column.astype(np.int32, copy=False) for column in triples)
    worker_bits, label_bits = n_workers.bit_length(), n_classes.bit_length()
    if int(item.max(initial=0)).bit_length() + worker_bits + label_bits > 63:
        order = np.lexsort((label, worker, item))
        return item[order], worker[order], label[order]
    key = _join(item, worker, label, worker_bits, label_bits)
    if not np.all(key[1:] >= key[:-1]):
        key.sort()
    return _split(key, worker_bits, label_bits)


def _join(item: Codes, worker: Codes, label: Codes, worker_bits: int, label_bits: int) -> npt.NDArray[np.int64]:
    if _columns is not None:
        key = np.empty(len(item), np.int64)
        _columns.join_keys(worker_bits, label_bits, *map(np.ascontiguousarray, (item, worker, label)), key)
        return key
    key = item.astype(np.int64)
    key <<= worker_bits
    key |= worker
    key <<= label_bits
    key |= label
    return key


def _split(key: npt.NDArray[np.int64], worker_bits: int, label_bits: int) -> tuple[Codes, Codes, Codes]:
    item, worker, label = (np.empty(len(key), np.int32) for _ in range(3))
    if _columns is not None:
        _columns.split_keys(worker_bits, label_bits, key, item, worker, label)
        return item, worker, label
    for first in range(0, len(key), _CHUNK):
        part = slice(first, first + _CHUNK)
        item[part] = key[part] >> (worker_bits + label_bits)
        worker[part] = (key[part] >> label_bits) & ((1 << worker_bits) - 1)
        label[part] = key[part] & ((1 << label_bits) - 1)
    return item, worker, label
