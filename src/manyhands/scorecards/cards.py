"""The quality report of one worker and of all workers, for tables and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.data_frames import make_frame
from manyhands.em.kernels import Array
from manyhands.notebook_display import panels_of
from manyhands.scorecards.card_tables import card_columns
from manyhands.scorecards.leave_one_out import Mask

Codes = npt.NDArray[np.intp]


@dataclass(frozen=True)
class WorkerCard:
    """Quality report of one worker, in plain Python values.

    `dataclasses.asdict` of it can be written as JSON if the ids can. The attributes are those of :class:`Scorecards`
    for one worker, with ids and classes in place of codes; None stands where a value is undefined.

    Attributes
    ----------
    worker : object
        Id of the worker.
    n_labels : int
        Number of labels given.
    n_checked : int
        Number of these on items that another worker or gold labels too.
    accuracy : float
        Posterior mean of the share of right labels.
    accuracy_low : float
        Lower end of its 95% interval.
    accuracy_high : float
        Upper end of its 95% interval.
    agreement : float or None
        Share of the other workers' labels on the same items that equal this worker's.
    agreement_by_chance : float or None
        Chance agreement: the same with this worker's labels shuffled among their items.
    bias_class : object
        The class that is over-used significantly; None if there is none.
    bias : float or None
        Share of labels of this class minus its expected share among the items.
    top_confusions : tuple of (truth, label, expected count, rate)
        Up to three most frequent confusions; the rate is relative to the worker's items of this truth.
    recall : dict of object to tuple of (mean, low, high, expected number of items)
        Class -> share of the worker's items of this class that they label right, with its 95% interval.
    n_timed : int
        Number of labels whose working time is known.
    median_seconds : float or None
        Median working time of these, in seconds.
    flags : tuple of str
        Flags, of :data:`FLAGS`.
    reasons : tuple of str
        One sentence for each flag.
    partners : tuple of object
        Ids of the workers they copy from or are copied by, at most twenty.
    """

    worker: Any
    n_labels: int
    n_checked: int
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    agreement: float | None
    agreement_by_chance: float | None
    bias_class: Any
    bias: float | None
    top_confusions: tuple[tuple[Any, Any, float, float], ...]
    recall: dict[Any, tuple[float, float, float, float]]
    n_timed: int
    median_seconds: float | None
    flags: tuple[str, ...]
    reasons: tuple[str, ...]
    partners: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Scorecards:
    """Quality reports of all workers, as columns.

    ``cards[w]`` and iteration give one :class:`WorkerCard` per worker.

    Attributes
    ----------
    worker_ids : ndarray of shape (n_workers,)
        Ids of the workers, as in the annotations.
    classes : ndarray of shape (n_classes,)
        Classes, as in the annotations.
    n_labels : ndarray of int of shape (n_workers,)
        Number of labels given.
    n_checked : ndarray of int of shape (n_workers,)
        Number of labels on items that another worker or gold labels too.
    accuracy : ndarray of shape (n_workers,)
        Posterior mean of the share of right labels.
    accuracy_low : ndarray of shape (n_workers,)
        Lower end of its 95% interval.
    accuracy_high : ndarray of shape (n_workers,)
        Upper end of its 95% interval.
    agreement : ndarray of shape (n_workers,)
        Share of the other workers' labels on the same items that equal the worker's; NaN where there are none.
    agreement_by_chance : ndarray of shape (n_workers,)
        Chance agreement: the same with the worker's labels shuffled among their items.
    bias_class : ndarray of int of shape (n_workers,)
        Code of the class that is over-used significantly; -1 for none.
    bias : ndarray of shape (n_workers,)
        Share of labels of this class minus its expected share among the items; 0 for none.
    confused_truth : ndarray of int of shape (n_workers, 3)
        True class of the most frequent confusions; -1 for none.
    confused_label : ndarray of int of shape (n_workers, 3)
        Label given in its place; -1 for none.
    confused_count : ndarray of shape (n_workers, 3)
        Expected number of these labels.
    confused_rate : ndarray of shape (n_workers, 3)
        Their share among the worker's items of this truth.
    recall : ndarray of shape (n_workers, n_classes)
        Share of the worker's items of each class that they label right, posterior mean.
    recall_low : ndarray of shape (n_workers, n_classes)
        Lower end of its 95% interval.
    recall_high : ndarray of shape (n_workers, n_classes)
        Upper end of its 95% interval.
    recall_items : ndarray of shape (n_workers, n_classes)
        Expected number of the worker's checked items that are of each class: the evidence behind the recall.
    n_timed : ndarray of int of shape (n_workers,)
        Number of labels whose working time is known.
    median_seconds : ndarray of shape (n_workers,)
        Median working time per label in seconds; NaN where unknown.
    crowd_median_seconds : float
        Median of the workers' medians; NaN where unknown.
    flags : tuple of tuple of str
        Flags of each worker.
    reasons : tuple of tuple of str
        One sentence for each flag.
    partners : tuple of tuple of int
        Codes of the workers that each worker copies from or is copied by, at most twenty.
    frame_library : {"pandas", "polars", "pyarrow"} or None, default=None
        Library of the data frame that the annotations came from, which `to_frame` returns.
    annotations : Annotations or None, default=None
        The labels that the reports are about, for a notebook's cards of workers.
    posterior : ndarray of shape (n_items, n_classes) or None, default=None
        Posterior of their items.
    """

    worker_ids: npt.NDArray[Any]
    classes: npt.NDArray[Any]
    n_labels: npt.NDArray[np.int64]
    n_checked: npt.NDArray[np.int64]
    accuracy: Array
    accuracy_low: Array
    accuracy_high: Array
    agreement: Array
    agreement_by_chance: Array
    bias_class: Codes
    bias: Array
    confused_truth: Codes
    confused_label: Codes
    confused_count: Array
    confused_rate: Array
    recall: Array
    recall_low: Array
    recall_high: Array
    recall_items: Array
    n_timed: npt.NDArray[np.int64]
    median_seconds: Array
    crowd_median_seconds: float
    flags: tuple[tuple[str, ...], ...]
    reasons: tuple[tuple[str, ...], ...]
    partners: tuple[tuple[int, ...], ...]
    frame_library: str | None = None
    annotations: Annotations | None = field(default=None, repr=False)
    posterior: Array | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.worker_ids)

    def __iter__(self) -> Iterator[WorkerCard]:
        return (self[w] for w in range(len(self)))

    def __getitem__(self, w: int) -> WorkerCard:
        classes = self.classes.tolist()
        confused = zip(self.confused_truth[w], self.confused_label[w], self.confused_count[w], self.confused_rate[w])
        bias_class = int(self.bias_class[w])
        return WorkerCard(
            worker=self.worker_ids[[w]].tolist()[0],
            n_labels=int(self.n_labels[w]),
            n_checked=int(self.n_checked[w]),
            accuracy=float(self.accuracy[w]),
            accuracy_low=float(self.accuracy_low[w]),
            accuracy_high=float(self.accuracy_high[w]),
            agreement=_known(self.agreement[w]),
            agreement_by_chance=_known(self.agreement_by_chance[w]),
            bias_class=None if bias_class < 0 else classes[bias_class],
            bias=None if bias_class < 0 else float(self.bias[w]),
            top_confusions=tuple((classes[k], classes[c], float(n), float(r)) for k, c, n, r in confused if k >= 0),
            recall=dict(zip(classes, zip(*(values[w].tolist() for values in self._recalls)))),
            n_timed=int(self.n_timed[w]),
            median_seconds=_known(self.median_seconds[w]),
            flags=self.flags[w],
            reasons=self.reasons[w],
            partners=tuple(self.worker_ids[list(self.partners[w])].tolist() if self.partners[w] else ()),
        )

    def to_frame(self, library: str | None = None) -> Any:
        """Return the reports as a data frame, one row per worker.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"} or None, default=None
            Kind of data frame; None for that of the frame which the annotations came from, and polars otherwise.

        Returns
        -------
        polars.DataFrame, pandas.DataFrame or pyarrow.Table
            ``worker`` and the columns of the scorecard (docs/scorecards.md); with pandas the workers are the index.
        """
        return make_frame(card_columns(self), library or self.frame_library, "worker")

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the map of workers and their cards, as in the HTML report."""
        return panels_of("scorecards", self)

    @property
    def _recalls(self) -> tuple[Array, Array, Array, Array]:
        return self.recall, self.recall_low, self.recall_high, self.recall_items

    def flagged(self, flag: str) -> Mask:
        """Select the workers with a flag.

        Parameters
        ----------
        flag : str
            One of :data:`FLAGS`.

        Returns
        -------
        ndarray of bool of shape (n_workers,)
            True for workers with this flag.
        """
        return np.array([flag in flags for flags in self.flags], bool)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
