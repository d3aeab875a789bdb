"""Checks of parameters, columns, codes and annotations; each raises an error of this package or returns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sized
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.data_frames import is_frame, read_frame
from manyhands.exceptions import AlignmentError, AnnotationError, ParameterError
from manyhands.spelling import closest_match, did_you_mean
from manyhands.validation.constraints import Constraint

# Methods that take weights of labels; their classes have `_takes_weights`.
TAKE_WEIGHTS = ("majority-vote", "one-coin", "dawid-skene", "pooled-dawid-skene")

_MAX_REPR = 1000  # characters of a value in a message
_MAX_SHOWN = 5  # unknown values in a message
_MAX_COMPARED = 5000  # known values that an unknown one is compared with


def check_parameters(name: str, parameters: Mapping[str, Any], constraints: Mapping[str, Constraint]) -> None:
    """Check every constructor parameter against its constraint.

    Parameters
    ----------
    name : str
        Name of the class or function, for the message.
    parameters : mapping of str to object
        Values by parameter name; must contain every name in `constraints`.
    constraints : mapping of str to Constraint
        Constraints by parameter name.

    Raises
    ------
    ParameterError
        For the first parameter whose value is not allowed.
    """
    for parameter, constraint in constraints.items():
        value = parameters[parameter]
        if not constraint.allows(value):
            hint = did_you_mean(value, _names(constraint)) if isinstance(value, str) else ""
            raise ParameterError(
                f"The parameter {parameter!r} of {name} must be {constraint}. Got {_shown(value)}.{hint}"
            )


def _names(constraint: Any) -> list[str]:
    """The texts that a constraint allows, if it lists any."""
    constraint = getattr(constraint, "other", constraint)
    values: Any = getattr(constraint, "names", None) or getattr(constraint, "values", ())
    return [value for value in values if isinstance(value, str)]


def _shown(value: Any) -> str:
    """The value as Python writes it, cut where it is long."""
    try:
        shown = repr(value)
        return shown if len(shown) <= _MAX_REPR else f"{shown[:_MAX_REPR]}..."
    except ValueError:  # Python does not print integers of thousands of digits
        return f"a very large {type(value).__name__}"


def check_same_length(columns: Mapping[str, Sized]) -> None:
    """Check that columns of annotations have the same length.

    Parameters
    ----------
    columns : mapping of str to sized object
        Columns by name in the plural, such as ``{"items": ..., "workers": ..., "labels": ...}``.

    Raises
    ------
    AlignmentError
        Where lengths differ; the message states each of them.
    """
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{n} {name}" for name, n in lengths.items())
        raise AlignmentError(f"Every annotation needs an item, a worker and a label, but there are {counts}.")


def check_codes(codes: npt.ArrayLike, size: int, role: str) -> npt.NDArray[np.int32]:
    """Integer codes as an array, each of them in ``0 .. size - 1``.

    Parameters
    ----------
    codes : array-like of int of shape (n,)
        Codes.
    size : int
        Number of ids that codes refer to.
    role : {"item", "worker", "label"}
        What the codes stand for, for the message.

    Returns
    -------
    array of int32 of shape (n,)
        The codes; not copied where they are of this type already.

    Raises
    ------
    AnnotationError
        Where the array is not one-dimensional, not of integers, or has a code out of range.
    """
    array = np.asarray(codes)
    if array.size == 0:
        return np.zeros(0, np.int32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise AnnotationError(f"{role} codes must be a one-dimensional integer array; got {array.dtype} {array.shape}.")
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= size:
        raise AnnotationError(f"{role} codes must lie in 0 to {size - 1}; they go from {low} to {high}.")
    return array.astype(np.int32, copy=False)


def check_annotations(annotations: Any, *, takes_weights: bool = False, who: str = "This function") -> Any:
    """Return `Annotations` with at least one label; a data frame is read.

    Parameters
    ----------
    annotations : object
        What a caller passed.
    takes_weights : bool, default=False
        Whether labels may have weights.
    who : str, default="This function"
        Name of the method, for the message.

    Returns
    -------
    Annotations
        The same object, or the labels of the data frame.

    Raises
    ------
    AnnotationError
        Where it is something else, has no label, has weights where they are not taken, or is a data frame whose columns
        are not recognised.
    """
    annotations = as_annotations(annotations, takes_weights=takes_weights, who=who)
    if annotations.n_annotations == 0:
        raise AnnotationError("There is not a single label, so there is nothing to infer.")
    return annotations


def as_annotations(annotations: Any, *, takes_weights: bool = False, who: str = "This function") -> Any:
    """Return `Annotations`, which may be without labels; a data frame is read.

    Parameters
    ----------
    annotations : object
        What a caller passed.
    takes_weights : bool, default=False
        Whether labels may have weights.
    who : str, default="This function"
        Name of the method, for the message.

    Returns
    -------
    Annotations
        The same object, or the labels of the data frame.

    Raises
    ------
    AnnotationError
        Where it is something else, has weights where they are not taken, or is a data frame whose columns are not
        recognised.
    """
    if hasattr(type(annotations), "by_item"):  # the type, since the attribute of an instance would be computed
        if annotations.weight is not None and not takes_weights:
            raise AnnotationError(
                f"{who} does not take labels with weights (probabilities, shares of repeated answers). Pass "
                f"annotations.strongest_labels(), or use one of these methods: {', '.join(TAKE_WEIGHTS)}."
            )
        return annotations
    if is_frame(annotations):
        return read_frame(annotations)
    raise AnnotationError(
        f"Labels must come as Annotations or as a data frame, not as {type(annotations).__name__}. Build "
        f"them with Annotations.from_triples or Annotations.from_matrix; mh.read_annotations reads files and frames."
    )


def check_known(values: Collection[Any], known: Collection[Any], what: str, remedy: str) -> None:
    """Check that every value is a known one.

    Parameters
    ----------
    values : collection
        Values to check.
    known : collection
        Values that are allowed.
    what : str
        What the values are, in the plural, such as "Classes in gold".
    remedy : str
        A sentence that states what to do.

    Raises
    ------
    AnnotationError
        Where some are unknown; the message lists up to five of them and counts the rest.
    """
    unknown = [value for value in values if value not in known]
    if unknown:
        more = f" and {len(unknown) - _MAX_SHOWN} more" if len(unknown) > _MAX_SHOWN else ""
        listed = ", ".join(map(repr, unknown[:_MAX_SHOWN]))
        raise AnnotationError(f"{what} not known: {listed}{more}.{_nearest(unknown[0], known)} {remedy}")


def _nearest(unknown: Any, known: Collection[Any]) -> str:
    """Return the known value that an unknown one probably stands for, as a question; "" for none or too many."""
    by_text = {str(value): value for value in known} if len(known) <= _MAX_COMPARED else {}
    found = by_text.get(closest_match(unknown, by_text) or "")
    if found is None:
        return ""
    differs = str(found) == str(unknown)  # 1 and "1": the same text, of another type
    types = f" ({type(found).__name__}, not {type(unknown).__name__})" if differs else ""
    return f" Did you mean {found!r}{types}?"
