"""What a file is made of, before anyone asks what it means: a table, JSON, bare words, or a folder of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.read.archives import ZIP
from manyhands.io.read.json_files import looks_like_json, parse_json
from manyhands.io.read.parquet import read_parquet
from manyhands.io.read.sources import PARQUET, Source, open_path
from manyhands.io.read.text import as_utf8, utf8_error
from manyhands.io.read.text_tables import Locate, read_text_table
from manyhands.io.read.workbooks import read_workbook

TABLE_SUFFIXES = (".csv", ".tsv")
_TEXT_SUFFIXES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".manifest", "")
_PACKED_SUFFIXES = (".xlsx", ".parquet", ".zip", ".gz")  # known by their first bytes
READABLE = ".csv, .tsv, .txt, .json, .jsonl, .ndjson, .parquet and .xlsx files, gzipped or in a folder or zip"


@dataclass(frozen=True)
class Table:
    """Rows with named columns, every cell text; null where a cell has nothing."""

    name: str
    frame: pl.DataFrame
    header: list[str]  # as in the file; polars renames what comes twice
    locate: Locate | None = field(default=None, compare=False)

    def column(self, at: int) -> pl.Series:
        return self.frame.to_series(at)

    def __len__(self) -> int:
        return len(self.frame)

    def place(self, row: int) -> str:
        """The file and a row of it, as a person finds it; what it takes to find that out is only done here."""
        found = None if self.locate is None else self.locate(row)
        return f"{self.name}, {found or f'row {row + 1} after the header'}"

    def blank_lines(self) -> pl.Series:
        """The rows in which no cell says anything."""
        return self.frame.select(pl.all_horizontal((pl.all().str.strip_chars() == "").fill_null(True))).to_series()


@dataclass(frozen=True)
class Records:
    """What a JSON file holds: a list, or one object. JSON lines are the list of their objects."""

    name: str
    value: Any
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The list where it is one of objects, otherwise nothing."""
        if isinstance(self.value, list) and all(isinstance(entry, dict) for entry in self.value):
            return self.value
        return []

    @property
    def first(self) -> dict[str, Any]:
        """The first object of the list, by which an export is known; empty where there is none."""
        begins = isinstance(self.value, list) and self.value and isinstance(self.value[0], dict)
        return self.value[0] if begins else {}


@dataclass(frozen=True)
class Words:
    """Lines of bare words, without a header."""

    name: str
    rows: list[list[str]]


@dataclass(frozen=True)
class Folder:
    """Files by name, in a folder or a zip."""

    name: str
    members: Mapping[str, Source]


Document = Table | Records | Words | Folder


def open_document(path: Any, encoding: str | None = None) -> Document:
    """What stands at a path, or a data frame as the table that it is."""
    if hasattr(path, "columns"):
        from manyhands.io.read.frames import frame_as_text

        frame, header = frame_as_text(path)
        return Table("the data frame", frame, header)
    opened = open_path(path)
    return parse(opened, encoding) if isinstance(opened, Source) else Folder(str(path), opened)


def parse(source: Source, encoding: str | None = None) -> Document:
    """One file, by its content first and its name second."""
    if not source.size:
        raise AnnotationError(f"{source.name} is empty. Export it again; the first line must name the columns.")
    if source.head.startswith(PARQUET):
        return _parquet_table(source)
    if source.head.startswith(ZIP):
        return Table(source.name, *read_workbook(source), _sheet_rows(source))
    if source.suffix in _PACKED_SUFFIXES:
        raise AnnotationError(f"{source.name} is not what its name says: its content is no {source.suffix} file.")
    if source.suffix not in _TEXT_SUFFIXES:
        raise AnnotationError(f"{source.name} ends in {source.suffix!r}. manyhands reads {READABLE}.")
    loaded = source.loaded()
    text = as_utf8(loaded, encoding)
    if source.suffix not in TABLE_SUFFIXES and looks_like_json(text):
        return Records(source.name, *parse_json(text))
    if source.suffix not in TABLE_SUFFIXES and not _has_separators(text):
        return Words(source.name, _word_rows(text))
    return Table(source.name, *read_text_table(text, again=source if text is loaded else None))


def _has_separators(source: Source) -> bool:
    """Whether the first line is cells rather than words; a line of blanks says nothing."""
    line = source.head.lstrip().split(b"\n", 1)[0]
    return any(separator in line for separator in (b"\t", b",", b";"))


def _word_rows(source: Source) -> list[list[str]]:
    wrong = utf8_error(source)
    if wrong is not None:
        raise AnnotationError(wrong)
    rows = [line.split() for line in source.read().decode().split("\n") if line.strip()]
    if not rows:
        raise AnnotationError(f"{source.name} holds nothing but white space. Export it again.")
    return rows


def _sheet_rows(source: Source) -> Locate:
    """How to find the row of a sheet: blank ones above the header are not read, but count for a person."""

    def locate(row: int) -> str | None:
        import fastexcel

        try:
            book = fastexcel.read_excel(source.read())
            sheet = book.load_sheet(0, header_row=None, dtypes="string", skip_rows=0, n_rows=_MAX_ABOVE).to_polars()
        except (fastexcel.FastExcelError, AnnotationError):
            return None
        filled = sheet.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
        return f"row {int(filled.arg_max() or 0) + row + 2} of the sheet" if filled.any() else None

    return locate


_MAX_ABOVE = 10_000  # rows of a sheet in which its header is looked for


def _parquet_table(source: Source) -> Table:
    from manyhands.io.read.frames import frame_as_text

    return Table(source.name, *frame_as_text(read_parquet(source)))
