"""Class imbalance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from manyhands.annotations import Annotations
from manyhands.class_balance import imbalance
from manyhands.encoding import Values
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.metrics.truth import own_values
from manyhands.validation import check_known


def imbalance_ratio(labels_or_counts: Any, classes: Values | None = None) -> float:
    """Imbalance ratio R = (N_max - N_min) / N of the class counts: 0 is balanced, 1 is a single class.

    Parameters
    ----------
    labels_or_counts : Annotations, mapping or array-like
        Annotations, whose labels are counted; a mapping (dict, Counter) from class to count; or one label per item,
        where None stands for an item without label.
    classes : array-like, default=None
        All classes; those without labels count as 0. If None, the classes that occur, so that a single class is
        balanced. Not needed for annotations, which have classes of their own.

    Returns
    -------
    float
        The ratio, between 0 and 1.

    References
    ----------
    Shi, Li and Huang (2021), "Learning from Crowds with Sparse and Imbalanced Annotations", Eq. 6.

    Examples
    --------
    >>> imbalance_ratio(["cat", "cat", "cat", "dog"])
    0.5
    >>> imbalance_ratio({"cat": 3, "dog": 1}, classes=["cat", "dog", "emu"])
    0.75
    """
    count_of = _counts(labels_or_counts)
    if classes is not None:
        known = dict.fromkeys(own_values(classes, "list of classes"), 0.0)
        check_known(count_of, known, "Classes", "Add them to classes.")
        count_of = known | count_of
    counts = np.array(list(count_of.values()))
    if counts.sum() == 0:
        raise AnnotationError("There is not a single label, so the imbalance ratio is undefined.")
    return imbalance(counts)


def _counts(given: Any) -> dict[Any, float]:
    """The number of labels of each class."""
    if isinstance(given, Annotations):
        n_of_class = np.bincount(given.label, minlength=given.n_classes)
        return dict(zip(given.classes.tolist(), n_of_class.astype(float).tolist()))
    if isinstance(given, Mapping):
        return {key: _as_count(value, key) for key, value in given.items()}
    counts: dict[Any, float] = {}
    for label in own_values(given, "list of labels"):
        counts[label] = counts.get(label, 0.0) + 1.0
    counts.pop(None, None)
    return counts


def _as_count(value: Any, key: Any) -> float:
    try:
        count = float(value)
    except (TypeError, ValueError, OverflowError):
        count = float("nan")
    if not 0 <= count < float("inf"):
        raise ParameterError(f"The count of class {key!r} must be a number at least 0. Got {value!r}.")
    return count
