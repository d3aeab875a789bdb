"""The two sparse products of the plain pass without SciPy, for executors of a cluster that do not have it.

`np.bincount` adds one number after the other, as SciPy's products do, so that the bits are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Indicators:
    """A sparse matrix with one entry per label, which can be multiplied by a dense one from the right.

    Parameters
    ----------
    row : ndarray of shape (n_labels,) of int
        Row of each entry.
    column : ndarray of shape (n_labels,) of int
        Column of each entry.
    weight : ndarray of shape (n_labels,) or None
        The entries; None where all are 1.
    n_rows : int
        Number of rows.

    Examples
    --------
    >>> matrix = Indicators(np.array([0, 0, 1]), np.array([1, 2, 0]), None, 2)
    >>> (matrix @ np.array([[1.0], [2.0], [4.0]])).tolist()
    [[6.0], [1.0]]
    """

    row: npt.NDArray[np.integer[Any]]
    column: npt.NDArray[np.integer[Any]]
    weight: Array | None
    n_rows: int

    def __matmul__(self, dense: Array) -> Array:
        product = np.empty((self.n_rows, dense.shape[1]))
        for k in range(dense.shape[1]):
            value = dense[self.column, k]
            if self.weight is not None:
                value = self.weight * value
            product[:, k] = np.bincount(self.row, weights=value, minlength=self.n_rows)
        return product

    def transposed(self, n_rows: int) -> Indicators:
        """The transposed matrix, whose entries are added in the same order.

        Parameters
        ----------
        n_rows : int
            Number of rows of the transposed matrix.

        Returns
        -------
        Indicators
        """
        return Indicators(self.column, self.row, self.weight, n_rows)
