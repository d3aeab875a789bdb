"""Texts as one piece of bytes: their CRC-32, the distinct ones among them, and their order in the layout."""

from __future__ import annotations

from itertools import pairwise
from zlib import crc32

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands import compiled
from manyhands.sharded.code_ids import TextIds

Hashes = npt.NDArray[np.uint32]

_TOGETHER = 1 << 15  # texts that are copied at a time
_columns = compiled.load("_columns")
_SEED = (hash("manyhands") | 1) % 2**64  # drawn for each process, so that no file can be made of colliding texts


def crc_of_texts(texts: pl.Series) -> Hashes:
    """Return the CRC-32 of each text, by which the layout orders items.

    Parameters
    ----------
    texts : polars.Series of str
        Texts without nulls.

    Returns
    -------
    ndarray of shape (n,) of uint32

    Examples
    --------
    >>> crc_of_texts(pl.Series(["a", "17"])).tolist()
    [3904355907, 1060745282]
    """
    found = np.empty(len(texts), np.int32)
    compute = getattr(_columns, "crc_text", None)
    if compute is None or compute(texts.__arrow_c_stream__(), found) < 0:
        return np.fromiter((crc32(text.encode()) for text in texts.to_list()), np.uint32, len(texts))
    return found.view(np.uint32)


def join_texts(texts: pl.Series) -> TextIds:
    """Return texts as their lengths and one piece of bytes.

    Parameters
    ----------
    texts : polars.Series of str
        Texts without nulls.

    Returns
    -------
    TextIds
    """
    joined = texts.str.join("").item() if len(texts) else ""
    return TextIds(texts.str.len_bytes().to_numpy().astype(np.int64), joined.encode())


def code_texts(texts: TextIds) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Number the distinct texts in the order of their first appearance.

    Parameters
    ----------
    texts : TextIds
        The texts.

    Returns
    -------
    codes : ndarray of shape (n,) of int32
        Number of each text.
    first : ndarray of shape (n_distinct,) of int64
        Position of the first appearance of each distinct text.

    Examples
    --------
    >>> codes, first = code_texts(TextIds(np.array([1, 2, 1]), b"abca"))
    >>> codes.tolist(), first.tolist()
    ([0, 1, 0], [0, 1])
    """
    compute = getattr(_columns, "code_joined_text", None)
    if compute is None:
        return _code_by_dictionary(texts)
    lengths = np.ascontiguousarray(texts.n_bytes, np.int64)
    codes, first = np.empty(len(lengths), np.int32), np.empty(len(lengths), np.int64)
    n_distinct = compute(_SEED, np.frombuffer(texts.data, np.uint8), lengths, codes, first)
    return codes, first[:n_distinct].copy()


def _code_by_dictionary(texts: TextIds) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """The same without the compiled function."""
    ends = np.cumsum(texts.n_bytes, dtype=np.int64).tolist()
    known: dict[bytes, int] = {}
    codes = np.fromiter(
        (known.setdefault(texts.data[begin:end], len(known)) for begin, end in pairwise([0, *ends])),
        np.int32,
        len(ends),
    )
    first = np.full(len(known), len(codes), np.int64)
    np.minimum.at(first, codes, np.arange(len(codes)))
    return codes, first


def take_texts(texts: TextIds, rows: npt.NDArray[np.int64]) -> TextIds:
    """Return some of the texts, in the order of `rows`.

    Parameters
    ----------
    texts : TextIds
        The texts.
    rows : ndarray of int
        Their positions.

    Returns
    -------
    TextIds
    """
    begins = np.cumsum(texts.n_bytes, dtype=np.int64) - texts.n_bytes
    lengths = np.asarray(texts.n_bytes, np.int64)[rows]
    data, pieces = np.frombuffer(texts.data, np.uint8), []
    for first in range(0, len(rows), _TOGETHER):  # positions of bytes take more memory than the bytes
        some = slice(first, first + _TOGETHER)
        ends = np.cumsum(lengths[some])
        at = np.arange(ends[-1]) + np.repeat(begins[rows[some]] - (ends - lengths[some]), lengths[some])
        pieces.append(data[at].tobytes())
    return TextIds(lengths, b"".join(pieces))


def order_texts(texts: TextIds, hashes: Hashes) -> npt.NDArray[np.int64]:
    """Return the order of distinct texts in the layout: by CRC-32, then by their bytes.

    Parameters
    ----------
    texts : TextIds
        Distinct texts.
    hashes : ndarray of shape (n,) of uint32
        Their CRC-32.

    Returns
    -------
    ndarray of shape (n,) of int64
        Positions.
    """
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(same):
        ends = np.cumsum(texts.n_bytes, dtype=np.int64)
        begins = ends - texts.n_bytes
        for value in np.unique(ordered[same]):  # two texts of 50,000 share a CRC-32 about once in three files
            first, last = np.searchsorted(ordered, value, "left"), np.searchsorted(ordered, value, "right")
            part = order[first:last].tolist()
            order[first:last] = sorted(part, key=lambda at: texts.data[begins[at] : ends[at]])
    return order.astype(np.int64, copy=False)
