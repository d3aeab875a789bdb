"""Rows of a file of JSON lines in batches."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.messages import shorten
from manyhands.io.read.documents import Records
from manyhands.io.read.json_files import as_text, parse_json
from manyhands.io.read.judgements import ColumnOptions
from manyhands.io.read.sources import Source
from manyhands.io.stream.inputs import InputFile
from manyhands.io.stream.row_batches import ROLES, Batch, Columns, Rows, choose_columns
from manyhands.io.stream.text_chunks import Lines, first_lines, placed_in_file, read_lines

_SAMPLE = 1 << 20  # bytes by which the fields are chosen
_INTEGER = rb" ?(?:0|-?[1-9][0-9]{0,17})(?=[,}])"  # of 64 bits; fractions and powers of ten are none
_KINDS = {str: "text", int: "numbers", float: "numbers", bool: "truth values", list: "lists", dict: "objects"}


class JsonBatches:
    """The rows of a file of JSON lines: flat objects, each on a line.

    Parameters
    ----------
    file : InputFile
        The file.
    options : ColumnOptions
        Fields that the caller named.
    n_bytes : int
        Bytes of the file that are read together.

    Attributes
    ----------
    columns : Columns
        Where the file has what.
    total : int or None
        Estimated number of its rows; None where the file is compressed.
    integers : set of str
        Empty: all values are read as text.
    """

    def __init__(self, file: InputFile, options: ColumnOptions, n_bytes: int) -> None:
        self._file, self._step = file, n_bytes
        start = first_lines(file, min(_SAMPLE, n_bytes), quoted=False)
        objects, _ = self._objects(start)
        self._keys = list(dict.fromkeys(key for entry in objects for key in entry))
        self.columns: Columns = choose_columns(Records(file.name, objects), self._keys, options)
        self.total = None if file.is_compressed else int(file.size * len(objects) / len(start.content))
        self.integers: set[str] = set()
        self._kind = {  # role -> type of its first value
            role: next((type(value) for entry in objects if (value := entry.get(self._keys[at])) is not None), str)
            for role, at in self.columns.place.items()
        }
        self._is_noted: set[str] = set()

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches."""
        for lines in read_lines(self._file, self._step, quoted=False):
            columns = self._simple_columns(lines.content)
            if columns is not None:
                yield self._batch(lines, columns, {}, lambda lines=lines: self._objects(lines)[0])  # type: ignore[misc]
                continue
            objects, notes = self._objects(lines)
            if objects:
                columns, more = self._any_columns(lines, objects)
                yield self._batch(lines, columns, notes | more, lambda objects=objects: objects)  # type: ignore[misc]

    def _simple_columns(self, content: bytes) -> dict[str, pl.Series] | None:
        """Read fields that are all text or all integers with polars; None where that is not certain.

        polars writes fractions and nested values in its own way, and takes the first of two values of a key. So it
        reads only parts in which every object has each field once, with a value of the type of the first one.
        """
        if b"\\ud" in content or b"\\uD" in content:  # unpaired surrogates are refused elsewhere
            return None
        names = {role: self._keys[at] for role, at in self.columns.place.items()}
        counts = {role: _count_values(content, name, self._kind.get(role, str)) for role, name in names.items()}
        if min(counts.values()) <= 0:
            return None
        try:
            frame = pl.read_ndjson(content, schema=dict.fromkeys(names.values(), pl.String))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return None
        if any(n != len(frame) for n in counts.values()) or any(frame.null_count().row(0)):
            return None
        return {role: frame[name] for role, name in names.items()}

    def _objects(self, lines: Lines) -> tuple[list[dict[str, Any]], dict[str, str]]:
        """Parse some lines, and note keys that occur twice; errors name the line of the file."""
        try:
            values, notes = parse_json(Source(self._file.name, content=lines.content))
        except AnnotationError as error:
            raise placed_in_file(error, lines.first - 1, lines.offset) from None
        values = values if isinstance(values, list) else [values]
        odd = next((at for at, value in enumerate(values) if not isinstance(value, dict)), None)
        if odd is not None:
            raise AnnotationError(f"{_place(self._file, lines, odd)}: not an object. Write one object per line.")
        return values, notes

    def _any_columns(self, lines: Lines, objects: list[dict[str, Any]]) -> tuple[dict[str, pl.Series], dict[str, str]]:
        """Take the fields that are needed out of objects, whatever their types, and note mixed types."""
        columns: dict[str, pl.Series] = {}
        notes: dict[str, str] = {}
        for role, at in self.columns.place.items():
            values = [entry.get(self._keys[at]) for entry in objects]
            notes |= self._note_types(role, values, lines)
            columns[role] = pl.Series([as_text(value) for value in values], dtype=pl.String)
        return columns, notes

    def _batch(
        self,
        lines: Lines,
        columns: dict[str, pl.Series],
        notes: dict[str, str],
        objects: Callable[[], list[dict[str, Any]]],
    ) -> Batch:
        """Make a batch of columns."""

        def is_blank(rows: Rows) -> npt.NDArray[np.bool_]:
            entries = objects()
            texts = ([as_text(value) for value in entries[row].values()] for row in rows.tolist())
            return np.array([not any(text and text.strip() for text in row) for row in texts], bool)

        return Batch(
            **{role: columns.get(role) for role in ROLES},  # type: ignore[arg-type]  # item, worker, label are there
            place=lambda row: _place(self._file, lines, row),
            is_blank=is_blank,
            share=lines.share,
            notes=notes,
        )

    def _note_types(self, role: str, values: list[Any], lines: Lines) -> dict[str, str]:
        """Return the note on a field that holds values of two types, with the line of the first of the second."""
        kinds = set(map(type, values)) - {type(None)}
        if not kinds or role in self._is_noted:
            return {}
        first = self._kind[role]
        if kinds == {first}:
            return {}
        row = next(at for at, value in enumerate(values) if value is not None and type(value) is not first)
        self._is_noted.add(role)
        field = shorten(self._keys[self.columns.place[role]])
        return {
            f"mixed_types_{role}": f"Field {field!r} of {self._file.name} holds {_KINDS[first]}, and "
            f"{_KINDS[type(values[row])]} from {_place(self._file, lines, row).rpartition(', ')[2]} on: "
            f"{shorten(as_text(values[row]) or '')!r}. All are read as text."
        }


def _count_values(content: bytes, name: str, kind: type) -> int:
    """Return how many objects have a field, if each value of it is of one type: text or an integer; otherwise -1."""
    key = json.dumps(name, ensure_ascii=False).encode() + b":"
    n = content.count(key)
    if kind is str:
        return n if n == content.count(key + b'"') + content.count(key + b' "') else -1
    if kind is int:
        return n if n == len(re.findall(re.escape(key) + _INTEGER, content)) else -1
    return -1


def _place(file: InputFile, lines: Lines, row: int) -> str:
    """Return file and line of an object; blank lines are counted."""
    given = [at for at, line in enumerate(lines.content.split(b"\n")) if line.strip()]
    return f"{file.name}, line {lines.first + given[row]}"
