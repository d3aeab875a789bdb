"""Check of the Arrow schema that Parquet writers add to a footer, before polars follows it.

The schema is a FlatBuffer: tables that refer to tables. Tables may be shared, so that thirty of them, each of which
refers twice to the next one, form a tree of a billion nodes; they may also be nested deeper than the stack. Both would
end the process.
"""

from __future__ import annotations

import binascii
import struct
from base64 import b64decode
from collections.abc import Iterator

from manyhands.io.read.thrift import ThriftError, ThriftLimitError

_MAX_DEPTH = 40  # fields within fields
_MAX_FIELDS = 100_000
_MAX_LETTERS = 32 << 20  # characters of all names and metadata together
_BROKEN = (struct.error, IndexError, binascii.Error, ValueError)

# Position of each entry in its table.
_HEADER, _FIELDS, _SCHEMA_NOTES = 2, 1, 2  # of the message, of the schema
_NAME, _CHILDREN, _NOTES = 0, 5, 6  # of a field
_KEY, _VALUE = 0, 1  # of a pair of metadata


def check_arrow_schema(encoded: bytes) -> None:
    """Refuse a schema that is not a tree of fields of reasonable size.

    Parameters
    ----------
    encoded : bytes
        The schema in base 64.

    Raises
    ------
    ThriftError
        If it is damaged.
    ThriftLimitError
        If it is too large or too deep.
    """
    try:
        content = b64decode(encoded, validate=True)
        begin = 8 if content[:4] == b"\xff" * 4 else 4
        _check(_Tables(content[begin:]))
    except ThriftError:
        raise
    except _BROKEN:
        raise ThriftError("its Arrow schema is damaged") from None


def _check(tables: _Tables) -> None:
    """Visit all fields of the schema, within limits."""
    schema = tables.follow(tables.follow_at(0), _HEADER)
    if schema is None:
        raise ThriftError("its Arrow schema is damaged")
    left = [(field, 1) for field in tables.entries(schema, _FIELDS)]
    n_letters = tables.letters(schema, _SCHEMA_NOTES)
    n_fields = 0
    while left:
        field, depth = left.pop()
        n_fields += 1
        n_letters += tables.length(field, _NAME) + tables.letters(field, _NOTES)
        if depth > _MAX_DEPTH or n_fields + len(left) > _MAX_FIELDS or n_letters > _MAX_LETTERS:
            raise ThriftLimitError("its Arrow schema is too large or too deep")
        left += [(child, depth + 1) for child in tables.entries(field, _CHILDREN)]


class _Tables:
    """Tables of a FlatBuffer, identified by their position; `struct` refuses positions outside of it."""

    def __init__(self, content: bytes) -> None:
        """Keep the bytes of the FlatBuffer."""
        self.content = content

    def _number(self, form: str, at: int) -> int:
        """Read an integer in a given format."""
        if at < 0:
            raise IndexError
        return int(struct.unpack_from(form, self.content, at)[0])

    def follow_at(self, at: int) -> int:
        """Follow the reference at a position; references go forward, so there are no cycles."""
        return at + self._number("<I", at)

    def follow(self, table: int, entry: int) -> int | None:
        """Follow an entry of a table; None if the table has no such entry."""
        known = table - self._number("<i", table)
        place = 4 + 2 * entry
        if place + 2 > self._number("<H", known):
            return None
        offset = self._number("<H", known + place)
        return self.follow_at(table + offset) if offset else None

    def length(self, table: int, entry: int) -> int:
        """Return the length of a text or a list, each entry of which takes at least a byte."""
        at = self.follow(table, entry)
        found = 0 if at is None else self._number("<I", at)
        if found > len(self.content):
            raise IndexError
        return found

    def entries(self, table: int, entry: int) -> Iterator[int]:
        """Yield the tables that a list refers to."""
        at = self.follow(table, entry)
        count = self.length(table, entry)
        if count > _MAX_FIELDS:
            raise ThriftLimitError("its Arrow schema is too large or too deep")
        return iter(()) if at is None else (self.follow_at(at + 4 + 4 * place) for place in range(count))

    def letters(self, table: int, entry: int) -> int:
        """Return the number of characters of a list of metadata, and some for each entry."""
        return sum(16 + self.length(note, _KEY) + self.length(note, _VALUE) for note in self.entries(table, entry))
