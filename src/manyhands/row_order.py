"""Rows of X in another order, without reading or copying more of them than needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from manyhands.features import DatasetRows, Floats, Index, Rows, SparseRows


def reordered(rows: Rows, order: Index | None) -> Rows:
    """Return rows in another order.

    Parameters
    ----------
    rows : Rows
        Rows of X.
    order : ndarray of int or None
        Their row numbers in the wanted order; None leaves them as they are.

    Returns
    -------
    Rows
        A dense array, which may be a memory-mapped file, is not copied before all rows are needed at once.
    """
    if order is None:
        return rows
    if isinstance(rows, DatasetRows):
        return DatasetRows(RowGetter(rows.getter, order))
    return SparseRows(rows.matrix[order]) if isinstance(rows, SparseRows) else _Reordered(rows, order)


@dataclass(frozen=True, eq=False)
class RowGetter:
    """Some rows of an object that returns rows one at a time.

    Parameters
    ----------
    getter : object with `__getitem__`
        Returns row i.
    index : ndarray of int
        The wanted rows.
    """

    getter: Any
    index: Index

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, at: int) -> Any:
        return self.getter[int(self.index[at])]


@dataclass(frozen=True, eq=False)
class _Reordered:
    """Rows of an array in another order."""

    rows: Rows
    order: Index

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one row."""
        return self.rows.shape

    def __len__(self) -> int:
        return len(self.order)

    def take(self, index: Index) -> Floats:
        """Rows by index, copied."""
        return self.rows.take(self.order[index])

    def whole(self) -> Any:
        """A copy of the array."""
        return self.rows.whole()[self.order]
