"""The workers of a fit on shards as a table: accuracy with an interval, and recall of each class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.em.kernels import rows_of
from manyhands.em.packed import Packed
from manyhands.noise import safe_log
from manyhands.scorecards.accuracy import (
    N_NODES,
    AccuracyEstimate,
    accuracy_of_histogram,
    histogram_of,
    right_histogram,
)
from manyhands.scorecards.leave_one_out import DOUBT, without_own_labels
from manyhands.scorecards.recall import recall_parameters
from manyhands.sharded.items import ModelPosterior
from manyhands.sharded.labels import Shard, ShardedLabels
from manyhands.sharded.views import View, annotations_of, item_pieces

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HistogramPass:
    """The task that sums, for each worker, leave-one-out probabilities of being right.

    Parameters
    ----------
    model : ModelPosterior
        The posterior that is a product of the confusion matrices.
    view : View or None
        The colluding group as one voter, where there is one.
    log_rows : ndarray of shape (n_workers * n_classes, n_classes)
        Logarithms of these matrices, a row for each worker and label: what is removed for a worker's own label.
    exponent : float
        Tempering exponent of the labels' likelihood in the posterior.
    """

    model: ModelPosterior
    view: View | None
    log_rows: Array
    exponent: float

    def __call__(self, shard: Shard) -> Array:
        """Run on one shard.

        Parameters
        ----------
        shard : Shard
            The labels.

        Returns
        -------
        ndarray of shape (n_workers, N_NODES)
            Weight of each worker's labels by probability.
        """
        packed = shard.packed
        posterior, _ = self.model(packed if self.view is None else self.view(packed))
        found = np.zeros((packed.n_workers, N_NODES))
        for first, last, part in item_pieces(packed, least=8 * packed.n_workers):  # each part sums for all workers
            if len(part.code):
                found += self._of_items(part, posterior[first:last])
        return found

    def _of_items(self, packed: Packed, posterior: Array) -> Array:
        """The histogram of some items."""
        worker = packed.code // np.int32(packed.n_classes)
        members = np.zeros(packed.n_workers, bool)
        if self.view is not None and self.view.members is not None:
            members = self.view.members
        if members[worker].any() or _has_repeats(worker, packed.start):
            votes = annotations_of(packed)
            log_confusion = self.log_rows.reshape(-1, packed.n_classes, packed.n_classes).transpose(0, 2, 1)
            return right_histogram(without_own_labels(votes, posterior, log_confusion, self.exponent, members, None))
        # Otherwise every label is in the posterior as it is: that of a worker on an item is removed row by row.
        n_labels = np.diff(packed.start)
        score = np.repeat(safe_log(posterior), n_labels, axis=0) - self.exponent * self.log_rows[packed.code]
        score -= score.max(axis=1, keepdims=True)
        elementary.exp(score, out=score)
        p_right = score[np.arange(len(score)), packed.label] / np.einsum("ak->a", score)
        p_right = (1 - DOUBT) * p_right + DOUBT / packed.n_classes
        checked = np.repeat((n_labels > 1).astype(np.float64), n_labels)
        return histogram_of(worker, p_right, checked, packed.n_workers)


def _has_repeats(worker: npt.NDArray[np.int32], start: npt.NDArray[np.int64]) -> bool:
    """Whether a worker labelled an item twice; the labels of an item are sorted by worker."""
    same = worker[1:] == worker[:-1]
    first = start[1:-1]
    same[first[(first > 0) & (first < len(worker))] - 1] = False  # two items
    return bool(same.any())


def leave_one_out_accuracy(
    labels: ShardedLabels, results: Mapping[str, Any], class_totals: Array, view: View | None
) -> AccuracyEstimate:
    """Estimate the accuracy of each worker as the scorecards do, by one pass over the labels.

    Parameters
    ----------
    labels : ShardedLabels
        The labels.
    results : mapping
        Fitted attributes of the method: `confusion_`, and `tempering_exponent_` where there is one.
    class_totals : ndarray of shape (n_classes,)
        Expected number of items of each class.
    view : View or None
        The colluding group as one voter, where there is one.

    Returns
    -------
    AccuracyEstimate
        Posterior mean and 95% interval for each worker.
    """
    exponent = float(results.get("tempering_exponent_", 1.0))
    log_rows = rows_of(safe_log(results["confusion_"]), labels.n_labels)
    total = class_totals + 1.0
    model = ModelPosterior(exponent * log_rows, exponent * np.log(total / total.sum()))
    summed: Array | None = None
    for part in labels.run(HistogramPass(model, view, log_rows, exponent), "shards: workers"):
        summed = part if summed is None else np.add(summed, part, out=summed)
    assert summed is not None
    return accuracy_of_histogram(summed, len(labels.classes), exponent)


def worker_columns(
    names: Mapping[str, npt.NDArray[Any]], accuracy: AccuracyEstimate, counts: Array | None, classes: npt.NDArray[Any]
) -> dict[str, npt.NDArray[Any]]:
    """The columns of the table.

    Parameters
    ----------
    names : mapping of str to ndarray
        First columns: `worker`, `n_labels` and `n_checked`.
    accuracy : AccuracyEstimate
        Mean and 95% interval.
    counts : ndarray of shape (n_workers, n_classes, n_classes) or None
        Expected counts [worker, truth, label]; without them there are no columns of recall.
    classes : ndarray of shape (n_classes,)
        The classes.

    Returns
    -------
    dict of str to ndarray
        These, `accuracy`, `accuracy_low`, `accuracy_high`, and for each class its recall and the expected number of the
        worker's items that are of this class.
    """
    columns = dict(names) | dict(zip(("accuracy", "accuracy_low", "accuracy_high"), accuracy))
    if counts is None:
        return columns
    right, wrong, n_items = recall_parameters(counts, accuracy.mean)
    recall = np.where(n_items > 0, right / (right + wrong), np.nan)
    for k, name in enumerate(map(str, classes.tolist())):
        columns |= {f"recall_{name}": recall[:, k], f"items_{name}": np.round(n_items[:, k], 1)}
    return columns
