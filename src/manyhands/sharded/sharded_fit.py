"""The outcome of a fit on shards: everything but the items, which the final task computes shard by shard."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.base import Aggregator
from manyhands.sharded.items import FinalPass

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ShardedFit:
    """A fitted crowd.

    Attributes
    ----------
    method : Aggregator
        The method with its parameters, not fitted.
    worker_ids : ndarray of shape (n_workers,)
        The workers.
    classes : ndarray of shape (n_classes,)
        The classes.
    worker_volume : ndarray of shape (n_workers,) of int64
        Number of labels of each worker.
    n_items : int
        Number of items.
    n_labels : int
        Number of labels.
    counts : ndarray of shape (n_workers, n_classes, n_classes) or None
        Expected counts [worker, truth, label] of the last E step, where the method has them.
    class_totals : ndarray of shape (n_classes,)
        Expected number of items of each class.
    worker_accuracy : ndarray of shape (n_workers,)
        Expected share of right labels on items with at least two labels, with one pseudo-count of accuracy 0.7.
    n_checked : ndarray of shape (n_workers,)
        Number of labels of each worker on items with at least two labels.
    n_iter : int
        Number of passes over the data.
    converged : bool
        Whether the method converged within `max_iter`.
    history : list of float
        Objective after each iteration; empty for methods without one.
    results : dict of str to object
        Fitted attributes of the method, by the names that they have on the estimator, such as "confusion_".
    notes : dict of str to str
        Limitations of the result, by code, such as "no_redundancy".
    final_task : FinalPass
        The task that computes the results of the items of a shard (`ItemResults`); can be pickled.
    """

    method: Aggregator
    worker_ids: npt.NDArray[Any]
    classes: npt.NDArray[Any]
    worker_volume: npt.NDArray[np.int64]
    n_items: int
    n_labels: int
    counts: Array | None
    class_totals: Array
    worker_accuracy: Array
    n_checked: Array
    n_iter: int
    converged: bool
    history: list[float]
    results: dict[str, Any]
    notes: dict[str, str]
    final_task: FinalPass

    def with_note(self, code: str, sentence: str) -> ShardedFit:
        """The same fit with one more note.

        Parameters
        ----------
        code : str
            Code of the note.
        sentence : str
            What it says.

        Returns
        -------
        ShardedFit
        """
        return replace(self, notes=self.notes | {code: sentence})

    @property
    def confusion(self) -> Array | None:
        """Confusion matrices [worker, truth, label], where the method has them."""
        return self.results.get("confusion_")

    @property
    def class_prior(self) -> Array | None:
        """Class frequencies, where the method has them."""
        return self.results.get("class_prior_")
