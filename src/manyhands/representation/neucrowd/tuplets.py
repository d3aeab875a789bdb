"""Safety-aware sampling: which items are safe, the pool of items, and tuplets drawn from it; arrays of indices.

    e is safe  <=>  sum of A_p over its neighbours of its class  >  sum of A_q over the others  +  margin

A is the confidence in the class of an item, and neighbours are the k nearest items in an embedding. A tuplet is an
anchor, a positive of its class and some negatives of other classes. All steps are array operations.

References
----------
Y. Hao, W. Ding and Z. Liu (2021), NeuCrowd: neural sampling network for representation learning with crowdsourced
labels, Knowledge and Information Systems.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.neighbours import Points, nearest_others

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

RIVALS = ("all", "strongest")
_TIE = 1e-9  # tolerance for sums such as 1/3 + 1/5; a tie is not safe
_BLOCK = 4096  # items processed at once, which bounds memory where classes are many


def safe_items(
    embedding: Points, code: Codes, confidence: Array, k: int, *, margin: float = 0.0, rival: str = "all"
) -> Mask:
    """Return which items are safe: their neighbours support their class.

    Parameters
    ----------
    embedding : ndarray of float32, shape (n, n_dimensions)
        Embeddings.
    code : ndarray of int, shape (n,)
        Classes.
    confidence : ndarray of shape (n,)
        Confidence in these classes.
    k : int
        Neighbours of an item, itself excluded; all others where there are fewer.
    margin : float, default=0.0
        Required lead of the class of the item.
    rival : {"all", "strongest"}, default="all"
        Lead over all other classes together, or over the strongest of them.

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    neighbours = nearest_others(embedding, k)
    starts = range(0, len(code), _BLOCK)
    parts = [_leads(code[i : i + _BLOCK], neighbours[i : i + _BLOCK], code, confidence, rival) for i in starts]
    return np.concatenate([np.zeros(0), *parts]) > margin + _TIE


def _leads(own: Codes, neighbours: Codes, code: Codes, confidence: Array, rival: str) -> Array:
    """Lead of the own class over its rivals in the summed confidence of the neighbours, of shape (n,)."""
    support = np.zeros((len(own), int(code.max()) + 1))
    row = np.arange(len(own))
    np.add.at(support, (row[:, None], code[neighbours]), confidence[neighbours])
    for_own = support[row, own]
    support[row, own] = 0.0
    return np.asarray(for_own - (support.sum(axis=1) if rival == "all" else support.max(axis=1)))


def choose_pool(code: Codes, safe: Mask, unsafe_share: float, least: int, rng: np.random.Generator) -> Mask:
    """Return the pool of items from which tuplets are drawn: the safe items and a random share of the others.

    Parameters
    ----------
    code : ndarray of int, shape (n,)
        Classes.
    safe : ndarray of bool, shape (n,)
        Which items are safe.
    unsafe_share : float
        Share of the unsafe items to include, rounded up.
    least : int
        A class with fewer items than this in the pool has all its items included.
    rng : numpy.random.Generator
        Draws the unsafe items.

    Returns
    -------
    ndarray of bool, shape (n,)

    Examples
    --------
    >>> choose_pool(np.array([0, 0, 0, 1, 1]), np.array([1, 1, 0, 0, 0], bool), 0.0, 2, np.random.default_rng(0))
    array([ True,  True, False,  True,  True])
    """
    unsafe = np.flatnonzero(~safe)
    pool = safe.copy()
    pool[rng.permutation(unsafe)[: int(np.ceil(unsafe_share * len(unsafe)))]] = True
    too_few = np.bincount(code[pool], minlength=code.max(initial=0) + 1) < least
    return np.asarray(pool | too_few[code])


class Pool(NamedTuple):
    """Items to draw tuplets from, sorted by class.

    Attributes
    ----------
    items : ndarray of int, shape (n,)
        Indices of the items.
    start : ndarray of int, shape (n_codes,)
        Where each class starts in `items`.
    size : ndarray of int, shape (n_codes,)
        Number of items of each class.
    """

    items: Codes
    start: Codes
    size: Codes

    @classmethod
    def of(cls, code: Codes, chosen: Mask) -> Pool:
        """Return the pool of the chosen items.

        Parameters
        ----------
        code : ndarray of int, shape (n_items,)
            Classes of all items.
        chosen : ndarray of bool, shape (n_items,)
            Which items are in the pool.

        Returns
        -------
        Pool
        """
        items = np.flatnonzero(chosen)
        size = np.bincount(code[items], minlength=code.max(initial=-1) + 1)
        return cls(items[np.argsort(code[items], kind="stable")], np.cumsum(size) - size, size)

    def anchor_codes(self) -> Codes:
        """Return the classes with at least two items; if there is none, those with one, which is its own positive."""
        pairs = np.flatnonzero(self.size > 1)
        return pairs if len(pairs) else np.flatnonzero(self.size)

    def draw(self, own: int, n_tuplets: int, n_negatives: int, rng: np.random.Generator) -> Codes:
        """Draw tuplets with anchors of one class.

        Parameters
        ----------
        own : int
            The class of anchors and positives.
        n_tuplets : int
            Number of tuplets.
        n_negatives : int
            Negatives per tuplet, of classes drawn uniformly.
        rng : numpy.random.Generator
            Draws the items.

        Returns
        -------
        ndarray of int, shape (n_tuplets, 2 + n_negatives)
            Indices of items: anchor, positive (another item than the anchor), negatives. Without another class there
            are no negatives, and the shape is (n_tuplets, 2).
        """
        size = int(self.size[own])
        anchor = rng.integers(size, size=n_tuplets)
        positive = (anchor + rng.integers(min(1, size - 1), size, size=n_tuplets)) % size
        others = np.flatnonzero(self.size)
        others = others[others != own]
        pair = self.start[own] + np.column_stack([anchor, positive])
        if len(others) == 0:
            return self.items[pair]
        drawn = others[rng.integers(len(others), size=(n_tuplets, n_negatives))]
        negative = self.start[drawn] + (rng.random((n_tuplets, n_negatives)) * self.size[drawn]).astype(np.intp)
        return self.items[np.hstack([pair, negative])]
