"""Parquet files, checked before polars reads them: the footer, the headers of the pages, and their unpacked sizes.

A footer of a few bytes can state any number of rows, and polars allocates memory for the stated number. If there is
not enough, the process ends without an error message. So all stated numbers are first compared with the bytes of the
file. The file: a reader of the footer's encoding; the Arrow schema within it; `read_parquet` and its checks.
"""

from __future__ import annotations

import binascii
import struct
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from manyhands._core.system import check_memory
from manyhands.exceptions import AnnotationError, LimitError
from manyhands.io.sources import MAX_RATIO, PARQUET, Source

# ----------------------------------------------------------------------------------------------------
# Reader of Thrift's compact protocol, as Parquet footers use it, within limits.
#
# It only serves to check a file before polars reads it. No stated length is relied upon: a list or a text must lie
# within the available bytes, and no memory is allocated in proportion to a number before what it counts was read.

STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(14)

# ----------------------------------------------------------------------------------------------------
# Reader of Thrift's compact protocol, as Parquet footers use it, within limits.
#
# It only serves to check a file before polars reads it. No stated length is relied upon: a list or a text must lie
# within the available bytes, and no memory is allocated in proportion to a number before what it counts was read.

_MAX_ENTRIES = 100_000  # of one list; no footer has more columns, row groups or anything else
_MAX_THRIFT_DEPTH = 24  # of nested structures and lists; Parquet has eight
_FIXED = {BYTE: 1, DOUBLE: 8, UUID: 16}


class ThriftError(ValueError):
    """The bytes are not a valid structure."""


class ThriftLimitError(ThriftError):
    """The bytes state sizes or depths beyond what any file needs."""


@dataclass(frozen=True)
class _Shape:
    """The part of a structure that is read."""

    types: Mapping[int, int]  # number of a field -> its type; all other fields are skipped
    needed: tuple[int, ...] = ()  # numbers of the fields that must be there
    # shapes of the fields that are structures, or lists of structures
    inside: Mapping[int, _Shape] = field(default_factory=dict)


class Reader:
    """Reads structures from bytes."""

    def __init__(self, content: bytes, at: int, end: int) -> None:
        """Start at a position."""
        self.content, self.at, self.end = content, at, end

    def struct(self, shape: _Shape, depth: int = 0) -> dict[int, Any]:
        """Read a structure."""
        fields: dict[int, Any] = {}
        number = 0
        while True:
            number, kind = self._field(number)
            if kind == STOP:
                break
            wanted = shape.types.get(number)
            if wanted is None:
                self._skip(kind, depth + 1)
            elif number in fields or wanted != kind:
                raise ThriftError(f"field {number} is there twice, or of another type")
            else:
                fields[number] = self._value(kind, shape.inside.get(number), depth + 1)
        if not all(number in fields for number in shape.needed):
            raise ThriftError("a structure lacks a field")
        return fields

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

    def _value(self, kind: int, shape: _Shape | None, depth: int) -> Any:
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
        if depth > _MAX_THRIFT_DEPTH:
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
        if depth > _MAX_THRIFT_DEPTH:
            raise ThriftLimitError("it is nested too deep")
        head = self._byte()
        kind = head & 15
        count = self._count(self._varint() if head >> 4 == 15 else head >> 4, 1)
        if count and not STOP < kind <= UUID:  # an empty list needs no type, and some writers give it none
            raise ThriftError("a list has entries without a type")
        return count, kind

    def _count(self, count: int, least: int) -> int:
        """Check a number of entries, each of which takes at least `least` bytes."""
        if count > _MAX_ENTRIES or count * least > self.end - self.at:
            raise ThriftLimitError(f"a list of {count:,} entries is longer than it can be")
        return count

    def whole(self) -> int:
        """Read a signed integer (zigzag encoding)."""
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


# ----------------------------------------------------------------------------------------------------
# Check of the Arrow schema that Parquet writers add to a footer, before polars follows it.
#
# The schema is a FlatBuffer: tables that refer to tables. Tables may be shared, so that thirty of them, each of which
# refers twice to the next one, form a tree of a billion nodes; they may also be nested deeper than the stack. Both
# would end the process.

_MAX_ARROW_DEPTH = 40  # fields within fields; more than Parquet's columns may have (`_MAX_COLUMN_DEPTH`)
_MAX_FIELDS = 100_000  # as many as a list of the footer may have entries (`_MAX_ENTRIES`)
_MAX_LETTERS = 32 << 20  # characters of all names and metadata together
_BROKEN = (struct.error, IndexError, binascii.Error, ValueError)

# Position of each entry in its table.
_HEADER, _FIELDS, _SCHEMA_NOTES = 2, 1, 2  # of the message, of the schema
_NAME, _CHILDREN, _NOTES = 0, 5, 6  # of a field
_KEY, _VALUE = 0, 1  # of a pair of metadata


def check_arrow_schema(encoded: bytes) -> None:
    """Refuse a schema that is not a tree of fields of reasonable size."""
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
        if depth > _MAX_ARROW_DEPTH or n_fields + len(left) > _MAX_FIELDS or n_letters > _MAX_LETTERS:
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
        layout = table - self._number("<i", table)
        place = 4 + 2 * entry
        if place + 2 > self._number("<H", layout):
            return None
        offset = self._number("<H", layout + place)
        return self.follow_at(table + offset) if offset else None

    def length(self, table: int, entry: int) -> int:
        """Return the length of a text or a list, each entry of which takes at least a byte."""
        at = self.follow(table, entry)
        size = 0 if at is None else self._number("<I", at)
        if size > len(self.content):
            raise IndexError
        return size

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


# ----------------------------------------------------------------------------------------------------
# `read_parquet`: the numbers that the footer and the pages state, checked before polars allocates memory by them.

_MAX_FOOTER = 16 << 20  # bytes; 80 for each of the chunks that are allowed
_MAX_CHUNKS = 200_000  # columns times row groups
_MAX_COLUMN_DEPTH = 32  # of nested lists and structures in a column; exports have up to three
_BYTES_PER_CELL = 24  # of a table in memory, however short its texts are: a view of 16 bytes, and some for its text
_RATIO_FROM = 256 << 20  # bytes in memory; a table of one value below that size does no harm
_MAX_WIDTH = 1 << 20  # bytes of a value of fixed size
_FIXED_SIZE = 7  # code of the type of such values
_REPEATED = 2  # code of a field that a row may have several times
_ELEMENT = _Shape({1: I32, 2: I32, 3: I32, 4: BINARY, 5: I32}, needed=(4,))
_META = _Shape({1: I32, 4: I32, 5: I64, 6: I64, 7: I64, 9: I64, 10: I64, 11: I64}, needed=(1, 4, 5, 6, 7, 9))
_CHUNK = _Shape({1: BINARY, 2: I64, 3: STRUCT}, needed=(3,), inside={3: _META})
_GROUP = _Shape({1: LIST, 2: I64, 3: I64}, needed=(1, 3), inside={1: _CHUNK})
_PAIR = _Shape({1: BINARY, 2: BINARY}, needed=(1,))
FOOTER = _Shape({2: LIST, 3: I64, 4: LIST, 5: LIST}, needed=(2, 3, 4), inside={2: _ELEMENT, 4: _GROUP, 5: _PAIR})
_COUNTED = _Shape({1: I32}, needed=(1,))
_DATA, _DICTIONARY, _DATA_2 = 5, 7, 8  # number of the field that each kind of page has
_PAGE = _Shape(
    {1: I32, 2: I32, 3: I32, _DATA: STRUCT, _DICTIONARY: STRUCT, _DATA_2: STRUCT},
    needed=(1, 2, 3),
    inside={_DATA: _COUNTED, _DICTIONARY: _COUNTED, _DATA_2: _COUNTED},
)


@dataclass(frozen=True)
class _Column:
    """A column that has values."""

    width: int  # bytes of a value in memory
    repeated: bool  # whether a row may have several values


def read_parquet(source: Source) -> pl.DataFrame:
    """Read the table of a Parquet file."""
    content = source.read()
    try:
        check_parquet(content, source.name)
        return pl.read_parquet(content)
    except ThriftLimitError as error:
        raise LimitError(f"{source.name} is not read as Parquet: {error}. Write it again.") from None
    except ThriftError as error:
        cause = str(error)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        cause = str(error).partition("\n")[0][:200]  # a panic of polars is not derived from Exception
    raise AnnotationError(f"{source.name} cannot be read as Parquet: {cause.rstrip('.')}. Write it again.")


def check_parquet(content: bytes, name: str) -> None:
    """Refuse a file whose footer or pages state impossible or excessive numbers."""
    footer, data_end = _read_footer(content)
    columns = list(_leaves(footer[2]))
    counts = [group[3] for group in footer[4]]
    _check_size(content, name, max([footer[3], *counts]) * max(len(columns), 1) * _BYTES_PER_CELL, footer[3])
    _check_rows(footer, counts, len(columns), name)
    for pair in footer.get(5, []):
        if pair[1] == b"ARROW:schema":
            check_arrow_schema(pair.get(2, b""))
    n_bytes = _BYTES_PER_CELL * footer[3]
    for group in footer[4]:
        for chunk, column in zip(group[1], columns):
            n_bytes += _chunk_bytes(content, data_end, chunk, column, group[3])
    _check_size(content, name, n_bytes, footer[3])


def _check_size(content: bytes, name: str, n_bytes: int, n_rows: int) -> None:
    """Refuse a table that needs more memory than there is, or than a file of this size needs."""
    if n_bytes > max(MAX_RATIO * len(content), _RATIO_FROM):
        raise LimitError(
            f"{name} has {len(content):,} bytes and {n_rows:,} rows, which need about {n_bytes / 1e9:,.1f} GB in "
            f"memory: more than {MAX_RATIO} times its size, as harmful files do. If it is yours, write it as CSV."
        )
    check_memory(n_bytes, f"The {n_rows:,} rows of {name}", "Cut the file into parts, and read each.")


def _read_footer(content: bytes) -> tuple[dict[int, Any], int]:
    """Return the footer and its position."""
    if len(content) < 12 or content[:4] != PARQUET or content[-4:] != PARQUET:
        raise ThriftError("it does not begin and end as such a file does; was it cut off?")
    length = int.from_bytes(content[-8:-4], "little")
    begin = len(content) - 8 - length
    if begin < 4:
        raise ThriftError(f"its footer cannot have {length:,} bytes")
    if length > _MAX_FOOTER:
        raise ThriftLimitError(f"its footer has {length:,} bytes; at most {_MAX_FOOTER:,} are read")
    reader = Reader(content, begin, len(content) - 8)
    footer = reader.struct(FOOTER)
    if reader.at != len(content) - 8:
        raise ThriftError("its footer ends too early")
    return footer, begin


def _leaves(elements: list[dict[int, Any]]) -> Iterator[_Column]:
    """Yield the columns that have values, in the order of the schema, which is a tree in depth-first order."""
    if not elements:
        raise ThriftError("its schema is empty")
    left = [(elements[0].get(5, 0), False)]  # number of children still to come, and whether they are repeated
    for element in elements[1:]:
        while left and left[-1][0] <= 0:
            left.pop()
        if not left:
            raise ThriftError("its schema is no tree")
        if len(left) > _MAX_COLUMN_DEPTH:
            raise ThriftLimitError(f"a column is nested more than {_MAX_COLUMN_DEPTH} levels deep")
        remaining, repeated = left.pop()
        left.append((remaining - 1, repeated))
        repeated = repeated or element.get(3) == _REPEATED
        if 5 in element and element[5] > 0:
            left.append((element[5], repeated))
        else:
            yield _Column(_width(element), repeated)
    if any(remaining > 0 for remaining, _ in left):
        raise ThriftError("its schema lacks columns")


def _width(element: dict[int, Any]) -> int:
    """Return the bytes of a value in memory."""
    if 1 not in element:
        raise ThriftError("a column has no type")
    if element[1] != _FIXED_SIZE:
        return _BYTES_PER_CELL
    size: int = element.get(2, 0)
    if not 0 < size <= _MAX_WIDTH:
        raise ThriftError(f"a value of a column cannot have {size:,} bytes")
    return max(size, _BYTES_PER_CELL)


def _check_rows(footer: dict[int, Any], counts: list[int], n_columns: int, name: str) -> None:
    """Check that the numbers of rows and columns agree."""
    if footer[3] < 0 or any(count < 0 for count in counts) or sum(counts) != footer[3]:
        raise ThriftError("its number of rows is not that of its row groups")
    if any(len(group[1]) != n_columns for group in footer[4]):
        raise ThriftError("a row group lacks columns")
    if n_columns * len(counts) > _MAX_CHUNKS:
        raise LimitError(f"{name} has {n_columns:,} columns in {len(counts):,} row groups. Write it in larger ones.")


def _chunk_bytes(content: bytes, data_end: int, chunk: dict[int, Any], column: _Column, n_rows: int) -> int:
    """Return the memory that the column of a row group needs at most; its pages must lie where the footer states."""
    meta = chunk[3]
    if chunk.get(1):
        raise ThriftError("it refers to another file")
    n_values = meta[5]
    if n_values < 0 or (not column.repeated and n_values != n_rows):
        raise ThriftError("a column has another number of values than rows")
    data, dictionary = meta[9], meta.get(11, 0)  # where the pages begin; a column without values has no data
    begin = dictionary or data
    if (data and data < begin) or begin < 4 or meta[7] < 0 or meta[6] < 0 or begin + meta[7] > data_end:
        raise ThriftError("a column lies outside of it")
    unpacked = _check_pages(content, begin, begin + meta[7], n_values)
    return max(n_values, n_rows) * column.width + unpacked


def _check_pages(content: bytes, begin: int, end: int, n_values: int) -> int:
    """Return the unpacked size of the pages; none may have more values than the column."""
    unpacked = counted = 0
    while begin < end:
        reader = Reader(content, begin, end)
        page = reader.struct(_PAGE)
        begin = reader.at + page[3]
        if page[2] < 0 or page[3] < 0 or begin > end:
            raise ThriftError("a page lies outside of its column")
        values = next((page[kind][1] for kind in (_DATA, _DATA_2, _DICTIONARY) if kind in page), 0)
        if not 0 <= values <= (page[2] if _DICTIONARY in page else n_values - counted):
            raise ThriftError("a page has more values than its column")
        unpacked += page[2]
        counted += 0 if _DICTIONARY in page else values
        if counted == n_values and _DICTIONARY not in page:
            break  # some writers leave a gap after it
    if counted != n_values:
        raise ThriftError("a column lacks values")
    return unpacked
