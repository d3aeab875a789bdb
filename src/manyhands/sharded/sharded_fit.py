"""The outcome of a fit on shards: everything but the items, which the final task computes shard by shard."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.base import PRIOR_ACCURACY, Aggregator, Inference
from manyhands.annotations import Annotations
from manyhands.exceptions import CrowdWarning
from manyhands.scorecards.accuracy import accuracy_of_counts
from manyhands.sharded.items import FinalPass
from manyhands.sharded.labels import ShardedLabels
from manyhands.sharded.worker_sums import leave_one_out_accuracy, worker_columns

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
    n_right : ndarray of shape (n_workers,)
        Expected number of right labels of each worker on items with at least two labels.
    n_checked : ndarray of shape (n_workers,)
        Number of labels of each worker on these items.
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
    n_right: Array
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

    def worker_table(self, labels: ShardedLabels | None = None) -> dict[str, npt.NDArray[Any]]:
        """The workers as columns: labels, accuracy with a 95% interval, and recall of each class.

        Parameters
        ----------
        labels : ShardedLabels, default=None
            The labels that were fitted, for one more pass over them: then the accuracy is that of the scorecards, in
            which no worker is evaluated by their own labels. Without them it follows from the expected counts of the
            fit, to which a worker's own labels belong: it is too high where items have few labels, and its interval
            does not include the uncertainty about the truth.

        Returns
        -------
        dict of str to ndarray
            `worker`, `n_labels`, `n_checked` (labels on items with at least two), `accuracy`, `accuracy_low`,
            `accuracy_high`; and `recall_<class>` and `items_<class>` for each class, where the method has expected
            counts.
        """
        if labels is None or self.confusion is None or not self.n_checked.any():
            accuracy = accuracy_of_counts(self.n_right, np.maximum(self.n_checked - self.n_right, 0.0))
        else:
            view = getattr(self.final_task.posterior, "view", None)
            accuracy = leave_one_out_accuracy(labels, self.results, self.class_totals, view)
        n_checked = np.rint(self.n_checked).astype(np.int64)
        names = {"worker": self.worker_ids, "n_labels": self.worker_volume, "n_checked": n_checked}
        return worker_columns(names, accuracy, self.counts, self.classes)

    def model(self) -> Aggregator:
        """The fitted method without items: for predictions on new labels, and for `save`.

        Returns
        -------
        Aggregator
            A new object of the class of `method`, fitted, with `item_ids_`, `posterior_` and the like empty. It cannot
            score labels, because it does not hold those that it was fitted to.
        """
        made = type(self.method)(**self.method.get_params(deep=False))
        empty = np.zeros(0, np.int32)
        nothing = Annotations._from_codes((empty, empty, empty), (np.zeros(0, int), self.worker_ids, self.classes))
        posterior = np.zeros((0, len(self.classes)))
        of_items = {"withheld_": np.zeros(0, bool), "_model_posterior": posterior}
        results = self.results | {name: of_items[name] for name in of_items if name in made._of_items}
        found = Inference(posterior, self.counts, self.n_iter, self.converged, self.history, results)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CrowdWarning)  # about a crowd without labels
            made._store(nothing, {}, None, found)
        made._class_totals, made.worker_accuracy_, made.notes_ = self.class_totals, self.worker_accuracy, self.notes
        return made

    @property
    def worker_accuracy(self) -> Array:
        """Share of right labels of each worker, shape (n_workers,), with one pseudo-count of accuracy 0.7."""
        return np.asarray((self.n_right + PRIOR_ACCURACY) / (self.n_checked + 1.0))

    @property
    def confusion(self) -> Array | None:
        """Confusion matrices [worker, truth, label], where the method has them."""
        return self.results.get("confusion_")

    @property
    def class_prior(self) -> Array | None:
        """Class frequencies, where the method has them."""
        return self.results.get("class_prior_")
