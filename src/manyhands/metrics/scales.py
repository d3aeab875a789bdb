"""Classes as positions on an ordinal or interval scale."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.encoding import as_column
from manyhands.exceptions import AlignmentError, ParameterError
from manyhands.validation import check_known

Array = npt.NDArray[np.float64]
Scale = Mapping[Any, Any] | Any  # class -> number, a number for each class, or the classes from low to high


def on_scale(annotations: Annotations, level: str, values: Scale | None) -> Annotations:
    """Replace classes by their positions on a scale.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    level : {"ordinal", "interval"}
        Level of measurement.
    values : array-like, dict or None
        Position of each class, as in `krippendorff_alpha`; None to read the classes as numbers.

    Returns
    -------
    Annotations
        The same labels with ascending numbers as classes; classes with equal numbers are merged, and classes without
        labels are dropped.
    """
    used = np.flatnonzero(np.bincount(annotations.label, minlength=annotations.n_classes))
    names = annotations.classes[used].tolist()
    number = _read(names, level) if values is None else _given(annotations.classes.tolist(), names, level, values)
    distinct, code = np.unique(np.array(number, float), return_inverse=True)
    code_of_class = np.zeros(annotations.n_classes, np.int64)
    code_of_class[used] = code
    ids = {"item_ids": annotations.item_ids, "worker_ids": annotations.worker_ids, "classes": distinct}
    return Annotations(annotations.item, annotations.worker, code_of_class[annotations.label], **ids)


def _read(names: list[Any], level: str) -> list[float]:
    """The classes as numbers, or their text read as numbers."""
    number = [_as_number(name) for name in names]
    if None in number:
        name = names[number.index(None)]
        remedy = (
            "give values=, the classes from low to high" if level == "ordinal" else "give values=, a number for each"
        )
        raise ParameterError(f"Level {level!r} needs classes that are numbers, but one is {name!r}; {remedy}.")
    return number  # type: ignore[return-value]


def _given(classes: list[Any], names: list[Any], level: str, values: Scale) -> list[float]:
    """The numbers of the classes that occur, from the caller's `values`."""
    if isinstance(values, Mapping):
        check_known(names, values, "Classes without a value are", "Give each class that occurs a number.")
        return [_checked(values[name], name) for name in names]
    listed = list(as_column(values, "values"))
    if all(isinstance(value, numbers.Real) for value in listed):
        if len(listed) != len(classes):
            raise AlignmentError(
                f"There are {len(classes)} classes, but {len(listed)} values; give one for each class."
            )
        number_of = dict(zip(classes, listed))
        return [_checked(number_of[name], name) for name in names]
    if level != "ordinal":
        raise ParameterError("Level 'interval' needs values that are numbers, one for each class.")
    if len(set(listed)) < len(listed):
        raise ParameterError("values, the classes from low to high, must contain each class once.")
    rank_of = {name: float(rank) for rank, name in enumerate(listed)}
    check_known(names, rank_of, "Classes without a place in values are", "Name all classes, from low to high.")
    return [rank_of[name] for name in names]


def _checked(value: Any, name: Any) -> float:
    number = _as_number(value)
    if number is None:
        raise ParameterError(f"The value of class {name!r} must be a finite number. Got {value!r}.")
    return number


def _as_number(value: Any) -> float | None:
    """A finite number, or text that can be read as one; Python would also read "1_0" as ten, which is not intended."""
    if not isinstance(value, numbers.Real | str) or (isinstance(value, str) and "_" in value):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def unit_scale(numbers_: Array) -> Array:
    """Shift and scale ascending numbers to 0 .. 1, to which coefficients of agreement are invariant.

    Parameters
    ----------
    numbers_ : ndarray of shape (n_classes,)
        Ascending numbers.

    Returns
    -------
    ndarray of shape (n_classes,)
        The numbers between 0 and 1; all 0 if they are equal.
    """
    halves = numbers_ / 2  # the difference of the largest floats would overflow
    shifted = halves - halves[0]
    return shifted / shifted[-1] if shifted[-1] > 0 else shifted
