"""Parquet files, checked before polars reads them: the footer, the headers of the pages, and their unpacked sizes.

A footer of a few bytes can state any number of rows, and polars allocates memory for the stated number. If there is
not enough, the process ends without an error message. So all stated numbers are first compared with the bytes of the
file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from manyhands.exceptions import AnnotationError, LimitError
from manyhands.io.read.archives import MAX_RATIO
from manyhands.io.read.arrow_schema import check_arrow_schema
from manyhands.io.read.sources import PARQUET, Source
from manyhands.io.read.thrift import BINARY, I32, I64, LIST, STRUCT, Reader, Shape, ThriftError, ThriftLimitError
from manyhands.validation import check_memory

_MAX_FOOTER = 16 << 20  # bytes
_MAX_CHUNKS = 200_000  # columns times row groups
_MAX_DEPTH = 32  # of nested lists and structures in a column
_BYTES_PER_CELL = 24  # of a table in memory, however short its texts are
_RATIO_FROM = 256 << 20  # bytes in memory; a table of one value below that size does no harm
_MAX_WIDTH = 1 << 20  # bytes of a value of fixed size
_FIXED_SIZE = 7  # code of the type of such values
_REPEATED = 2  # code of a field that a row may have several times

_ELEMENT = Shape({1: I32, 2: I32, 3: I32, 4: BINARY, 5: I32}, needed=(4,))
_META = Shape({1: I32, 4: I32, 5: I64, 6: I64, 7: I64, 9: I64, 10: I64, 11: I64}, needed=(1, 4, 5, 6, 7, 9))
_CHUNK = Shape({1: BINARY, 2: I64, 3: STRUCT}, needed=(3,), inside={3: _META})
_GROUP = Shape({1: LIST, 2: I64, 3: I64}, needed=(1, 3), inside={1: _CHUNK})
_PAIR = Shape({1: BINARY, 2: BINARY}, needed=(1,))
FOOTER = Shape({2: LIST, 3: I64, 4: LIST, 5: LIST}, needed=(2, 3, 4), inside={2: _ELEMENT, 4: _GROUP, 5: _PAIR})
_COUNTED = Shape({1: I32}, needed=(1,))
_DATA, _DICTIONARY, _DATA_2 = 5, 7, 8  # number of the field that each kind of page has
_PAGE = Shape(
    {1: I32, 2: I32, 3: I32, _DATA: STRUCT, _DICTIONARY: STRUCT, _DATA_2: STRUCT},
    needed=(1, 2, 3),
    inside={_DATA: _COUNTED, _DICTIONARY: _COUNTED, _DATA_2: _COUNTED},
)


@dataclass(frozen=True)
class _Column:
    """A column that has values.

    Attributes
    ----------
    width : int
        Bytes of a value in memory.
    repeated : bool
        Whether a row may have several values.
    """

    width: int
    repeated: bool


def read_parquet(source: Source) -> pl.DataFrame:
    """Read the table of a Parquet file.

    Parameters
    ----------
    source : Source
        The file, on disk, unpacked or in memory. It is read whole, and not mapped.

    Returns
    -------
    polars.DataFrame
        The table.

    Raises
    ------
    AnnotationError
        If the file is not Parquet, or damaged.
    LimitError
        If the table would need more memory than there is, or than files of its size need.
    """
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
    """Refuse a file whose footer or pages state impossible or excessive numbers.

    Parameters
    ----------
    content : bytes
        The file.
    name : str
        Its name, for error messages.

    Raises
    ------
    ThriftError
        If it is damaged.
    LimitError, ThriftLimitError
        If it would need too much memory.
    """
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
        if len(left) > _MAX_DEPTH:
            raise ThriftLimitError(f"a column is nested more than {_MAX_DEPTH} levels deep")
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
