"""Rows of a table matched with items by their ids."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.encoding import Values, as_ids
from manyhands.exceptions import AlignmentError
from manyhands.item_order import Order

_SHOWN = 3  # ids in a message


def find_rows(ids: Values, item_ids: npt.NDArray[Any], named: str = "ids") -> tuple[Order, npt.NDArray[Any]]:
    """Return the row of each item.

    Parameters
    ----------
    ids : sequence of shape (n_rows,)
        Id of each row. Numbers and text that read the same match, if nothing matches as it is.
    item_ids : ndarray of shape (n_items,)
        The items.
    named : str, default="ids"
        Where the ids come from, for error messages.

    Returns
    -------
    rows : ndarray of shape (n_items,) of int
        Row of each item.
    ids : ndarray of shape (n_rows,)
        The ids, in the form of the items.

    Raises
    ------
    AlignmentError
        Where an id occurs twice, or an item has no row.

    Examples
    --------
    >>> rows, ids = find_rows([7, 5, 6], np.array(["5", "7"], object))
    >>> rows.tolist(), ids.tolist()
    ([1, 0], ['7', '5', '6'])
    """
    given = in_form_of(as_ids(ids, "row"), item_ids)
    if len(given) == len(item_ids) and given.tolist() == item_ids.tolist():
        return np.arange(len(item_ids)), given  # an item may then occur twice, as it does in a bootstrap sample
    row_of = {value: row for row, value in enumerate(given.tolist())}
    if len(row_of) < len(given):
        twice = next(value for row, value in enumerate(given.tolist()) if row_of[value] != row)
        raise AlignmentError(f"The {named} of X name {twice!r} twice; every row needs an id of its own.")
    rows = np.fromiter((row_of.get(item, -1) for item in item_ids.tolist()), np.intp, len(item_ids))
    missing = item_ids[rows < 0].tolist()
    if missing:
        raise AlignmentError(
            f"{len(missing)} of {len(item_ids)} items have no row in X by its {named}, such as {_shown(missing)}; X "
            f"has {_shown(given.tolist())} ... Add the rows, or leave items out with annotations[rows]. Before "
            f"scikit-learn splits both, call annotations.for_rows(ids); if row i is item i, pass X.to_numpy()."
        )
    return rows, given


def n_found(ids: Values, item_ids: npt.NDArray[Any]) -> int:
    """Return how many of the items are among the ids, by the rule of `find_rows`.

    Parameters
    ----------
    ids : sequence of shape (n_rows,)
        Id of each row.
    item_ids : ndarray of shape (n_items,)
        The items.

    Returns
    -------
    int
    """
    known = set(in_form_of(as_ids(ids, "row"), item_ids).tolist())
    return sum(item in known for item in item_ids.tolist())


def in_form_of(ids: npt.NDArray[Any], item_ids: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return ids in the form of the items: whole numbers as text where all items are text, and the reverse.

    Parameters
    ----------
    ids : ndarray of shape (n_rows,)
        Ids.
    item_ids : ndarray of shape (n_items,)
        The items.

    Returns
    -------
    ndarray of shape (n_rows,)
        The same ids where the items are not text, or text that is not the usual form of whole numbers.
    """
    if ids.dtype.kind in "iu" and _are_text(item_ids):
        return np.array([str(value) for value in ids.tolist()], object)
    if item_ids.dtype.kind in "iu" and _are_text(ids):
        texts = ids.tolist()
        return np.array([int(text) for text in texts]) if all(map(_is_whole, texts)) else ids
    return ids


def _are_text(ids: npt.NDArray[Any]) -> bool:
    """Whether all ids are text."""
    return ids.dtype.kind == "O" and all(isinstance(value, str) for value in ids.tolist())


def _is_whole(text: str) -> bool:
    """Whether a text is the usual form of a whole number of 64 bits: not "007", " 7" or "7.0"."""
    return len(text) < 19 and text.removeprefix("-").isdecimal() and str(int(text)) == text


def _shown(values: list[Any]) -> str:
    """Return a few values for a message."""
    return ", ".join(repr(value) for value in values[:_SHOWN])
