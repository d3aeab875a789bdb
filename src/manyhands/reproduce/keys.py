"""The keys of a table in TOML, taken one by one, and one sentence for whatever is wrong with them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from manyhands.exceptions import ParameterError
from manyhands.validation import Constraint, Number

_MUST_BE_GIVEN: Any = object()
_LONGEST = 2000  # letters of a sentence that shows a value


class Text:
    """A constraint: text on one line."""

    def allows(self, value: Any) -> bool:
        return isinstance(value, str) and value.strip() != "" and "\n" not in value

    def __str__(self) -> str:
        return "text on one line"


class Keyed:
    """A constraint: names with values, as in { dropout = 0.5 }."""

    def allows(self, value: Any) -> bool:
        return isinstance(value, dict)

    def __str__(self) -> str:
        return "keys with values in braces, such as { dropout = 0.5 }"


@dataclass(frozen=True)
class ListOf:
    """A constraint: a list of at least so many of what another constraint allows."""

    other: Constraint
    least: int = 0

    def allows(self, value: Any) -> bool:
        return isinstance(value, list) and len(value) >= self.least and all(map(self.other.allows, value))

    def __str__(self) -> str:
        return f"a list of {self.least or 'any number'} or more of {self.other}"


class Figure:
    """A constraint: a published value, alone or with its standard deviation."""

    def allows(self, value: Any) -> bool:
        parts = value if isinstance(value, list) and len(value) == 2 else [value]
        return Number().allows(parts[0]) and all(map(Number(least=0).allows, parts[1:]))

    def __str__(self) -> str:
        return "a number, or a pair [value, standard deviation]"


class Swept:
    """A constraint: one parameter and the numbers that it takes."""

    def allows(self, value: Any) -> bool:
        if not isinstance(value, dict) or len(value) != 1:
            return False
        (numbers,) = value.values()
        return ListOf(Number(), least=2).allows(numbers) and len(set(numbers)) == len(numbers)

    def __str__(self) -> str:
        return "one parameter with a list of different numbers, such as { rounds = [0, 1, 2] }"


class Keys:
    """Keys of one part of a table. Take those that are known, then `finish`: what is left over is refused."""

    def __init__(self, given: Mapping[str, Any], table: str, part: str = "") -> None:
        self._left = dict(given)
        self._known: list[str] = []
        self.table = table
        self.part = part

    def take(self, key: str, constraint: Constraint, default: Any = _MUST_BE_GIVEN) -> Any:
        """The value of a key, refused unless the constraint allows it; the default where there is none."""
        self._known.append(key)
        if key not in self._left:
            if default is _MUST_BE_GIVEN:
                self.refuse(f"{key} is missing; it must be {constraint}")
            return default
        value = self._left.pop(key)
        if not constraint.allows(value):
            self.refuse(f"{key} must be {constraint}, not {value!r}")
        return value

    def finish(self) -> None:
        """Refuse the first key that nobody took."""
        for key in self._left:
            self.refuse(f"there is no key {key!r}{nearest(key, self._known)}")

    def check_known(self, name: object, known: Iterable[str], what: str) -> None:
        """Refuse a name that is not among the known ones, and say which is most like it."""
        known = list(known)
        if name not in known:
            self.refuse(f"there is no {what} {name!r}{nearest(name, known)}")

    def refuse(self, said: str) -> NoReturn:
        """One sentence: which table, which part of it, what is wrong."""
        where = f"{self.table}, {self.part}" if self.part else self.table
        said = said if len(said) <= _LONGEST else f"{said[:_LONGEST]}..."
        raise ParameterError(f"In the table {where}: {said}.") from None


def nearest(name: object, known: Iterable[str]) -> str:
    """The name most like this one, or all of them, as the end of a sentence."""
    known = list(known)
    close = difflib.get_close_matches(str(name).lower(), known, n=1, cutoff=0.5)
    return f"; the nearest is {close[0]!r}" if close else f"; there are: {', '.join(known) or 'none'}"
