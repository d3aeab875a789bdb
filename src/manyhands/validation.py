"""Checks of inputs: which values a parameter may have, and what is wrong with columns, codes and annotations.

First the constraints of constructor parameters (`Number`, `OneOf`, `NoneOr` ...), then the checks that raise errors of
this package, then sizes in bytes as people write them. Every message states what was wrong, which value came, and what
to do.
"""

from __future__ import annotations

import math
import numbers
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sized
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from manyhands._core.spelling import closest_match, did_you_mean
from manyhands._core.system import check_memory
from manyhands.exceptions import AlignmentError, AnnotationError, ParameterError
from manyhands.frames import is_frame, read_frame

# ----------------------------------------------------------------------------------------------------
# Constraints: which values a constructor parameter may have.
#
# Each constraint has three faces:
#
#     allows(value)   whether a parameter may have this value
#     str(...)        the end of an error message that begins with "must be"
#     type_text       the type as a docstring states it, as in ``name : type_text, default=...``
#
#     constraint                        type_text                         also allowed
#     Number(), Number(whole=True)      float, int                        NumPy's numbers, fractions
#     FractionOrCount()                 int or float
#     OneOf(("a", None))                {"a", None}
#     Probabilities(("uniform",))       {"uniform"} or array-like of shape (n_classes,)
#     RandomState()                     int, Generator or None            numpy SeedSequence
#     NoneOr(Number())                  float or None
#     Boolean()                         bool                              numpy bool
#     LayerSizes()                      tuple of int                      list of int
#     ValueList()                       sequence                          list, tuple or array of any values
#     Folder()                          path-like or None
#     Device()                          str
#     NameOr(("mlp",), "__call__", "a function")     {"mlp"} or a function
#     NameOrNumber(("none",), Number())              {"none"} or float


class Constraint(Protocol):
    """Which values a constructor parameter may have; as text, the end of a message that begins with "must be"."""

    def allows(self, value: Any) -> bool:
        """Whether the parameter may have this value."""
        ...


@dataclass(frozen=True)
class Number:
    """A finite number between two bounds.

    Booleans, NaN, infinities, complex numbers and numbers beyond 64-bit floats are refused.

    Parameters
    ----------
    whole : bool, default=False
        Allow integers only (1.0 is refused); otherwise any real number.
    least : float or None, default=None
        Inclusive lower bound.
    above : float or None, default=None
        Exclusive lower bound.
    most : float or None, default=None
        Inclusive upper bound.

    Examples
    --------
    >>> str(Number(whole=True, least=1))
    'a whole number at least 1'
    >>> Number(above=0, most=1).allows(0), Number(above=0, most=1).allows(0.5)
    (False, True)
    """

    whole: bool = False
    least: float | None = None
    above: float | None = None
    most: float | None = None

    def allows(self, value: Any) -> bool:
        """Whether the value is a finite number within the bounds."""
        kind = numbers.Integral if self.whole else numbers.Real
        if isinstance(value, bool | np.bool_) or not isinstance(value, kind):
            return False
        try:
            number = float(value)
        except OverflowError:  # an integer or a fraction beyond 64-bit floats
            return False
        return (
            math.isfinite(number)
            and (self.least is None or number >= self.least)
            and (self.above is None or number > self.above)
            and (self.most is None or number <= self.most)
        )

    @property
    def type_text(self) -> str:
        """``int`` or ``float``."""
        return "int" if self.whole else "float"

    def __str__(self) -> str:
        bounds = [("at least", self.least), ("above", self.above), ("at most", self.most)]
        text = " and ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)
        return f"a {'whole ' if self.whole else ''}number {text}".strip()


class FractionOrCount:
    """A fraction of something, or a count: a number above 0 and below 1, or an integer at least 1.

    As in scikit-learn's ``train_size``; 1 and 1.0 are both a count of one.
    """

    type_text = "int or float"

    def allows(self, value: Any) -> bool:
        """Whether the value is a fraction or a count."""
        return Number(above=0).allows(value) and (value < 1 or float(value).is_integer())

    def __str__(self) -> str:
        return "a share above 0 and below 1, or a whole number at least 1"


@dataclass(frozen=True)
class OneOf:
    """One of a few given values: strings, None, True or False.

    Parameters
    ----------
    values : tuple
        The values. Strings are compared by value, others by identity, so that 1 is not True.

    Examples
    --------
    >>> OneOf(("mean", None)).allows("mean"), OneOf(("mean", None)).allows("median")
    (True, False)
    >>> OneOf(("mean", None)).type_text
    '{"mean", None}'
    """

    values: tuple[Any, ...]

    def allows(self, value: Any) -> bool:
        """Whether the value is one of those given."""
        return any(value is v or (isinstance(value, str) and value == v) for v in self.values)

    @property
    def type_text(self) -> str:
        """The values in braces."""
        return braces(self.values)

    def __str__(self) -> str:
        return "one of " + ", ".join(map(repr, self.values))


@dataclass(frozen=True)
class Probabilities:
    """A named distribution over classes, or a positive number for each class.

    The numbers need not sum to 1. That there are as many as classes is checked in ``fit``, where classes are known.

    Parameters
    ----------
    names : tuple of str
        The names, such as ``"uniform"`` and ``"estimated"``.
    """

    names: tuple[str, ...]

    def allows(self, value: Any) -> bool:
        """Whether the value is one of the names, or a one-dimensional list of positive finite numbers."""
        if isinstance(value, str):
            return value in self.names
        try:
            array = np.asarray(value, float)
        except (TypeError, ValueError, OverflowError):
            return False
        return array.ndim == 1 and array.size > 0 and bool(np.all(array > 0) and np.all(np.isfinite(array)))

    @property
    def type_text(self) -> str:
        """The names in braces, or an array."""
        return f"{braces(self.names)} or array-like of shape (n_classes,)"

    def __str__(self) -> str:
        return "one of " + ", ".join(map(repr, self.names)) + " or a positive number for each class"


class RandomState:
    """A seed: None, a non-negative integer, a NumPy Generator or a SeedSequence.

    NumPy's old ``RandomState`` objects are refused.
    """

    type_text = "int, Generator or None"

    def allows(self, value: Any) -> bool:
        """Whether a generator can be made from the value."""
        is_seed = isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 0
        return value is None or is_seed or isinstance(value, np.random.Generator | np.random.SeedSequence)

    def __str__(self) -> str:
        return "None, a whole number at least 0, or a numpy Generator"


class Boolean:
    """True or False; 0 and 1 are refused."""

    type_text = "bool"

    def allows(self, value: Any) -> bool:
        """Whether the value is a boolean of Python or NumPy."""
        return isinstance(value, bool | np.bool_)

    def __str__(self) -> str:
        return "True or False"


class LayerSizes:
    """Sizes of layers: a tuple or list of integers at least 1, possibly empty.

    Attributes
    ----------
    most : int
        Maximum number of layers; thousands take minutes to build and cannot be trained.
    """

    type_text = "tuple of int"
    most = 100

    def allows(self, value: Any) -> bool:
        """Whether the value is a short list of positive integers."""
        few = isinstance(value, tuple | list) and len(value) <= self.most
        return few and all(Number(whole=True, least=1).allows(size) for size in value)

    def __str__(self) -> str:
        return f"a tuple of at most {self.most} whole numbers at least 1"


class ValueList:
    """A list, tuple or one-dimensional array of values; a text is none."""

    type_text = "sequence"

    def allows(self, value: Any) -> bool:
        """Whether the value is a list, tuple, range or array that is not empty."""
        is_list = isinstance(value, list | tuple | range) or (isinstance(value, np.ndarray) and value.ndim == 1)
        return is_list and len(value) > 0

    def __str__(self) -> str:
        return "a list of values"


class Folder:
    """None, or the path of a folder, which need not exist yet."""

    type_text = "path-like or None"

    def allows(self, value: Any) -> bool:
        """Whether the value is None, a string or a path."""
        return value is None or isinstance(value, str | os.PathLike)

    def __str__(self) -> str:
        return "None or the path of a folder"


class Device:
    """A torch device by name: "auto", "cpu", "cuda", "cuda:1", "mps", "xpu"; ``fit`` checks whether it exists."""

    type_text = "str"

    def allows(self, value: Any) -> bool:
        """Whether the value has the form of a device's name."""
        return isinstance(value, str) and re.fullmatch(r"auto|(cpu|cuda|mps|xpu)(:\d+)?", value) is not None

    def __str__(self) -> str:
        return "'auto', 'cpu', 'cuda', 'cuda:1' or another device of torch"


def braces(values: Iterable[Any]) -> str:
    """The values as numpydoc lists alternatives: ``{"a", None}``."""
    return "{" + ", ".join(f'"{value}"' if isinstance(value, str) else repr(value) for value in values) + "}"


# ----------------------------------------------------------------------------------------------------
# Constraints of parameters that may be one of several kinds of values: None, a name, a number or an object.


@dataclass(frozen=True)
class NoneOr:
    """None, or a value that another constraint allows.

    Parameters
    ----------
    other : Constraint
        The constraint of values other than None.
    """

    other: Constraint

    def allows(self, value: Any) -> bool:
        """Whether the value is None or allowed by the other constraint."""
        return value is None or self.other.allows(value)

    @property
    def type_text(self) -> str:
        """The type of the other constraint, or None."""
        return f"{getattr(self.other, 'type_text', self.other)} or None"

    def __str__(self) -> str:
        return f"None or {self.other}"


@dataclass(frozen=True)
class NameOr:
    """One of a few names, or an object with a given method.

    Parameters
    ----------
    names : tuple of str
        The names.
    method : str
        Method that an object must have; ``"__call__"`` for a function, in which case a class is allowed too.
    what : str
        What such an object is, for messages and docstrings, as in "an Aggregator".
    """

    names: tuple[str, ...]
    method: str
    what: str

    def allows(self, value: Any) -> bool:
        """Whether the value is one of the names or an object with the method."""
        if isinstance(value, str):
            return value in self.names
        may_be_class = self.method == "__call__"
        return callable(getattr(value, self.method, None)) and (may_be_class or not isinstance(value, type))

    @property
    def type_text(self) -> str:
        """The names in braces, or what the object is."""
        return f"{braces(self.names)} or {self.what}"

    def __str__(self) -> str:
        return f"one of {', '.join(map(repr, self.names))} or {self.what}"


@dataclass(frozen=True)
class NameOrNumber:
    """One of a few names, or a number.

    Parameters
    ----------
    names : tuple of str
        The names.
    number : Number
        The constraint of a number.
    """

    names: tuple[str, ...]
    number: Number

    def allows(self, value: Any) -> bool:
        """Whether the value is one of the names or an allowed number."""
        return value in self.names if isinstance(value, str) else self.number.allows(value)

    @property
    def type_text(self) -> str:
        """The names in braces, or the type of the number."""
        return f"{braces(self.names)} or {self.number.type_text}"

    def __str__(self) -> str:
        return f"one of {', '.join(map(repr, self.names))} or {self.number}"


# ----------------------------------------------------------------------------------------------------
# Checks of parameters, columns, codes and annotations; each raises an error of this package or returns.


# Methods that take weights of labels; their classes have `_takes_weights`.
TAKE_WEIGHTS = ("majority-vote", "one-coin", "dawid-skene", "pooled-dawid-skene")
_MAX_REPR = 1000  # characters of a value in a message: an array of any size must not fill a terminal
_MAX_SHOWN = 5  # unknown values in a message, one line of it
_MAX_COMPARED = 5000  # known values that an unknown one is compared with; more take seconds


def check_parameters(name: str, parameters: Mapping[str, Any], constraints: Mapping[str, Constraint]) -> None:
    """Check every constructor parameter of the class or function `name` against its constraint."""
    for parameter, constraint in constraints.items():
        value = parameters[parameter]
        if not constraint.allows(value):
            hint = did_you_mean(value, _names(constraint)) if isinstance(value, str) else ""
            raise ParameterError(
                f"The parameter `{parameter}` of {name} must be {constraint}. Got {_shown(value)}.{hint}"
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
    """Check that columns of annotations have the same length."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{n} {name}" for name, n in lengths.items())
        raise AlignmentError(f"Every annotation needs an item, a worker and a label, but there are {counts}.")


def check_codes(codes: npt.ArrayLike, size: int, role: str) -> npt.NDArray[np.int32]:
    """Integer codes as an array of int32, each of them in ``0 .. size - 1``; not copied where they are that already."""
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
    """Return `Annotations` with at least one label; a data frame is read."""
    annotations = as_annotations(annotations, takes_weights=takes_weights, who=who)
    if annotations.n_annotations == 0:
        raise AnnotationError("There is not a single label, so there is nothing to infer.")
    return annotations


def as_annotations(annotations: Any, *, takes_weights: bool = False, who: str = "This function") -> Any:
    """Return `Annotations`, which may be without labels; a data frame is read."""
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


def check_known(values: Collection[Any], allowed: Collection[Any], what: str, remedy: str) -> None:
    """Check that every value is a known one; `what` names the values in the plural, `remedy` is a sentence."""
    unknown = [value for value in values if value not in allowed]
    if unknown:
        more = f" and {len(unknown) - _MAX_SHOWN} more" if len(unknown) > _MAX_SHOWN else ""
        listed = ", ".join(map(repr, unknown[:_MAX_SHOWN]))
        raise AnnotationError(f"{what} not known: {listed}{more}.{_nearest(unknown[0], allowed)} {remedy}")


def _nearest(unknown: Any, allowed: Collection[Any]) -> str:
    """Return the known value that an unknown one probably stands for, as a question; "" for none or too many."""
    by_text = {str(value): value for value in allowed} if len(allowed) <= _MAX_COMPARED else {}
    nearest = by_text.get(closest_match(unknown, by_text) or "")
    if nearest is None:
        return ""
    differs = str(nearest) == str(unknown)  # 1 and "1": the same text, of another type
    types = f" ({type(nearest).__name__}, not {type(unknown).__name__})" if differs else ""
    return f" Did you mean {nearest!r}{types}?"


# ----------------------------------------------------------------------------------------------------
# Sizes in bytes as people write them: "4GB", "500 MB", "1.5GiB".

_UNITS = {"": 1, "B": 1}
_UNITS |= {f"{letter}{end}": 1000**n for n, letter in enumerate("KMGT", 1) for end in ("", "B")}
_UNITS |= {f"{letter}I{end}": 1024**n for n, letter in enumerate("KMGT", 1) for end in ("", "B")}
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([A-Za-z]*)\s*")
_LARGEST = 1 << 62  # bytes


def parse_size(given: str | int, what: str) -> int:
    """Return a size in bytes: KB to TB are powers of 1000, KiB to TiB of 1024; `what` is the parameter, for messages.

    Examples
    --------
    >>> parse_size("4GB", "`max_memory`"), parse_size("1.5 GiB", "`max_memory`")
    (4000000000, 1610612736)
    """
    match = _SIZE.fullmatch(str(given)) if isinstance(given, str | int) and not isinstance(given, bool) else None
    unit = None if match is None else _UNITS.get(match[2].upper())
    if match is None or unit is None:
        raise ParameterError(f"{what} is {given!r}; it must be a size such as 4GB, 500MB or 1.5GiB.")
    size = float(match[1]) * unit
    if not math.isfinite(size) or not 1 <= size < _LARGEST:
        raise ParameterError(f"{what} is {given!r}; it must be at least one byte and below {_LARGEST:.0e} bytes.")
    return int(size)


def show_size(n_bytes: float) -> str:
    """Return a size for people, in powers of 1000, so that it can be typed as an option.

    Examples
    --------
    >>> show_size(1_234_000_000), show_size(48_500_000), show_size(12)
    ('1.23 GB', '48.5 MB', '12 bytes')
    """
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= factor:
            return f"{n_bytes / factor:.3g} {unit}" if n_bytes < 999.5 * factor else f"{n_bytes / factor:.0f} {unit}"
    return f"{n_bytes:.0f} bytes"


__all__ = [
    "FractionOrCount",
    "Constraint",
    "Device",
    "Folder",
    "NoneOr",
    "NameOr",
    "NameOrNumber",
    "Number",
    "OneOf",
    "Probabilities",
    "RandomState",
    "ValueList",
    "LayerSizes",
    "Boolean",
    "as_annotations",
    "check_annotations",
    "check_codes",
    "check_known",
    "check_memory",
    "check_parameters",
    "check_same_length",
    "parse_size",
    "show_size",
]
