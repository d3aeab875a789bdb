"""Keys of a TOML table: constraints of their values, and one sentence about whatever is wrong with them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from manyhands.exceptions import ParameterError
from manyhands.validation import Constraint, Number

_MUST_BE_GIVEN: Any = object()
_LONGEST = 2000  # characters of a message that quotes a value


class Text:
    """A constraint: text on one line."""

    def allows(self, value: Any) -> bool:
        """Return whether a value satisfies the constraint."""
        return isinstance(value, str) and value.strip() != "" and "\n" not in value

    def __str__(self) -> str:
        return "text on one line"


class Keyed:
    """A constraint: keys with values, as in ``{ dropout = 0.5 }``."""

    def allows(self, value: Any) -> bool:
        """Return whether a value satisfies the constraint."""
        return isinstance(value, dict)

    def __str__(self) -> str:
        return "keys with values in braces, such as { dropout = 0.5 }"


@dataclass(frozen=True)
class ListOf:
    """A constraint: a list of values that another constraint allows.

    Attributes
    ----------
    other : Constraint
        The constraint of each value.
    least : int, default=0
        Smallest length.
    """

    other: Constraint
    least: int = 0

    def allows(self, value: Any) -> bool:
        """Return whether a value satisfies the constraint."""
        return isinstance(value, list) and len(value) >= self.least and all(map(self.other.allows, value))

    def __str__(self) -> str:
        return f"a list of {self.least or 'any number'} or more of {self.other}"


class Figure:
    """A constraint: a published value, alone or with its standard deviation."""

    def allows(self, value: Any) -> bool:
        """Return whether a value satisfies the constraint."""
        parts = value if isinstance(value, list) and len(value) == 2 else [value]
        return Number().allows(parts[0]) and all(map(Number(least=0).allows, parts[1:]))

    def __str__(self) -> str:
        return "a number, or a pair [value, standard deviation]"


class Swept:
    """A constraint: one parameter with the numbers that it takes."""

    def allows(self, value: Any) -> bool:
        """Return whether a value satisfies the constraint."""
        if not isinstance(value, dict) or len(value) != 1:
            return False
        (numbers,) = value.values()
        return ListOf(Number(), least=2).allows(numbers) and len(set(numbers)) == len(numbers)

    def __str__(self) -> str:
        return "one parameter with a list of different numbers, such as { rounds = [0, 1, 2] }"


class Keys:
    """Keys of one part of a table: take the known ones, then `finish` refuses those that are left.

    Parameters
    ----------
    given : mapping
        Keys and values of the part.
    table : str
        Name of the table, for messages.
    part : str, default=""
        Name of the part, for messages.
    """

    def __init__(self, given: Mapping[str, Any], table: str, part: str = "") -> None:
        self._left = dict(given)
        self._known: list[str] = []
        self.table = table
        self.part = part

    def take(self, key: str, constraint: Constraint, default: Any = _MUST_BE_GIVEN) -> Any:
        """Return the value of a key.

        Parameters
        ----------
        key : str
            The key.
        constraint : Constraint
            What the value must satisfy.
        default : object
            Value if the key is missing; without it, the key is required.

        Returns
        -------
        object
            The value.

        Raises
        ------
        ParameterError
            If a required key is missing, or the value is not allowed.
        """
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
        """Refuse the first key that was not taken."""
        for key in self._left:
            self.refuse(f"there is no key {key!r}{nearest(key, self._known)}")

    def check_known(self, name: object, known: Iterable[str], what: str) -> None:
        """Refuse a name that is unknown, with the most similar one.

        Parameters
        ----------
        name : object
            The name.
        known : iterable of str
            Known names.
        what : str
            What it is the name of.
        """
        known = list(known)
        if name not in known:
            self.refuse(f"there is no {what} {name!r}{nearest(name, known)}")

    def refuse(self, problem: str) -> NoReturn:
        """Raise an error that names the table, the part and the problem.

        Parameters
        ----------
        problem : str
            What is wrong, as the end of a sentence.

        Raises
        ------
        ParameterError
            Always.
        """
        where = f"{self.table}, {self.part}" if self.part else self.table
        problem = problem if len(problem) <= _LONGEST else f"{problem[:_LONGEST]}..."
        raise ParameterError(f"In the table {where}: {problem}.") from None


def nearest(name: object, known: Iterable[str]) -> str:
    """Return the most similar name, or all of them, as the end of a sentence.

    Parameters
    ----------
    name : object
        A name that is unknown.
    known : iterable of str
        Known names.

    Returns
    -------
    str
        The end of a sentence.

    Examples
    --------
    >>> nearest("acuracy", ["accuracy", "ece"])
    "; the nearest is 'accuracy'"
    """
    known = list(known)
    close = difflib.get_close_matches(str(name).lower(), known, n=1, cutoff=0.5)
    return f"; the nearest is {close[0]!r}" if close else f"; there are: {', '.join(known) or 'none'}"
