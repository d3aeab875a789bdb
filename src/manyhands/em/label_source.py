"""Where EM with confusion matrices reads its labels: one object in memory, or shards from anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from manyhands.em import kernels
from manyhands.em.packed import Packed, PassResult

Array = npt.NDArray[np.float64]


class LabelSource(Protocol):
    """Labels that EM passes over. Nothing else is known about them: not where they lie, nor how many there are."""

    @property
    def n_workers(self) -> int:
        """Number of workers."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""

    def em_pass(self, log_confusion: Array, log_prior: Array, *, want_posterior: bool = False) -> PassResult:
        """The E step and its expected counts; a source of shards never returns the posterior."""

    def vote_pass(self) -> PassResult:
        """The pass in which each item's posterior is its vote share."""


@dataclass(frozen=True)
class PackedLabels:
    """Labels in memory, with what is known about single items.

    Parameters
    ----------
    packed : Packed
        The labels.
    offset : ndarray of shape (n_items, n_classes), default=None
        Added to the log prior of each item, for gold labels.
    """

    packed: Packed
    offset: Array | None = None

    @property
    def n_workers(self) -> int:
        """Number of workers."""
        return self.packed.n_workers

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.packed.n_classes

    def em_pass(self, log_confusion: Array, log_prior: Array, *, want_posterior: bool = False) -> PassResult:
        """The E step and its expected counts.

        Parameters
        ----------
        log_confusion : ndarray of shape (n_workers, n_classes, n_classes)
            log p(label | truth), indexed [worker, truth, label].
        log_prior : ndarray of shape (n_classes,)
            log p(truth).
        want_posterior : bool, default=False
            Return the posterior too.

        Returns
        -------
        PassResult
        """
        return kernels.em_pass(self.packed, log_confusion, log_prior, self.offset, want_posterior=want_posterior)

    def vote_pass(self) -> PassResult:
        """The pass in which each item's posterior is its vote share; what is known about single items is not used.

        Returns
        -------
        PassResult
            With evidence 0.
        """
        return kernels.vote_pass(self.packed)
