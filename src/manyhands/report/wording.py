"""Numbers and names as the report shows them."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from manyhands.io.messages import counted as counted_noun

# ----------------------------------------------------------------------------------------------------
# Text of pictures: its width, and what of it fits.

FONT = 12.5  # size in user units
_LETTER = 6.9  # mean width of a letter in user units


def shortened(text: str, most: int) -> str:
    """Return text of a limited number of letters.

    Examples
    --------
    >>> shortened("picture-00123.jpg", 10)
    'pictur…jpg'
    """
    if len(text) <= most:
        return text
    tail = max(most - 1, 0) // 3
    return f"{text[: max(most - 1 - tail, 0)]}…{text[len(text) - tail :]}"


def text_width(text: str) -> float:
    """Return the approximate width of text; wide characters of East Asian scripts count twice."""
    return _LETTER * sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def fit_text(text: str, width: float) -> str:
    """Return text that is cut where it is wider than there is room."""
    if text_width(text) <= width:
        return text
    most = len(text) - 1
    while most > 0 and text_width(shortened(text, most)) > width:
        most -= 1
    return shortened(text, most)


def fit_lines(text: str, width: float) -> list[str]:
    """Return text divided into lines that fit."""
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


# ----------------------------------------------------------------------------------------------------
# Names and numbers in sentences and tables.

_DIRECTION = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029")
_ACCUSATIONS = {  # alert -> verb phrases for one worker and for several
    "random": ("looks random", "look random"),
    "one-class": ("gives one class only", "give one class only"),
    "inverted": ("seems to have the classes reversed", "seem to have the classes reversed"),
    "copying": ("gives copied labels", "give copied labels"),
    "weak": ("is clearly below the crowd", "are clearly below the crowd"),
}
_KEPT = frozenset("\u200c\u200d")  # joiners, which Persian, Hindi and emoji need


def visible(text: Any, most: int = 200) -> str:
    r"""Return text on one line, control characters and marks of direction as escapes, cut where it is long.

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
    """Return a number as text."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


def percent(share: float | None, digits: int = 0) -> str:
    """Return a share as a percentage, without claiming all or nothing where it is not.

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
    """Return a number with its noun, thousands separated."""
    plain = counted_noun(count, noun)
    return plain.replace(str(count), f"{count:,}", 1)


def quoted(name: str) -> str:
    """Return the name of a class or item inside a sentence.

    Examples
    --------
    >>> quoted("no dog")
    '“no dog”'
    """
    return f"“{name}”"


def share_that(verbs: tuple[str, str], count: int, n: int, noun: str) -> str:
    """Return the beginning of a sentence about a share, without claiming a per cent of none or all.

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
    """Return an interval as text."""
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

    Examples
    --------
    >>> joined(["a"]), joined(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def accusation(alert: str, n: int) -> str:
    """Return what an alert says of its workers, as a verb phrase.

    Examples
    --------
    >>> accusation("random", 1), accusation("random", 2)
    ('looks random', 'look random')
    """
    return _ACCUSATIONS[alert][n != 1]
