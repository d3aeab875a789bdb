"""Positions of members of JSON objects in a file, so that they can be written again byte for byte.

Parsing a number and writing it again may change it, such as 1.10 or one with thirty digits. Quotes and brackets are
searched with NumPy, one piece of the file at a time; Python only visits those that matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

_PIECE = 1 << 20  # bytes searched at a time; the arrays of a piece take about twenty times as much
_QUOTE, _END = b'"}'
_KIND = np.zeros(256, np.int8)  # change of the depth by each byte, and 2 for a quote
_KIND[np.frombuffer(b"{[", np.uint8)] = 1
_KIND[np.frombuffer(b"}]", np.uint8)] = -1
_KIND[_QUOTE] = 2
_VALUE = re.compile(rb'\s*:\s*("[^"]*"|[^\s,{}\[\]"]+)?')


def raw_members(content: bytes, keys: Sequence[str]) -> Iterator[dict[str, bytes]]:
    """Yield the bytes of some members of each object.

    Parameters
    ----------
    content : bytes
        A list of objects, JSON lines, or a single object, which was parsed before: other content is not checked.
    keys : sequence of str
        Names of the members.

    Yields
    ------
    dict of str to bytes
        For each object, the members that it has.

    Examples
    --------
    >>> list(raw_members(b'[{"id": 1.10, "in": {"id": 2}}, {}]', ["id"]))
    [{'id': b'1.10'}, {}]
    """
    level = 2 if content.lstrip()[:1] == b"[" else 1
    plain = content.replace(rb"\\", b"..").replace(rb"\"", b"..") if b"\\" in content else content
    names = {f'"{key}"'.encode(): key for key in keys}
    members: dict[str, bytes] = {}
    key, begun = "", -1  # the member whose list or object is open, and its first byte
    for at, depth in _marks(plain, level, {name[1] for name in names}):
        mark = plain[at]
        if mark == _QUOTE:
            end = plain.index(b'"', at + 1) + 1
            value = _VALUE.match(plain, end) if plain[at:end] in names else None
            if value is not None:
                key, begun = names[plain[at:end]], -1 if value[1] else value.end()
                if value[1]:
                    members[key] = content[value.start(1) : value.end(1)]
        elif depth == level and mark in b"{[":
            members = {}
        elif depth == level:
            if begun >= 0:
                members[key], begun = content[begun : at + 1], -1
        elif mark == _END:
            yield members


def _marks(plain: bytes, level: int, initials: set[int]) -> Iterator[tuple[int, int]]:
    """Yield where objects of a level begin and end, where their values end, and where texts that may be keys begin.

    Each has the depth there: inside an opening bracket, and outside a closing one.
    """
    codes = np.frombuffer(plain, np.uint8)
    may_begin = np.isin(np.arange(256), list(initials))
    depth_before = n_quotes = 0
    for first in range(0, len(codes), _PIECE):
        kind = _KIND[codes[first : first + _PIECE]]
        at = np.flatnonzero(kind != 0)
        kind = kind[at]
        is_quote = kind == _KIND[_QUOTE]
        quotes = n_quotes + np.cumsum(is_quote)
        in_text = (quotes & 1).astype(bool)
        change = np.where(is_quote | in_text, 0, kind)
        depth = depth_before + np.cumsum(change, dtype=np.int64)
        if len(at):
            n_quotes, depth_before = int(quotes[-1]), int(depth[-1])
        at += first
        is_key = is_quote & in_text & (depth == level)
        is_key[is_key] = may_begin[codes[at[is_key] + 1]]
        is_edge = (change != 0) & (depth == level) | (change < 0) & (depth == level - 1)
        wanted = is_key | is_edge
        yield from zip(at[wanted].tolist(), depth[wanted].tolist())
