"""JSON and JSON lines, within limits: orjson refuses NaN, infinities and more than 1024 nested levels.

Numbers that 64 bits cannot represent are read as text, so that ids are not changed (`exact_json`).
"""

from __future__ import annotations

import gc
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import orjson

from manyhands.exceptions import AnnotationError, LimitError
from manyhands.io.messages import listed
from manyhands.io.read import exact_json
from manyhands.io.read.archives import MAX_BYTES
from manyhands.io.read.sources import Source
from manyhands.io.read.text import utf8_error

MAX_LINE = 10 << 20  # bytes of one object in JSON lines
_LINES_SUFFIXES = (".jsonl", ".ndjson", ".manifest")
_CHECK_KEYS = 4 << 20  # bytes; larger files are not searched for repeated keys, which takes longer than parsing them


def looks_like_json(source: Source) -> bool:
    """Whether a file is JSON, by its suffix or its first character.

    Parameters
    ----------
    source : Source
        The file.

    Returns
    -------
    bool
        True if it should be parsed as JSON.
    """
    return source.suffix in (".json", *_LINES_SUFFIXES) or source.head.lstrip()[:1] in (b"[", b"{")


def parse_json(source: Source) -> tuple[Any, dict[str, str]]:
    """Parse a JSON file, or a file of JSON lines.

    Parameters
    ----------
    source : Source
        The file, in UTF-8.

    Returns
    -------
    value : object
        The value; of JSON lines the list of their values.
    notes : dict of str to str
        Warnings: code -> sentence.

    Raises
    ------
    AnnotationError
        If it is not valid JSON; the message names the line.
    LimitError
        If the file or one of its lines is too large.
    """
    if source.size > MAX_BYTES:
        raise LimitError(f"{source.name} has {source.size:,} bytes; at most {MAX_BYTES:,} of JSON are read at once.")
    content = source.read()
    with _garbage_collection_paused():
        if source.suffix not in _LINES_SUFFIXES:
            try:
                return exact_json.loads(content), _notes([content])
            except orjson.JSONDecodeError as error:
                if not _first_line_is_whole(content):
                    raise AnnotationError(_explain(source, error)) from None
        return list(_parse_lines(source, content)), _notes(content.split(b"\n"))


def as_text(value: Any) -> str | None:
    """Return a JSON value as the text of a cell.

    Parameters
    ----------
    value : object
        A JSON value.

    Returns
    -------
    str or None
        ``"1"`` for 1, ``"true"`` for true, JSON for lists and objects; None for null.

    Raises
    ------
    AnnotationError
        If the value cannot be written as JSON.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float.__repr__(value)  # the repr of NumPy's floats contains their type
    try:
        if isinstance(value, int):
            return int.__repr__(value)
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError) as error:
        if isinstance(value, int):
            raise AnnotationError("A whole number has more digits than Python writes. Give it as text.") from None
        if "64-bit" in str(error):  # Python's own writer has no such limit
            with suppress(TypeError, ValueError, RecursionError):
                return json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":"))
        raise AnnotationError(f"A list or object within the data cannot be written as JSON: {error}.") from None


def _notes(documents: list[bytes]) -> dict[str, str]:
    """Return a note on the keys that occur twice in one object, of which the last value counts."""
    twice: set[str] = set()

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice.update(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        return found

    if sum(map(len, documents)) <= _CHECK_KEYS:
        for document in filter(bytes.strip, documents):
            with suppress(RecursionError):  # Python's own reader gives up a little earlier than orjson
                json.loads(document, object_pairs_hook=look, parse_int=str, parse_float=str)
    message = f"Some objects have a key twice ({listed(sorted(twice))}); the last value of each was taken."
    return {"repeated_keys": message} if twice else {}


def _parse_lines(source: Source, content: bytes) -> Iterator[Any]:
    """Yield the value of each line."""
    # Searching for long numbers is faster in all lines together than in each of them.
    read = exact_json.loads if exact_json.find_inexact(content) else orjson.loads
    for number, line in enumerate(content.split(b"\n"), start=1):
        if len(line) > MAX_LINE:
            raise LimitError(f"{source.name}, line {number}: {len(line):,} bytes; at most {MAX_LINE:,} are read.")
        if not line.strip():
            continue
        try:
            yield read(line)
        except orjson.JSONDecodeError as error:
            raise AnnotationError(_explain(source, error, number)) from None


def _first_line_is_whole(content: bytes) -> bool:
    """Whether the first line is a JSON object by itself: JSON lines with another suffix."""
    first, _, rest = content.lstrip().partition(b"\n")
    try:
        return isinstance(exact_json.loads(first), dict) and bool(rest.strip())
    except orjson.JSONDecodeError:
        return False


def _explain(source: Source, error: orjson.JSONDecodeError, line: int | None = None) -> str:
    """Return the error message for JSON that cannot be parsed."""
    where = f"{source.name}, line {error.lineno if line is None else line}"
    if any(sign in error.msg for sign in ("depth", "recursion", "memory")):
        return f"{source.name} is nested more than 1024 levels deep, as no export is: not read."
    if "UTF-8" in error.msg or "surrogate" in error.msg.lower():
        return utf8_error(source) or f"{where}: an unpaired surrogate, which is not text. Export the file again."
    token = re.match(r"-?(NaN|Infinity)", error.doc[error.pos : error.pos + 9])
    if token:
        return f"{where}: {token[0]} is not JSON. Write null where there is no number."
    return f"{where}, column {error.colno}: not JSON ({error.msg}). Was the export cut off? Export it again."


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """Pause the garbage collector: millions of new objects, none of them garbage, would double the time.

    Afterwards they are moved to the oldest generation, which is searched rarely; otherwise the next search would visit
    all of them.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():  # no objects that other code has frozen would be unfrozen
                gc.freeze()
                gc.unfreeze()
            gc.enable()
