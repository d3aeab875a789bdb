"""Classes that are left out as typing errors, found while the rows of a file are packed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands.io.read.stray_classes import MOST_LABELS, Strays, find_strays
from manyhands.io.read.text_encoding import Coded
from manyhands.io.stream.packing import PackedRows


class LabelCounts:
    """Number of labels of each class, and the rows of the rarest.

    Parameters
    ----------
    n_labels : int
        Number of distinct labels in the file.
    """

    def __init__(self, n_labels: int) -> None:
        self.counts = np.zeros(n_labels, np.int64)
        self._rows: list[npt.NDArray[np.int64]] = []
        self._n_items = 0

    def add(self, rows: PackedRows) -> None:
        """Count the labels of some items.

        Parameters
        ----------
        rows : PackedRows
            Labels of items that were not counted yet.
        """
        self.counts += np.bincount(rows.label, minlength=len(self.counts))
        rare = self.counts <= MOST_LABELS
        if rare.any():
            chosen = rare[rows.label]
            self._rows.append(np.stack([rows.item[chosen] + self._n_items, rows.worker[chosen], rows.label[chosen]]))
        self._n_items += len(rows.n_labels)

    def strays(self, names: list[str]) -> tuple[npt.NDArray[np.bool_], Strays]:
        """Return which classes are left out, by the rule for files that are read whole.

        Parameters
        ----------
        names : list of str
            The labels by their number in the file.

        Returns
        -------
        is_stray : ndarray of shape (n_labels,) of bool
            For each label of the file.
        strays : Strays
            Their names and numbers.
        """
        rows = np.concatenate([np.zeros((3, 0), np.int64), *self._rows], axis=1)
        rows = rows[:, self.counts[rows[2]] <= MOST_LABELS]
        numbers = np.array(sorted(set(rows[2].tolist()), key=names.__getitem__), np.int64)
        place = np.full(len(names), -1, np.int32)
        place[numbers] = np.arange(len(numbers))
        nothing, values = (pl.Series(texts, dtype=pl.String) for texts in ([], [names[number] for number in numbers]))
        item, worker = (np.unique(part, return_inverse=True)[1].astype(np.int32) for part in rows[:2])
        coded = {
            "item": Coded(item, nothing),
            "worker": Coded(worker, nothing),
            "label": Coded(place[rows[2]], values),
        }
        found, strays = find_strays(coded, slice(None), (), n_labels=int(self.counts.sum()))
        is_stray = np.zeros(len(self.counts), bool)
        is_stray[numbers[found]] = True
        return is_stray, strays
