"""What we believe of an item before its labels: class frequencies, a uniform guess, gold.

A class prior turns the expected number of items of each class into log p(truth); gold labels are an
`offset` per item that leaves one class standing. Both enter the same E step.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.validation import check_known

Array = npt.NDArray[np.float64]

IMPOSSIBLE = -1e12  # finite, so that no arithmetic meets inf - inf; its exponential is exactly 0


class ClassPrior(Protocol):
    """log p(truth), and what it adds to the objective."""

    def solve(self, totals: Array) -> Array: ...

    def log_penalty(self, log_prior: Array) -> float: ...


@dataclass(frozen=True)
class EstimatedPrior:
    """Class frequencies, estimated with `smoothing` extra items per class."""

    smoothing: float

    def solve(self, totals: Array) -> Array:
        share = totals + self.smoothing
        total = share.sum()
        share = share / total if total > 0 else np.full(len(totals), 1 / len(totals))
        return elementary.log(np.maximum(share, np.finfo(np.float64).tiny))

    def log_penalty(self, log_prior: Array) -> float:
        return self.smoothing * float(log_prior.sum())


@dataclass(frozen=True)
class FixedPrior:
    """Class frequencies that are known, or assumed, before any label is seen."""

    log_prior: Array

    def solve(self, totals: Array) -> Array:
        return self.log_prior

    def log_penalty(self, log_prior: Array) -> float:
        return 0.0


def class_prior(prior: str | npt.ArrayLike, n_classes: int, smoothing: float) -> ClassPrior:
    """The prior named by an estimator's parameter: "estimated", "uniform", or a frequency for each class."""
    if isinstance(prior, str):
        if prior == "estimated":
            return EstimatedPrior(smoothing)
        return FixedPrior(np.full(n_classes, -elementary.log(max(n_classes, 1))))
    share = np.asarray(prior, float)
    if share.shape != (n_classes,):
        raise ParameterError(f"The parameter 'prior' has {share.size} numbers, but there are {n_classes} classes.")
    return FixedPrior(elementary.log(share / share.sum()))


def gold_codes(
    gold: Mapping[Any, Any] | None, item_ids: npt.NDArray[Any], classes: npt.NDArray[Any]
) -> npt.NDArray[np.int32] | None:
    """(n_items,) the code of each item's gold class, -1 where there is none; None without gold."""
    if gold is not None and not isinstance(gold, Mapping):
        raise AnnotationError(
            f"Gold must be a mapping from items to classes, such as {{item: class}}, not {type(gold).__name__}."
        )
    if not gold:
        return None
    for item, value in gold.items():
        if not isinstance(value, Hashable):
            raise AnnotationError(
                f"The gold class of item {item!r} is {value!r}, which is not hashable. Name one class."
            )
    items = item_ids.tolist()  # a resampled item stands here more than once
    class_of = {value: k for k, value in enumerate(classes.tolist())}
    check_known(list(gold), set(items), "Gold items", "Gold must name items of the annotations.")
    check_known(list(gold.values()), class_of, "Gold classes", "Name all classes when you build the annotations.")
    return np.array([class_of[gold[item]] if item in gold else -1 for item in items], np.int32)


def gold_offset(codes: npt.NDArray[np.int32] | None, n_classes: int) -> Array | None:
    """(n_items, n_classes) what gold adds to the log prior: nothing, or the end of all classes but one."""
    if codes is None:
        return None
    offset = np.zeros((len(codes), n_classes))
    known = np.flatnonzero(codes >= 0)
    offset[known] = IMPOSSIBLE
    offset[known, codes[known]] = 0.0
    return offset
