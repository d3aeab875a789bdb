"""JSON whose numbers keep their identity: numbers that 64 bits cannot represent are read as text, digit by digit.

orjson reads an integer beyond 64 bits as the nearest float, so that different ids become equal, and refuses a number
beyond the range of floats. Such numbers are searched with NumPy, one piece of the document at a time. Only if there
are some is the document copied with quotes around them, and the copy is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from math import isinf
from typing import Any

import numpy as np
import orjson

_PIECE = 1 << 20  # bytes searched at a time; about ten arrays of this size are allocated
_SMALL = 1 << 12  # bytes; below that a regular expression is faster than arrays
_REACH = 24  # bytes beyond a piece that are searched with it
_RUN = 16  # digits; every number with fewer digits has a float of its own
_MAY_BE_LONG = re.compile(rb"[0-9.]{16}|[0-9][eE][+-]?[0-9]{3}")
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_BEFORE, _AFTER = b" \t\r\n:,[", b" \t\r\n,]}"
_QUOTE, _POINT, _MINUS = b'".-'

Spans = list[tuple[int, int]]


def loads(content: bytes | str) -> Any:
    """Parse a JSON document.

    Parameters
    ----------
    content : bytes or str
        The document.

    Returns
    -------
    object
        Its value. Integers beyond 64 bits, and numbers with a point or exponent that differ from the nearest float, are
        returned as the text in the document.

    Raises
    ------
    orjson.JSONDecodeError
        As `orjson.loads` does.

    Examples
    --------
    >>> loads(b"[12345678901234567890123, 0.1, 1e400]")
    ['12345678901234567890123', 0.1, '1e400']
    """
    if isinstance(content, str):
        if content.isascii() and not _MAY_BE_LONG.search(content.encode()):
            return orjson.loads(content)
        content = content.encode("utf-8", "surrogatepass")  # orjson refuses surrogates like other invalid bytes
    spans = find_inexact(content)
    if not spans:
        return orjson.loads(content)
    orjson.loads(rewritten(content, spans, quoted=False))  # checks that a number is allowed in each of these places
    return orjson.loads(rewritten(content, spans))


def find_inexact(content: bytes) -> Spans:
    """Find the numbers that orjson would not read exactly.

    Parameters
    ----------
    content : bytes
        A JSON document.

    Returns
    -------
    list of (int, int)
        Begin and end of each such number, in order; digits within strings are not numbers.
    """
    if len(content) <= _SMALL and not _MAY_BE_LONG.search(content):
        return []
    found = [span for at in _candidates(content) if (span := _number_at(content, at)) is not None]
    return _outside_texts(content, found) if found else []


def rewritten(content: bytes, spans: Spans, *, quoted: bool = True) -> bytes:
    """Return the document with quotes around some numbers, or with zeros of the same length in their places.

    Parameters
    ----------
    content : bytes
        A JSON document.
    spans : list of (int, int)
        Begin and end of the numbers, in order.
    quoted : bool, default=True
        Put quotes around the numbers; otherwise replace them by zeros.

    Returns
    -------
    bytes
        The changed document.
    """
    parts, end = [], 0
    for begin, after in spans:
        number = b'"%b"' % content[begin:after] if quoted else b"0.".ljust(after - begin, b"0")
        parts += [content[end:begin], number]
        end = after
    return b"".join([*parts, content[end:]])


def _candidates(content: bytes) -> Iterator[int]:
    """Yield where long runs of digits, and digits before a large exponent, begin; some of them are in strings."""
    codes = np.frombuffer(content, np.uint8)
    for first in range(0, len(codes), _PIECE):
        begin = max(first - 1, 0)  # a run begins where the byte before is none of its kind
        piece = codes[begin : first + _PIECE + _REACH]
        in_run = piece - np.uint8(_POINT) < 12  # digits, the point, and the slash, which no number has
        starts = _long_runs(in_run)
        after_digit = np.flatnonzero(in_run[:-1] & (piece[1:] | 32 == ord("e"))) + 1
        places = [begin + at for at in starts.tolist()]
        places += [_begin_of_digits(content, begin + at) for at in after_digit.tolist()]
        yield from sorted({at for at in places if first <= at < first + _PIECE})


def _long_runs(in_run: Any) -> Any:
    """Return where runs of at least `_RUN` true values begin."""
    together = in_run
    for step in (1, 2, 4, 8):
        together = together[:-step] & together[step:]
    if not together.any():
        return np.zeros(0, np.intp)
    together[1:] &= ~in_run[: len(together) - 1]
    return np.flatnonzero(together)


def _begin_of_digits(content: bytes, at: int) -> int:
    """Return where the digits before an exponent begin; -1 if the exponent is small, or the run is a long one."""
    window = content[max(at - _RUN, 0) : at]
    digits = re.search(rb"[0-9.]+$", window)
    if digits is None or not re.match(rb"[eE][+-]?[0-9]{3}", content[at : at + 5]):
        return -1
    return at - len(digits[0]) if len(digits[0]) < _RUN else -1


def _number_at(content: bytes, at: int) -> tuple[int, int] | None:
    """Return the span of the number whose first digit is at `at`, unless a float represents it exactly."""
    begin = at - 1 if at and content[at - 1] == _MINUS else at
    found = _NUMBER.match(content, begin)
    if found is None or (begin and content[begin - 1] not in _BEFORE):
        return None
    end = found.end()
    ends = end == len(content) or content[end] in _AFTER
    return (begin, end) if ends and not _is_exact(found[0]) else None


def _is_exact(number: bytes) -> bool:
    """Whether orjson reads this number exactly."""
    text = number.decode()
    if text.lstrip("-").isdigit():
        return len(text) <= 20 and -(2**63) <= int(text) < 2**64
    value = float(text)
    if isinf(value):
        return False
    if value == 0:
        return not re.search("[1-9]", re.split("[eE]", text)[0])
    return repr(value) == text or Decimal(repr(value)) == Decimal(text)


def _outside_texts(content: bytes, found: Sequence[tuple[int, int]]) -> Spans:
    """Return the spans that are not within a string: an even number of quotes comes before them."""
    plain = content.replace(rb"\\", b"..").replace(rb"\"", b"..") if b"\\" in content else content
    codes, begins = np.frombuffer(plain, np.uint8), np.array([begin for begin, _ in found])
    n_quotes = np.zeros(len(found), np.int64)
    before = 0
    for first in range(0, len(codes), _PIECE):
        quotes = first + np.flatnonzero(codes[first : first + _PIECE] == _QUOTE)
        low, high = np.searchsorted(begins, (first, first + _PIECE))
        n_quotes[low:high] = before + np.searchsorted(quotes, begins[low:high])
        before += len(quotes)
    return [span for span, count in zip(found, n_quotes.tolist()) if count % 2 == 0]
