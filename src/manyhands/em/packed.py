"""The annotations in the form that the EM pass reads, and what a pass returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.em.table_sizes import check_tables

Array = npt.NDArray[np.float64]

_MAX_SHARDS = 4
_MIN_SHARD = 1 << 18  # labels times classes; smaller shards are done before a second thread has started


@dataclass(frozen=True)
class Packed:
    """Annotations in the form that the pass reads: `code = worker * n_classes + label`, item after item.

    Attributes
    ----------
    code : ndarray of shape (n_annotations,) of int32
        Worker and label of each annotation.
    known_label : ndarray of shape (n_annotations,) of int32 or None
        Label of each annotation, shared with the `Annotations`; None computes it from `code` when it is needed.
    start : ndarray of shape (n_items + 1,) of int64
        Annotations of item i are at `start[i]:start[i + 1]`.
    n_workers : int
        Number of workers.
    n_classes : int
        Number of classes.
    weight : ndarray of shape (n_annotations,) or None, default=None
        Weight of each annotation; None where all are 1.
    spare : list of ndarray
        Count tables of the shards, which the next pass reuses: new memory would have to be cleared by the system.
    """

    code: npt.NDArray[np.int32]
    known_label: npt.NDArray[np.int32] | None
    start: npt.NDArray[np.int64]
    n_workers: int
    n_classes: int
    weight: Array | None = None
    spare: list[npt.NDArray[np.float64]] = field(default_factory=list, repr=False, compare=False)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.start) - 1

    @cached_property
    def label(self) -> npt.NDArray[np.int32]:
        """Label of each annotation, shape (n_annotations,)."""
        return self.code % np.int32(self.n_classes) if self.known_label is None else self.known_label

    @cached_property
    def shards(self) -> list[tuple[int, int]]:
        """Ranges of items with about equally many labels, as many as pay for a count table of their own."""
        table_size = self.n_workers * self.n_classes**2
        n_shards = len(self.code) * self.n_classes // max(_MIN_SHARD, 2 * table_size * self.n_classes)
        n_shards = min(_MAX_SHARDS, 1 << max(n_shards, 1).bit_length() - 1)  # a power of two
        cuts = np.searchsorted(self.start, np.linspace(0, len(self.code), n_shards + 1)[1:-1])
        edges = [0, *cuts.tolist(), self.n_items]
        return list(pairwise(edges))


class PassResult(NamedTuple):
    """Outcome of one pass over the annotations.

    Attributes
    ----------
    counts : ndarray of shape (n_workers, n_classes, n_classes)
        Expected counts, indexed [worker, truth, label].
    totals : ndarray of shape (n_classes,)
        Expected number of labelled items of each class.
    evidence : float
        log p(labels), summed over the items.
    posterior : ndarray of shape (n_items, n_classes) or None
        p(truth | labels), where it was asked for.
    """

    counts: Array
    totals: Array
    evidence: float
    posterior: Array | None


def pack(annotations: Annotations) -> Packed:
    """Pack annotations for `em_pass`; 4 bytes per label.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.

    Returns
    -------
    Packed

    Raises
    ------
    LimitError
        Where the confusion matrices exceed the memory or the largest index.
    """
    check_tables(annotations)
    n_workers, n_classes = annotations.n_workers, annotations.n_classes
    code = annotations.worker * np.int32(n_classes)
    code += annotations.label
    return Packed(code, annotations.label, annotations.start, n_workers, n_classes, annotations.weight)
