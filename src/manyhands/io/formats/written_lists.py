"""Lists that are written in a cell: as JSON, or as Python writes them, which pandas puts into CSV files."""

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
    """Whether a text is a list with entries in quotes, or numbers, or lists of such; an empty one says nothing.

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
    """The entries of a list in JSON or in Python's syntax; a ValueError where it is none.

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
    """Without lists in it. Each entry is taken by itself, so that no text is deep enough to harm Python's parser."""
    begin = text.index("[") + 1
    if text[:begin].strip() != "[":
        raise ValueError("not a list")
    entries: list[Any] = []
    while True:
        found = _ENTRY.match(text, begin)
        if found is None:
            if entries and re.compile(r"\s*\]\s*\Z").match(text, begin):  # a comma may stand before the end
                return entries
            raise ValueError("not a list")
        entries.append(_entry(*found.groups()[:3]))
        begin = found.end()
        if found[4] != ",":
            return entries


def _entry(quoted: str | None, number: str | None, word: str | None) -> Any:
    if quoted is not None:
        try:
            text: str = literal_eval(quoted)
        except SyntaxError:
            raise ValueError("not a text") from None
        text.encode()  # half a surrogate pair is a ValueError, too
        return text
    if number is not None:
        try:
            return exact_json.loads(number)
        except orjson.JSONDecodeError:
            return number  # such as 1. or 007, which JSON does not have
    return _WORDS[str(word)]
