"""Decisions: from a posterior to one class per item, with deterministic ties."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.em.kernels import largest

Array = npt.NDArray[np.float64]

_TIE = 1e-9  # probabilities closer than this count as equal: they may be the same sum in another order


def pick_classes(
    posterior: Array, unlabelled: npt.NDArray[np.bool_], totals: Array | None = None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """Class with the largest posterior probability of each item.

    A tie goes to the class that is more frequent overall, then to the one that comes first; it never depends on the
    order of the rows. Probabilities within 1e-9 count as equal.

    Parameters
    ----------
    posterior : ndarray of shape (n_items, n_classes)
        p(truth | labels).
    unlabelled : ndarray of shape (n_items,) of bool
        Items without a label, which get no class.
    totals : ndarray of shape (n_classes,), default=None
        Expected number of items of each class, which decides ties; by default that of these items.

    Returns
    -------
    code : ndarray of shape (n_items,) of int32
        Class codes, -1 for items without labels.
    tied : ndarray of shape (n_items,) of bool
        Whether another class had the same probability.

    Examples
    --------
    >>> pick_classes(np.array([[0.5, 0.5], [0.1, 0.9]]), np.zeros(2, bool))
    (array([1, 1], dtype=int32), array([ True, False]))
    """
    totals = class_totals(posterior, unlabelled) if totals is None else totals
    rank = np.argsort(-np.round(totals, 6), kind="stable").astype(np.int32)  # classes, the largest first
    code, tied = largest(posterior, rank, _TIE)
    code[unlabelled] = -1
    tied &= ~unlabelled
    return code, tied


def class_totals(posterior: Array, unlabelled: npt.NDArray[np.bool_]) -> Array:
    """Expected number of items of each class, among the items with labels.

    Parameters
    ----------
    posterior : ndarray of shape (n_items, n_classes)
        p(truth | labels).
    unlabelled : ndarray of shape (n_items,) of bool
        Items to leave out.

    Returns
    -------
    ndarray of shape (n_classes,)
    """
    # einsum adds row by row; sum(axis=0) takes four times as long over short rows
    return np.einsum("ik->k", posterior[~unlabelled] if unlabelled.any() else posterior)


def overall(totals: Array) -> Array:
    """Class frequencies with one pseudo-item spread over the classes: the posterior of an item without labels.

    Parameters
    ----------
    totals : ndarray of shape (n_classes,)
        Expected number of items of each class.

    Returns
    -------
    ndarray of shape (n_classes,)
        Sums to 1.

    Examples
    --------
    >>> overall(np.array([2.0, 1.0])).tolist()
    [0.625, 0.375]
    """
    shares = totals + 1.0 / len(totals)
    return shares / shares.sum()
