"""Squared distances between labels on a scale.

All pairs of a row follow from the sums of its values and of their squares, so no pair is ever looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manyhands.metrics.vote_patterns import Array, Positions, Votes


class Distances:
    """Squared distances between the labels of different workers, on the rows where labels differ at all."""

    def __init__(self, votes: Votes) -> None:
        row_of = np.cumsum(votes.contested) - 1
        cells, split = votes.contested[votes.row], votes.contested[votes.split_row]
        n_rows, n_classes = int(votes.contested.sum()), votes.n_classes
        self.n_workers = votes.n_workers[votes.contested]
        self.votes = _matrix(row_of[votes.row[cells]], votes.label[cells], votes.weight[cells], (n_rows, n_classes))
        voices, voice = np.unique(votes.split_voice[split], return_inverse=True)
        shape = len(voices), n_classes
        self.split_voices = _matrix(voice, votes.split_label[split], votes.split_share[split], shape)
        row = np.zeros(len(voices), np.int64)
        row[voice] = row_of[votes.split_row[split]]
        self.row_of_voice = _matrix(row, np.arange(len(voices)), np.ones(len(voices)), (n_rows, len(voices)))

    def observed(self, scale: Array) -> Array:
        """(n_contested, n_scales) summed over ordered pairs, divided by n_workers - 1; `scale` is (n_classes, ...)."""
        between = _spread(self.votes, self.n_workers[:, None], scale)
        if self.split_voices.shape[0]:
            between -= self.row_of_voice @ _spread(self.split_voices, 1.0, scale)
        return between / (self.n_workers[:, None] - 1)


def _spread(votes: Any, mass: Array | float, scale: Array) -> Array:
    """The squared distances of all ordered pairs in each row of votes."""
    return 2 * (mass * (votes @ scale**2) - (votes @ scale) ** 2)


def expected_distance(of_class: Array, scale: Array) -> Array:
    """The same for all labels at once; (n_resamples, n_classes) both."""
    n, first, second = (np.einsum("bk,bk->b", of_class, power) for power in (np.ones_like(scale), scale, scale**2))
    return 2 * (n * second - first**2)


def _matrix(row: Positions, column: Positions, value: Array, shape: tuple[int, int]) -> Any:
    from scipy.sparse import csr_array

    return csr_array((value, (row, column)), shape=shape)
