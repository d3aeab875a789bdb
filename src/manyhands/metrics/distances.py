"""Squared distances between labels on a scale.

The sum over all pairs of a row follows from the sums of its values and of their squares, so pairs are not enumerated:

    sum_ij (x_i - x_j)^2 = 2 (n sum_i x_i^2 - (sum_i x_i)^2)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manyhands.metrics.vote_patterns import Array, Positions, Votes


class Distances:
    """Squared distances between the labels of different workers, on the rows where labels differ.

    Parameters
    ----------
    votes : Votes
        Votes on items, or on patterns of items.
    """

    def __init__(self, votes: Votes) -> None:
        row_of = np.cumsum(votes.contested) - 1
        cells, split = votes.contested[votes.row], votes.contested[votes.split_row]
        n_rows, n_classes = int(votes.contested.sum()), votes.n_classes
        self.n_workers = votes.n_workers[votes.contested]
        self.votes = _matrix(row_of[votes.row[cells]], votes.label[cells], votes.weight[cells], (n_rows, n_classes))
        vote_ids, vote = np.unique(votes.split_vote[split], return_inverse=True)
        n_split = len(vote_ids)
        self.split_votes = _matrix(vote, votes.split_label[split], votes.split_share[split], (n_split, n_classes))
        row = np.zeros(n_split, np.int64)
        row[vote] = row_of[votes.split_row[split]]
        self.row_of_vote = _matrix(row, np.arange(n_split), np.ones(n_split), (n_rows, n_split))

    def observed(self, scale: Array) -> Array:
        """Sum the squared distances over ordered pairs of workers, divided by n_workers - 1.

        Parameters
        ----------
        scale : ndarray of shape (n_classes, n_scales)
            Position of each class, on one or several scales.

        Returns
        -------
        ndarray of shape (n_contested, n_scales)
            The sums for the rows where labels differ.
        """
        between = _spread(self.votes, self.n_workers[:, None], scale)
        if self.split_votes.shape[0]:  # the labels of one worker are no pair
            between -= self.row_of_vote @ _spread(self.split_votes, 1.0, scale)
        return between / (self.n_workers[:, None] - 1)


def _spread(votes: Any, mass: Array | float, scale: Array) -> Array:
    """Sum of squared distances over all ordered pairs in each row of votes; `mass` is the total weight of a row."""
    return 2 * (mass * (votes @ scale**2) - (votes @ scale) ** 2)


def expected_distance(of_class: Array, scale: Array) -> Array:
    """Sum the squared distances over all ordered pairs of labels, whatever their items.

    Parameters
    ----------
    of_class : ndarray of shape (n_resamples, n_classes)
        Number of labels of each class.
    scale : ndarray of shape (n_resamples, n_classes)
        Position of each class.

    Returns
    -------
    ndarray of shape (n_resamples,)
        The sums.
    """
    n, first, second = (np.einsum("bk,bk->b", of_class, moment) for moment in (np.ones_like(scale), scale, scale**2))
    return 2 * (n * second - first**2)


def _matrix(row: Positions, column: Positions, value: Array, shape: tuple[int, int]) -> Any:
    from scipy.sparse import csr_array

    return csr_array((value, (row, column)), shape=shape)
