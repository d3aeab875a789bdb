"""Orders of items: that of first appearance, in which results are returned, and the sorted one, in which fits run."""

from __future__ import annotations

from operator import le
from typing import Any

import numpy as np
import numpy.typing as npt

Order = npt.NDArray[np.intp]

_CHUNK = 1 << 20  # codes processed together, so that a long column needs little extra memory


def sorting_order(ids: npt.NDArray[Any]) -> Order | None:
    """Return the stable order that sorts ids by the rule of `encoding.encode`; None where they are sorted already.

    Parameters
    ----------
    ids : ndarray of shape (n,)
        Any hashable values; they may repeat.

    Returns
    -------
    ndarray of shape (n,) of int or None
        Positions, such that `ids[order]` is sorted.

    Examples
    --------
    >>> sorting_order(np.array([7, 3, 5])).tolist()
    [1, 2, 0]
    >>> sorting_order(np.array(["a", 3, "b", 10], object)).tolist()  # not comparable: by type, then by text
    [3, 1, 0, 2]
    """
    if ids.dtype.kind in "iufb":
        return None if bool(np.all(ids[1:] >= ids[:-1])) else _order_of_numbers(ids)
    values = ids.tolist()
    try:
        if all(map(le, values, values[1:])):
            return None
        found = sorted(range(len(values)), key=values.__getitem__)
    except TypeError:
        keys = [text_key(value) for value in values]
        found = sorted(range(len(keys)), key=keys.__getitem__)
    order = np.array(found, np.intp)
    return None if bool(np.all(order[1:] > order[:-1])) else order


def _order_of_numbers(ids: npt.NDArray[Any]) -> Order:
    """Return the stable order of numbers; where they are a permutation of low, low + 1, ..., without sorting."""
    if ids.dtype.kind in "iu":
        low = int(ids.min())
        if int(ids.max()) - low == len(ids) - 1:
            order = np.full(len(ids), -1, np.intp)
            order[(ids - ids.dtype.type(low)).astype(np.intp)] = np.arange(len(ids))
            if order.min() >= 0:
                return order
    return np.argsort(ids, kind="stable")


def text_key(value: Any) -> tuple[str, str]:
    """Return the key by which values that cannot be compared are sorted: the name of the type, then the text.

    Parameters
    ----------
    value : object
        Any value.

    Returns
    -------
    tuple of two str
    """
    return type(value).__name__, str(value)


def appearance_order(codes: npt.NDArray[np.int32], n_codes: int) -> Order | None:
    """Return the codes in the order of their first appearance; None where that is 0, 1, 2, ...

    Parameters
    ----------
    codes : ndarray of shape (n,) of int32
        Codes; each of 0, ..., `n_codes` - 1 occurs.
    n_codes : int
        Number of codes.

    Returns
    -------
    ndarray of shape (n_codes,) of int or None

    Examples
    --------
    >>> appearance_order(np.array([2, 0, 2, 1], np.int32), 3).tolist()
    [2, 0, 1]
    """
    first = np.empty(n_codes, np.int64)  # row of the first appearance of each code
    for begin in range((len(codes) - 1) // _CHUNK * _CHUNK, -1, -_CHUNK):  # from the end: an earlier row overwrites
        part = codes[begin : begin + _CHUNK]
        first[part[::-1]] = np.arange(begin + len(part) - 1, begin - 1, -1)
    if bool(np.all(first[1:] > first[:-1])):
        return None
    is_first = np.zeros(len(codes), bool)  # cheaper than sorting the rows
    is_first[first] = True
    return codes[is_first].astype(np.intp)


def inverse(order: Order) -> Order:
    """Return the permutation that undoes another one.

    Parameters
    ----------
    order : ndarray of shape (n,) of int
        A permutation of 0, ..., n - 1.

    Returns
    -------
    ndarray of shape (n,) of int
        `values[order][inverse(order)]` equals `values`.

    Examples
    --------
    >>> inverse(np.array([2, 0, 1])).tolist()
    [1, 2, 0]
    """
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return back
