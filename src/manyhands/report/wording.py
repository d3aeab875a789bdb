"""Numbers and names as the report shows them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from manyhands.io.messages import counted as counted_noun
from manyhands.report.text_fitting import shortened

_DIRECTION = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029")
_ACCUSATIONS = {  # flag -> verb phrases for one worker and for several
    "random": ("looks random", "look random"),
    "one-class": ("gives one class only", "give one class only"),
    "inverted": ("seems to have the classes reversed", "seem to have the classes reversed"),
    "copying": ("gives copied labels", "give copied labels"),
    "weak": ("is clearly below the crowd", "are clearly below the crowd"),
}
_KEPT = frozenset("\u200c\u200d")  # joiners, which Persian, Hindi and emoji need


def visible(text: Any, most: int = 200) -> str:
    r"""Return text on one line, control characters and marks of direction as escapes, cut where it is long.

    Parameters
    ----------
    text : object
        Anything from the data.
    most : int, default=200
        Largest number of characters.

    Returns
    -------
    str
        Text that cannot change how the text around it is shown; not escaped for HTML.

    Examples
    --------
    >>> visible("a\x1b[31m\nb")
    'a\\x1b[31m b'
    """
    given = str(text)
    short = given if len(given) <= most else given[: most - 1] + "…"
    if short.isprintable():
        return short
    return "".join(_letter(letter) for letter in short)


def _letter(letter: str) -> str:
    if letter in "\n\r\t":
        return " "
    if letter in _DIRECTION or not (letter.isprintable() or letter in _KEPT):
        return f"\\u{ord(letter):04x}" if ord(letter) > 255 else f"\\x{ord(letter):02x}"
    return letter


def number(value: float | None, digits: int = 3) -> str:
    """Return a number as text.

    Parameters
    ----------
    value : float or None
        The number.
    digits : int, default=3
        Digits after the point of a number that is not whole.

    Returns
    -------
    str
        Thousands separated by commas; "" for None and NaN.
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


def percent(share: float | None, digits: int = 0) -> str:
    """Return a share as a percentage, without claiming all or nothing where it is not.

    Parameters
    ----------
    share : float or None
        From 0 to 1.
    digits : int, default=0
        Digits after the point.

    Returns
    -------
    str
        Such as ``93%``; ``"unknown"`` for None and NaN.

    Examples
    --------
    >>> percent(0.934), percent(0.9996), percent(1.0), percent(0.0004)
    ('93%', 'over 99%', '100%', 'under 1%')
    """
    if share is None or not math.isfinite(share):
        return "unknown"
    text = f"{share:.{digits}%}"
    if share < 1 and text == f"{1:.{digits}%}":
        return f"over {1 - 10.0 ** (-digits - 2):.{digits}%}"
    if share > 0 and text == f"{0:.{digits}%}":
        return f"under {10.0 ** (-digits - 2):.{digits}%}"
    return text


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, thousands separated.

    Parameters
    ----------
    count : int
        The number.
    noun : str
        What is counted, in the singular.

    Returns
    -------
    str
        Such as ``1,200 items``.
    """
    plain = counted_noun(count, noun)
    return plain.replace(str(count), f"{count:,}", 1)


def quoted(name: str) -> str:
    """Return the name of a class or item inside a sentence.

    Parameters
    ----------
    name : str
        The name, as it is shown.

    Returns
    -------
    str
        In quotation marks, so that its end is seen.

    Examples
    --------
    >>> quoted("no dog")
    '“no dog”'
    """
    return f"“{name}”"


def share_that(verbs: tuple[str, str], count: int, n: int, noun: str) -> str:
    """Return the beginning of a sentence about a share, without claiming a per cent of none or all.

    Parameters
    ----------
    verbs : tuple of (str, str)
        Verb for one and for several.
    count : int
        Number of those that the sentence is about.
    n : int
        Number of all.
    noun : str
        What is counted, in the singular.

    Returns
    -------
    str
        Such as ``20% of the labels have``, ``No label has`` or ``All labels have``.

    Examples
    --------
    >>> share_that(("has", "have"), 2, 10, "label"), share_that(("has", "have"), 0, 10, "label")
    ('20% of the labels have', 'No label has')
    """
    if not count:
        return f"No {noun} {verbs[0]}"
    several = counted_noun(2, noun).removeprefix("2 ")
    return f"All {several} {verbs[1]}" if count == n else f"{percent(count / n)} of the {several} {verbs[1]}"


def interval(low: float, high: float, digits: int = 2) -> str:
    """Return an interval as text.

    Parameters
    ----------
    low : float
        Lower end.
    high : float
        Upper end.
    digits : int, default=2
        Digits after the point.

    Returns
    -------
    str
        Such as ``0.71 to 0.83``; "" if an end is unknown.
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"{low:.{digits}f} to {high:.{digits}f}"


def names(values: Iterable[Any]) -> list[str]:
    """Return ids or classes as visible text.

    Parameters
    ----------
    values : iterable
        Ids or classes.

    Returns
    -------
    list of str
        One text each, of at most 80 characters; long ones keep their end, where numbered names differ.
    """
    return [visible(shortened(str(value), 80)) for value in values]


def joined(parts: Sequence[str]) -> str:
    """Return names as an enumeration.

    Parameters
    ----------
    parts : sequence of str
        The names.

    Returns
    -------
    str
        Such as ``a, b and c``.

    Examples
    --------
    >>> joined(["a"]), joined(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def accusation(flag: str, n: int) -> str:
    """Return what a flag says of its workers, as a verb phrase.

    Parameters
    ----------
    flag : str
        A flag of `manyhands.scorecards.ACCUSATIONS`.
    n : int
        Number of workers.

    Returns
    -------
    str

    Examples
    --------
    >>> accusation("random", 1), accusation("random", 2)
    ('looks random', 'look random')
    """
    return _ACCUSATIONS[flag][n != 1]
