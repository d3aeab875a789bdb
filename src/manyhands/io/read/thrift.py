"""Reader of Thrift's compact protocol, as Parquet footers use it, within limits.

It only serves to check a file before polars reads it. No stated length is relied upon: a list or a text must lie
within the available bytes, and no memory is allocated in proportion to a number before what it counts was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(14)
MAX_ENTRIES = 100_000  # of one list; no footer has more columns, row groups or anything else
_MAX_DEPTH = 24  # of nested structures and lists; Parquet has eight
_FIXED = {BYTE: 1, DOUBLE: 8, UUID: 16}


class ThriftError(ValueError):
    """The bytes are not a valid structure."""


class ThriftLimitError(ThriftError):
    """The bytes state sizes or depths beyond what any file needs."""


@dataclass(frozen=True)
class Shape:
    """The part of a structure that is read.

    Attributes
    ----------
    types : mapping of int to int
        Number of a field -> its type; all other fields are skipped.
    needed : tuple of int
        Numbers of the fields that must be there.
    inside : mapping of int to Shape
        Shapes of the fields that are structures, or lists of structures.
    """

    types: Mapping[int, int]
    needed: tuple[int, ...] = ()
    inside: Mapping[int, Shape] = field(default_factory=dict)


class Reader:
    """Reads structures from bytes.

    Parameters
    ----------
    content : bytes
        The file.
    at : int
        Position to start from.
    end : int
        Position to stop at.

    Attributes
    ----------
    at : int
        Current position.
    """

    def __init__(self, content: bytes, at: int, end: int) -> None:
        """Start at a position."""
        self.content, self.at, self.end = content, at, end

    def struct(self, shape: Shape, depth: int = 0) -> dict[int, Any]:
        """Read a structure.

        Parameters
        ----------
        shape : Shape
            The fields to return.
        depth : int, default=0
            Number of structures around this one.

        Returns
        -------
        dict of int to object
            Number of a field -> its value.

        Raises
        ------
        ThriftError
            If the bytes are not such a structure.
        ThriftLimitError
            If it is nested too deep, or a list is too long.
        """
        found: dict[int, Any] = {}
        number = 0
        while True:
            number, kind = self._field(number)
            if kind == STOP:
                break
            wanted = shape.types.get(number)
            if wanted is None:
                self._skip(kind, depth + 1)
            elif number in found or wanted != kind:
                raise ThriftError(f"field {number} is there twice, or of another type")
            else:
                found[number] = self._value(kind, shape.inside.get(number), depth + 1)
        if not all(number in found for number in shape.needed):
            raise ThriftError("a structure lacks a field")
        return found

    def _field(self, before: int) -> tuple[int, int]:
        """Return the number and type of the next field."""
        head = self._byte()
        kind = head & 15
        if head == STOP:
            return 0, STOP
        number = before + (head >> 4) if head >> 4 else self.whole()
        if kind == STOP or kind > UUID or not 0 < number < 2**15:
            raise ThriftError("a field has no type or number")
        return number, kind

    def _value(self, kind: int, shape: Shape | None, depth: int) -> Any:
        """Return the value of a field that is wanted."""
        if kind in (I16, I32, I64):
            return self.whole()
        if kind == BINARY:
            return self._bytes(self._varint())
        if kind == STRUCT and shape is not None:
            return self.struct(shape, depth)
        if kind == LIST and shape is not None:
            count, entry = self._list_head(depth)
            if count and entry != STRUCT:
                raise ThriftError("a list has entries of another type")
            return [self.struct(shape, depth + 1) for _ in range(count)]
        self._skip(kind, depth)
        return None

    def _skip(self, kind: int, depth: int) -> None:
        """Skip a value, checking each length in it."""
        if depth > _MAX_DEPTH:
            raise ThriftLimitError("it is nested too deep")
        if kind in (I16, I32, I64):
            self._varint()
        elif kind in _FIXED:
            self._bytes(_FIXED[kind])
        elif kind == BINARY:
            self._bytes(self._varint())
        elif kind in (LIST, SET):
            count, entry = self._list_head(depth)
            for _ in range(count):
                self._skip_entry(entry, depth + 1)
        elif kind == MAP:
            self._skip_map(depth)
        elif kind == STRUCT:
            number = 0
            while (number_kind := self._field(number))[1] != STOP:
                number = number_kind[0]
                self._skip(number_kind[1], depth + 1)

    def _skip_entry(self, kind: int, depth: int) -> None:
        """Skip an entry of a list; there, unlike in a field, a Boolean takes a byte."""
        if kind in (TRUE, FALSE):
            self._byte()
        else:
            self._skip(kind, depth)

    def _skip_map(self, depth: int) -> None:
        """Skip a map."""
        count = self._count(self._varint(), 2)
        kinds = self._byte() if count else 0
        for _ in range(count):
            self._skip_entry(kinds >> 4, depth + 1)
            self._skip_entry(kinds & 15, depth + 1)

    def _list_head(self, depth: int) -> tuple[int, int]:
        """Return the number and type of the entries of a list."""
        if depth > _MAX_DEPTH:
            raise ThriftLimitError("it is nested too deep")
        head = self._byte()
        kind = head & 15
        count = self._count(self._varint() if head >> 4 == 15 else head >> 4, 1)
        if count and not STOP < kind <= UUID:  # an empty list needs no type, and some writers give it none
            raise ThriftError("a list has entries without a type")
        return count, kind

    def _count(self, count: int, least: int) -> int:
        """Check a number of entries, each of which takes at least `least` bytes."""
        if count > MAX_ENTRIES or count * least > self.end - self.at:
            raise ThriftLimitError(f"a list of {count:,} entries is longer than it can be")
        return count

    def whole(self) -> int:
        """Read a signed integer (zigzag encoding).

        Returns
        -------
        int
            The number.
        """
        number = self._varint()
        return (number >> 1) ^ -(number & 1)

    def _varint(self) -> int:
        """Read an unsigned integer of variable length."""
        number = shift = 0
        while shift < 70:
            byte = self._byte()
            number |= (byte & 127) << shift
            if byte < 128:
                if number >= 2**64:
                    break
                return number
            shift += 7
        raise ThriftError("a number has more than 64 bits")

    def _byte(self) -> int:
        """Read one byte."""
        if self.at >= self.end:
            raise ThriftError("it is cut off")
        self.at += 1
        return self.content[self.at - 1]

    def _bytes(self, count: int) -> bytes:
        """Read a number of bytes."""
        if count > self.end - self.at:
            raise ThriftError("a text is longer than the bytes that are left")
        self.at += count
        return self.content[self.at - count : self.at]
