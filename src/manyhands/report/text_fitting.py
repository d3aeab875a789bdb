"""Text of pictures: its width, and what of it fits."""

from __future__ import annotations

import unicodedata

FONT = 12.5  # size in user units
_LETTER = 6.9  # mean width of a letter in user units


def text_width(text: str) -> float:
    """Return the approximate width of text; wide characters of East Asian scripts count twice.

    Parameters
    ----------
    text : str
        The text.

    Returns
    -------
    float
        Width in user units.
    """
    return _LETTER * sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def fit_text(text: str, width: float) -> str:
    """Return text that is cut where it is wider than there is room.

    Parameters
    ----------
    text : str
        The text.
    width : float
        Room in user units.

    Returns
    -------
    str
        The text, or its beginning and an ellipsis.
    """
    if text_width(text) <= width:
        return text
    kept = text
    while kept and text_width(kept + "…") > width:
        kept = kept[:-1]
    return kept + "…"


def fit_lines(text: str, width: float) -> list[str]:
    """Return text divided into lines that fit.

    Parameters
    ----------
    text : str
        The text.
    width : float
        Room in user units.

    Returns
    -------
    list of str
        Lines, broken between words; a word that is wider than the room has a line of its own.
    """
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
