"""Prior information on the truth of an item: class frequencies, a uniform class prior, gold labels.

A class prior turns the expected number of items of each class into log p(truth). Gold labels are an `offset` per item
that excludes all classes but one. Both enter the same E step.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from manyhands._core import elementary
from manyhands._core.arrays import Array
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.validation import check_known

_MAX_LISTED = 10  # classes in a message
CLASS_SMOOTHING = 0.01  # items added to every class; ours, the default of `DawidSkene` for its parameter `smoothing`
PRIOR_ACCURACY = 0.7  # of a worker, before any label is seen: the prior mean, worth one label; ours
IMPOSSIBLE = -1e12  # finite, so that no arithmetic meets inf - inf; its exponential is exactly 0


class ClassPrior(Protocol):
    """Prior of the truth: log p(truth), and its log density in the objective."""

    def solve(self, totals: Array) -> Array:
        """The M step: log p(truth), shape (n_classes,), from the expected number of items of each class."""

    def log_penalty(self, log_prior: Array) -> float:
        """What the prior of the class frequencies adds to the objective."""


@dataclass(frozen=True)
class EstimatedPrior:
    """Class frequencies, estimated with a symmetric Dirichlet prior."""

    smoothing: float  # pseudo-count: items added to every class

    def solve(self, totals: Array) -> Array:
        """Log of the smoothed class frequencies."""
        share = totals + self.smoothing
        total = share.sum()
        share = share / total if total > 0 else np.full(len(totals), 1 / len(totals))
        return elementary.log(np.maximum(share, np.finfo(np.float64).tiny))

    def log_penalty(self, log_prior: Array) -> float:
        """Log density of the Dirichlet prior, up to a constant."""
        return self.smoothing * float(log_prior.sum())


@dataclass(frozen=True)
class FixedPrior:
    """Class frequencies that are known, or assumed, before any label is seen.

    Shapes: log_prior (n_classes,).
    """

    log_prior: Array  # (n_classes,)

    def solve(self, totals: Array) -> Array:
        """The given log p(truth), whatever the totals are."""
        return self.log_prior

    def log_penalty(self, log_prior: Array) -> float:
        """Zero: there is nothing to estimate."""
        return 0.0


def class_prior(prior: str | npt.ArrayLike, n_classes: int, smoothing: float) -> ClassPrior:
    """The class prior named by an estimator's parameter.

    Shapes: prior (n_classes,).
    """
    if isinstance(prior, str):
        if prior == "estimated":
            return EstimatedPrior(smoothing)
        return FixedPrior(np.full(n_classes, -elementary.log(max(n_classes, 1))))
    share = np.asarray(prior, float)
    if share.shape != (n_classes,):
        raise ParameterError(f"The parameter `prior` has {share.size} numbers, but there are {n_classes} classes.")
    return FixedPrior(elementary.log(share / share.sum()))


def gold_by_item(gold: Any, item_ids: npt.NDArray[Any]) -> Any:
    """Gold as a mapping from items to classes, where it is a list or an array with one class, or None, per item.

    scikit-learn cuts such lists into folds, which it cannot do with a mapping.

    Shapes: item_ids (n_items,).
    """
    if not isinstance(gold, list | tuple | np.ndarray):
        return gold
    if len(gold) != len(item_ids):
        raise AnnotationError(
            f"Gold has {len(gold)} entries, but the annotations have {len(item_ids)} items. Give one class for each "
            f"item, None where it is not known, or a mapping {{item: class}}."
        )
    values = gold.tolist() if isinstance(gold, np.ndarray) else gold
    given = zip(item_ids.tolist(), values, strict=True)
    return {item: value for item, value in given if value is not None and not is_nan(value)}


def is_nan(value: Any) -> bool:
    """Whether a value is a float that is not a number: how data frames write that something is missing."""
    return isinstance(value, float) and value != value


def gold_codes(gold: Any, item_ids: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[np.int32] | None:
    """Gold labels as class codes.

    Shapes: item_ids (n_items,); classes (n_classes,); returns (n_items,).
    """
    if gold is not None and not isinstance(gold, Mapping):
        hint = " Pass gold.to_dict(), with the items as its index." if hasattr(gold, "to_dict") else ""
        raise AnnotationError(
            f"Gold must be a mapping from items to classes, such as {{item: class}}, not {type(gold).__name__}.{hint}"
        )
    if not gold:
        return None
    for item, value in gold.items():
        if not isinstance(value, Hashable):
            raise AnnotationError(
                f"The gold class of item {item!r} is {value!r}, which is not hashable. Name one class."
            )
    items = item_ids.tolist()  # a resampled item occurs more than once
    class_of = {value: k for k, value in enumerate(classes.tolist())}
    check_known(list(gold), set(items), "Gold items", "Gold must name items of the annotations.")
    listed = ", ".join(map(repr, classes[:_MAX_LISTED].tolist())) + (", ..." if len(classes) > _MAX_LISTED else "")
    remedy = f"There are: {listed}. Name all classes when you build the annotations."
    check_known(list(gold.values()), class_of, "Gold classes", remedy)
    return np.array([class_of[gold[item]] if item in gold else -1 for item in items], np.int32)


def gold_offset(codes: npt.NDArray[np.int32] | None, n_classes: int) -> Array | None:
    """What gold adds to the log prior of each item: 0 for the gold class, effectively minus infinity for all others.

    Shapes: codes (n_items,); returns (n_items, n_classes).
    """
    if codes is None:
        return None
    offset = np.zeros((len(codes), n_classes))
    gold_items = np.flatnonzero(codes >= 0)
    offset[gold_items] = IMPOSSIBLE
    offset[gold_items, codes[gold_items]] = 0.0
    return offset
