"""Everything that can refuse an input, and its sentences."""

from __future__ import annotations

import math
import numbers
import os
import re
from collections.abc import Collection, Mapping, Sized
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import AlignmentError, AnnotationError, LimitError, ParameterError

_LONGEST = 1000  # letters of a value in a sentence


class Constraint(Protocol):
    """What a constructor parameter may be; as text, the end of a sentence that begins with "must be"."""

    def allows(self, value: Any) -> bool: ...


@dataclass(frozen=True)
class Number:
    """A constraint: a finite whole or real number between two bounds (`above` is exclusive)."""

    whole: bool = False
    least: float | None = None
    above: float | None = None
    most: float | None = None

    def allows(self, value: Any) -> bool:
        kind = numbers.Integral if self.whole else numbers.Real
        if isinstance(value, bool | np.bool_) or not isinstance(value, kind):
            return False
        try:
            number = float(value)
        except OverflowError:  # a whole number or a fraction beyond all floats
            return False
        return (
            math.isfinite(number)
            and (self.least is None or number >= self.least)
            and (self.above is None or number > self.above)
            and (self.most is None or number <= self.most)
        )

    def __str__(self) -> str:
        bounds = [("at least", self.least), ("above", self.above), ("at most", self.most)]
        said = " and ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)
        return f"a {'whole ' if self.whole else ''}number {said}".strip()


class Amount:
    """A constraint: a share above 0 and below 1, or a whole number at least 1."""

    def allows(self, value: Any) -> bool:
        return Number(above=0).allows(value) and (value < 1 or float(value).is_integer())

    def __str__(self) -> str:
        return "a share above 0 and below 1, or a whole number at least 1"


@dataclass(frozen=True)
class OneOf:
    """A constraint: one of a few named values."""

    values: tuple[Any, ...]

    def allows(self, value: Any) -> bool:
        return any(value is v or (isinstance(value, str) and value == v) for v in self.values)

    def __str__(self) -> str:
        return "one of " + ", ".join(map(repr, self.values))


@dataclass(frozen=True)
class Probabilities:
    """A constraint: one of a few names, or a list of positive numbers, one for each class."""

    names: tuple[str, ...]

    def allows(self, value: Any) -> bool:
        if isinstance(value, str):
            return value in self.names
        try:
            array = np.asarray(value, float)
        except (TypeError, ValueError, OverflowError):
            return False
        return array.ndim == 1 and array.size > 0 and bool(np.all(array > 0) and np.all(np.isfinite(array)))

    def __str__(self) -> str:
        return "one of " + ", ".join(map(repr, self.names)) + " or a positive number for each class"


class RandomState:
    """A constraint: None, a non-negative integer, or a NumPy Generator."""

    def allows(self, value: Any) -> bool:
        is_seed = isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= 0
        return value is None or is_seed or isinstance(value, np.random.Generator | np.random.SeedSequence)

    def __str__(self) -> str:
        return "None, a whole number at least 0, or a numpy Generator"


@dataclass(frozen=True)
class Maybe:
    """A constraint: None, or what another constraint allows."""

    other: Constraint

    def allows(self, value: Any) -> bool:
        return value is None or self.other.allows(value)

    def __str__(self) -> str:
        return f"None or {self.other}"


class Switch:
    """A constraint: True or False."""

    def allows(self, value: Any) -> bool:
        return isinstance(value, bool | np.bool_)

    def __str__(self) -> str:
        return "True or False"


class Sizes:
    """A constraint: a tuple or list of whole numbers at least 1, such as the sizes of hidden layers; or none."""

    most = 100  # layers; thousands take minutes to make, and learn nothing

    def allows(self, value: Any) -> bool:
        few = isinstance(value, tuple | list) and len(value) <= self.most
        return few and all(Number(whole=True, least=1).allows(size) for size in value)

    def __str__(self) -> str:
        return f"a tuple of at most {self.most} whole numbers at least 1"


class Folder:
    """A constraint: None, or the path of a folder."""

    def allows(self, value: Any) -> bool:
        return value is None or isinstance(value, str | os.PathLike)

    def __str__(self) -> str:
        return "None or the path of a folder"


class Device:
    """A constraint: "auto", or a device by torch's names."""

    def allows(self, value: Any) -> bool:
        return isinstance(value, str) and re.fullmatch(r"auto|(cpu|cuda|mps|xpu)(:\d+)?", value) is not None

    def __str__(self) -> str:
        return "'auto', 'cpu', 'cuda', 'cuda:1' or another device of torch"


@dataclass(frozen=True)
class NameOr:
    """A constraint: one of a few names, or an object with this method (`__call__` for a function)."""

    names: tuple[str, ...]
    method: str
    what: str

    def allows(self, value: Any) -> bool:
        if isinstance(value, str):
            return value in self.names
        return callable(getattr(value, self.method, None)) and (
            self.method == "__call__" or not isinstance(value, type)
        )

    def __str__(self) -> str:
        return f"one of {', '.join(map(repr, self.names))} or {self.what}"


def check_parameters(name: str, parameters: Mapping[str, Any], constraints: Mapping[str, Constraint]) -> None:
    """Refuse the first constructor parameter that its constraint does not allow."""
    for parameter, constraint in constraints.items():
        value = parameters[parameter]
        if not constraint.allows(value):
            raise ParameterError(f"The parameter {parameter!r} of {name} must be {constraint}. Got {_shown(value)}.")


def _shown(value: Any) -> str:
    try:
        shown = repr(value)
        return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."
    except ValueError:  # Python does not print integers of thousands of digits
        return f"a very large {type(value).__name__}"


def check_same_length(columns: Mapping[str, Sized]) -> None:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{n} {name}" for name, n in lengths.items())
        raise AlignmentError(f"Every annotation needs an item, a worker and a label, but there are {said}.")


def check_codes(codes: npt.ArrayLike, size: int, role: str) -> npt.NDArray[np.int32]:
    """Codes as an int32 array with every entry in `0 .. size - 1`."""
    array = np.asarray(codes)
    if array.size == 0:
        return np.zeros(0, np.int32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise AnnotationError(f"{role} codes must be a one-dimensional integer array; got {array.dtype} {array.shape}.")
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= size:
        raise AnnotationError(f"{role} codes must lie in 0 to {size - 1}; they go from {low} to {high}.")
    return array.astype(np.int32, copy=False)


def check_annotations(annotations: Any) -> None:
    """Refuse what is not `Annotations`, and annotations without a single label."""
    if not hasattr(type(annotations), "by_item"):  # asking the object itself would build it
        raise AnnotationError(
            f"Labels must come as Annotations, not as {type(annotations).__name__}. "
            f"Build them with Annotations.from_triples or Annotations.from_matrix."
        )
    if annotations.n_annotations == 0:
        raise AnnotationError("There is not a single label, so there is nothing to infer.")


def check_memory(n_bytes: float, what: str, remedy: str) -> None:
    """Refuse a job that would need more memory than this process may have, before it is started."""
    there = _memory_of_process()
    if there is not None and n_bytes > there:
        raise LimitError(f"{what} need about {_gigabytes(n_bytes)}; there are {_gigabytes(there)}. {remedy}")


def _gigabytes(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:.0f} GB" if n_bytes >= 10e9 else f"{n_bytes / 1e9:.1f} GB"


def _memory_of_process() -> int | None:
    """The memory of the machine, or what a limit of the container or of the process leaves of it; None: unknown."""
    found = []
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # there is none, or the word max stands in it
            found.append(int(Path(path).read_text()))
    with suppress(ImportError, OSError, ValueError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most not in (resource.RLIM_INFINITY, -1):
            found.append(max(most - _addresses_used(), 0))
    return min(found, default=None)


def _addresses_used() -> int:
    """How much of a limit on addresses is used up; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def check_known(values: Collection[Any], known: Collection[Any], what: str, remedy: str) -> None:
    """Refuse values that are not among the known ones, naming up to five of them."""
    unknown = [value for value in values if value not in known]
    if unknown:
        shown = ", ".join(map(repr, unknown[:5])) + (f" and {len(unknown) - 5} more" if len(unknown) > 5 else "")
        raise AnnotationError(f"{what} not known: {shown}. {remedy}")
