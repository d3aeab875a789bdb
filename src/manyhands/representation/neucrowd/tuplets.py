"""Tuplets of items as arrays of places: which items are safe to learn from, and tuplets drawn from a pool of them.

    e is safe  <=>  sum of A_p over its neighbours of its class  >  sum of A_q over the others  +  margin

A is how far the labels of an item are to be trusted, and neighbours are the k nearest items of an embedding. A tuplet
is an anchor, a positive of its class and some negatives of others. Nothing here walks over items or tuplets.

Reference: Y. Hao, W. Ding and Z. Liu (2021), NeuCrowd: neural sampling network for representation learning with
crowdsourced labels, Knowledge and Information Systems.
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
_TIE = 1e-9  # sums of thirds and fifths are equal up to that; a tie is not safe
_AT_ONCE = 4096  # items whose neighbours are heard together: classes may be many


def safe_items(
    embedding: Points, code: Codes, assurance: Array, k: int, *, margin: float = 0.0, rival: str = "all"
) -> Mask:
    """(n,) whether an item's neighbours speak for its class.

    Parameters
    ----------
    embedding, code, assurance : (n, n_dimensions), (n,), (n,) where items are, their classes, how far these are trusted
    k : neighbours of an item, itself left out; all others where there are fewer
    margin : by how much its class must be ahead
    rival : ahead of "all" other classes together, or of the "strongest" one of them
    """
    neighbours = nearest_others(embedding, k)
    starts = range(0, len(code), _AT_ONCE)
    parts = [_leads(code[i : i + _AT_ONCE], neighbours[i : i + _AT_ONCE], code, assurance, rival) for i in starts]
    return np.concatenate([np.zeros(0), *parts]) > margin + _TIE


def _leads(own: Codes, neighbours: Codes, code: Codes, assurance: Array, rival: str) -> Array:
    """(n,) by how much the neighbours of items of these classes speak more for these than for their rivals."""
    voice = np.zeros((len(own), int(code.max()) + 1))
    row = np.arange(len(own))
    np.add.at(voice, (row[:, None], code[neighbours]), assurance[neighbours])
    for_it = voice[row, own]
    voice[row, own] = 0.0
    return np.asarray(for_it - (voice.sum(axis=1) if rival == "all" else voice.max(axis=1)))


def choose_pool(code: Codes, safe: Mask, unsafe_share: float, least: int, rng: np.random.Generator) -> Mask:
    """(n,) the safe items and a random share of the others; a class with fewer than `least` of these keeps all of its.

    >>> choose_pool(np.array([0, 0, 0, 1, 1]), np.array([1, 1, 0, 0, 0], bool), 0.0, 2, np.random.default_rng(0))
    array([ True,  True, False,  True,  True])
    """
    unsafe = np.flatnonzero(~safe)
    pool = safe.copy()
    pool[rng.permutation(unsafe)[: int(np.ceil(unsafe_share * len(unsafe)))]] = True
    too_few = np.bincount(code[pool], minlength=code.max(initial=0) + 1) < least
    return np.asarray(pool | too_few[code])


class Pool(NamedTuple):
    """Items to draw tuplets from, class after class."""

    place: Codes  # (n,) which items
    start: Codes  # (n_codes,) where each class begins
    size: Codes  # (n_codes,) and how many items it has

    @classmethod
    def of(cls, code: Codes, chosen: Mask) -> Pool:
        """The pool of the chosen ones among items of these classes."""
        place = np.flatnonzero(chosen)
        size = np.bincount(code[place], minlength=code.max(initial=-1) + 1)
        return cls(place[np.argsort(code[place], kind="stable")], np.cumsum(size) - size, size)

    def anchor_codes(self) -> Codes:
        """Classes with a pair of items; where none has one, those with an item, which is then its own positive."""
        pairs = np.flatnonzero(self.size > 1)
        return pairs if len(pairs) else np.flatnonzero(self.size)

    def draw(self, own: int, n_tuplets: int, n_negatives: int, rng: np.random.Generator) -> Codes:
        """(n_tuplets, 2 + n_negatives) places: anchors and positives of class `own`, negatives of classes drawn evenly.

        A positive is another item than its anchor. Without another class there are no negatives.
        """
        size = int(self.size[own])
        anchor = rng.integers(size, size=n_tuplets)
        positive = (anchor + rng.integers(min(1, size - 1), size, size=n_tuplets)) % size
        others = np.flatnonzero(self.size)
        others = others[others != own]
        pair = self.start[own] + np.column_stack([anchor, positive])
        if len(others) == 0:
            return self.place[pair]
        of = others[rng.integers(len(others), size=(n_tuplets, n_negatives))]
        negative = self.start[of] + (rng.random((n_tuplets, n_negatives)) * self.size[of]).astype(np.intp)
        return self.place[np.hstack([pair, negative])]
