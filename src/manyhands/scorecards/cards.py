"""One card for each worker, for tables and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.em.kernels import Array
from manyhands.scorecards.leave_one_out import Mask

Codes = npt.NDArray[np.intp]


@dataclass(frozen=True)
class WorkerCard:
    """What is known of one worker, in plain Python values: `dataclasses.asdict` of it is ready for JSON if the ids are.

    `None` stands where there is nothing to say.
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
    top_confusions: tuple[tuple[Any, Any, float, float], ...]  # truth, label, expected count, share of that truth
    flags: tuple[str, ...]
    reasons: tuple[str, ...]
    partners: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Scorecards:
    """What is known of all workers, as columns; `cards[w]` and iteration give one `WorkerCard` each.

    Attributes
    ----------
    worker_ids, classes : as in the annotations
    n_labels, n_checked : labels given, and those of items to which another worker or gold speaks
    accuracy, accuracy_low, accuracy_high : expected share of right labels and its 95% interval
    agreement : share of the other workers' labels on the same items that equal theirs; NaN where there are none
    agreement_by_chance : the same if their labels were shuffled among their items
    bias_class : code of the class that is over-used beyond chance, -1 for none
    bias : share of labels of that class minus its share among the items, 0 for none
    confused_truth, confused_label : (n_workers, 3) codes of the commonest confusions, -1 for none
    confused_count, confused_rate : (n_workers, 3) expected number, and share among the items of that truth
    flags, reasons : for each worker the flags, and a sentence for each flag
    partners : for each worker the codes of those they answer as one with, at most twenty
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
    flags: tuple[tuple[str, ...], ...]
    reasons: tuple[tuple[str, ...], ...]
    partners: tuple[tuple[int, ...], ...]

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
            flags=self.flags[w],
            reasons=self.reasons[w],
            partners=tuple(self.worker_ids[list(self.partners[w])].tolist() if self.partners[w] else ()),
        )

    def flagged(self, flag: str) -> Mask:
        """(n_workers,) those with this flag."""
        return np.array([flag in flags for flags in self.flags], bool)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
