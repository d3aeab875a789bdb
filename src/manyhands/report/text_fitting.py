"""Text of pictures: its width, and what of it fits."""

from __future__ import annotations

import unicodedata

FONT = 12.5  # size in user units
_LETTER = 6.9  # mean width of a letter in user units


def shortened(text: str, most: int) -> str:
    """Return text of a limited number of letters.

    Parameters
    ----------
    text : str
        The text.
    most : int
        Largest number of letters.

    Returns
    -------
    str
        The text, or its first two thirds, an ellipsis and its last third.

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
        The text, or its beginning, an ellipsis and its end, where numbered names differ.
    """
    if text_width(text) <= width:
        return text
    most = len(text) - 1
    while most > 0 and text_width(shortened(text, most)) > width:
        most -= 1
    return shortened(text, most)


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
