"""Lists written as text in a cell: as JSON, or in Python's syntax, which pandas writes into CSV files."""

from __future__ import annotations

import re
from ast import literal_eval
from typing import Any

import orjson

from manyhands.io.read import exact_json

_TEXT = r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\""""
_ENTRY = re.compile(rf"\s*(?:({_TEXT})|(-?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)|(None|True|False))\s*(,|\]\s*\Z)")
_WORDS = {"None": None, "True": True, "False": False}


def written_as_list(value: Any) -> bool:
    """Whether a text is a list of quoted texts, numbers, or lists of these; an empty list does not count.

    Parameters
    ----------
    value : object
        A cell.

    Returns
    -------
    bool
        True if it is such a list.

    Examples
    --------
    >>> written_as_list('["a", 1]'), written_as_list("['a']"), written_as_list("[bot]"), written_as_list("[null]")
    (True, True, False, False)
    """
    if not isinstance(value, str) or not value.strip().startswith("["):
        return False
    try:
        entries = parse_list(value)
    except ValueError:
        return False
    values = [entry for entry in entries if entry is not None and not isinstance(entry, bool)]
    return bool(values) and not any(isinstance(entry, dict) for entry in values)


def parse_list(text: str) -> list[Any]:
    """Parse a list in JSON or in Python's syntax.

    Parameters
    ----------
    text : str
        A cell.

    Returns
    -------
    list
        The entries.

    Raises
    ------
    ValueError
        If it is not a list.

    Examples
    --------
    >>> parse_list("['a', None, 12345678901234567890123]")
    ['a', None, '12345678901234567890123']
    """
    try:
        found = exact_json.loads(text)
    except orjson.JSONDecodeError:
        return _parse_python(text)
    if not isinstance(found, list):
        raise ValueError("not a list")
    return found


def _parse_python(text: str) -> list[Any]:
    """Parse a flat list entry by entry, so that no text is nested deep enough to exhaust Python's parser."""
    begin = text.index("[") + 1
    if text[:begin].strip() != "[":
        raise ValueError("not a list")
    entries: list[Any] = []
    while True:
        found = _ENTRY.match(text, begin)
        if found is None:
            if entries and re.compile(r"\s*\]\s*\Z").match(text, begin):  # a comma may precede the end
                return entries
            raise ValueError("not a list")
        entries.append(_entry(*found.groups()[:3]))
        begin = found.end()
        if found[4] != ",":
            return entries


def _entry(quoted: str | None, number: str | None, word: str | None) -> Any:
    """Return the value of one entry."""
    if quoted is not None:
        try:
            text: str = literal_eval(quoted)
        except SyntaxError:
            raise ValueError("not a text") from None
        text.encode()  # raises a ValueError for an unpaired surrogate
        return text
    if number is not None:
        try:
            return exact_json.loads(number)
        except orjson.JSONDecodeError:
            return number  # such as 1. or 007, which JSON does not have
    return _WORDS[str(word)]
