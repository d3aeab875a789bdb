"""Rows of a text table in batches: parts of whole lines, each read below the header as a table of its own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.repeated_headers import blank_repeated_headers
from manyhands.io.read.documents import Table
from manyhands.io.read.judgements import ColumnOptions
from manyhands.io.read.sources import Source
from manyhands.io.read.text_tables import header_lines, read_text_table
from manyhands.io.stream.inputs import InputFile
from manyhands.io.stream.row_batches import Batch, Columns, Rows, choose_columns
from manyhands.io.stream.text_chunks import Lines, first_lines, placed_in_file, read_lines

_SAMPLE = 1 << 20  # bytes by which the columns are chosen
_LAST_ONLY = "footer"  # a note that is true of the last line of a file only


class CsvBatches:
    """The rows of a text table.

    Parameters
    ----------
    file : InputFile
        The file.
    options : ColumnOptions
        Columns that the caller named.
    n_bytes : int
        Bytes of the file that are read together.

    Attributes
    ----------
    columns : Columns
        Where the file has what.
    total : int or None
        Estimated number of its rows; None where the file is compressed.
    integers : set of str
        Empty: all cells are text.
    """

    def __init__(self, file: InputFile, options: ColumnOptions, n_bytes: int) -> None:
        self._file, self._step = file, n_bytes
        start = first_lines(file, min(_SAMPLE, n_bytes), quoted=True)
        source = Source(file.name, content=start.content)
        try:
            sample = read_text_table(source)
        except AnnotationError as error:
            raise placed_in_file(error, 0, start.offset) from None
        self._head = header_lines(source)
        self._header = sample.header
        table = Table(file.name, sample.frame, sample.header, sample.locate, notes=sample.notes)
        self.columns: Columns = choose_columns(table, sample.header, options)
        per_row = (len(start.content) - len(self._head)) / max(len(sample.frame), 1)
        self.total = None if file.is_compressed or not per_row else int(file.size / per_row)
        self.integers: set[str] = set()

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches."""
        for lines in read_lines(self._file, self._step, quoted=True):
            begun = len(self._head) if lines.first == 1 else 0
            if begun < len(lines.content):
                yield self._batch(lines, lines.content[begun:])

    def _batch(self, lines: Lines, rows: bytes) -> Batch:
        """Read some lines as a table."""
        n_head = self._head.count(b"\n")
        lines_more = lines.first - 1 if lines.first == 1 else lines.first - 1 - n_head
        bytes_more = lines.offset if lines.first == 1 else lines.offset - len(self._head)
        source = Source(self._file.name, content=self._head + rows)
        try:
            frame, header, locate, notes = read_text_table(source)
        except AnnotationError as error:
            raise placed_in_file(error, lines_more, bytes_more) from None
        table = blank_repeated_headers(Table(self._file.name, frame, header, notes=notes))

        def place(row: int) -> str:
            found = None if locate is None else locate(row)
            if found is None:
                return f"{self._file.name}, a row from line {lines.first} on"
            return f"{self._file.name}, line {int(found.split()[-1]) + lines_more}"

        def is_blank(rows: Rows) -> npt.NDArray[np.bool_]:
            return table.blank_lines().to_numpy()[rows]

        return Batch(
            **self.columns.batch_columns(table.frame),  # type: ignore[arg-type]  # item, worker and label are there
            place=place,
            is_blank=is_blank,
            share=lines.share,
            notes={code: note for code, note in table.notes.items() if code != _LAST_ONLY or lines.share == 1.0},
        )
