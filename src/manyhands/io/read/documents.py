"""Step 2 of reading: the content of a file as a table, JSON records, words, or a folder of files.

Nothing here depends on the annotation tool that wrote the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from manyhands.data_frames import is_frame
from manyhands.exceptions import AnnotationError
from manyhands.io.read.archives import ZIP
from manyhands.io.read.json_files import looks_like_json, parse_json
from manyhands.io.read.parquet import read_parquet
from manyhands.io.read.sources import PARQUET, Source, open_path
from manyhands.io.read.text import as_utf8, utf8_error
from manyhands.io.read.text_tables import Locate, read_text_table
from manyhands.io.read.title_lines import LOOKED_AT, count_title_rows
from manyhands.io.read.workbooks import read_workbook

FRAME = "the data frame"  # name of a table that no file holds
TABLE_SUFFIXES = (".csv", ".tsv")
_TEXT_SUFFIXES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".manifest", "")
_PACKED_SUFFIXES = (".xlsx", ".parquet", ".zip", ".gz")  # recognised by their first bytes
_WEB_PAGE = (b"<!doctype html", b"<html")
READABLE = ".csv, .tsv, .txt, .json, .jsonl, .ndjson, .parquet and .xlsx files, gzipped or in a folder or zip"


@dataclass(frozen=True)
class Table:
    """Rows with named columns; every cell is text, or null where it is empty.

    Attributes
    ----------
    name : str
        Name of the file.
    frame : polars.DataFrame
        The cells.
    header : list of str
        Names of the columns as in the file; polars renames those that occur twice.
    locate : callable or None
        Maps the number of a row to its line in the file, for error messages.
    typed : polars.DataFrame or None
        The same columns with the types of a Parquet file or data frame; None if the file has text only.
    notes : dict of str to str
        Warnings about the file: code -> sentence.
    """

    name: str
    frame: pl.DataFrame
    header: list[str]
    locate: Locate | None = field(default=None, compare=False)
    typed: pl.DataFrame | None = field(default=None, compare=False)
    notes: dict[str, str] = field(default_factory=dict, compare=False)

    def column(self, at: int) -> pl.Series:
        """Return the column at a position."""
        return self.frame.to_series(at)

    def original(self, at: int) -> pl.Series:
        """Return the column at a position with the type that it has in the file."""
        return self.column(at) if self.typed is None else self.typed.to_series(at)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.frame)

    def place(self, row: int) -> str:
        """Return the file and the line of a row, for error messages; the file is read again to find the line."""
        found = None if self.locate is None else self.locate(row)
        return f"{self.name}, {found or f'row {row + 1} after the header'}"

    def blank_lines(self) -> pl.Series:
        """Return the rows in which every cell is empty or white space, as a Boolean series."""
        return self.frame.select(pl.all_horizontal((pl.all().str.strip_chars() == "").fill_null(True))).to_series()


@dataclass(frozen=True)
class Records:
    """Content of a JSON file; JSON lines are the list of their values.

    Attributes
    ----------
    name : str
        Name of the file.
    value : object
        The parsed value, usually a list of objects or one object.
    notes : dict of str to str
        Warnings about the file: code -> sentence.
    """

    name: str
    value: Any
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The value, if it is a list of objects; otherwise an empty list."""
        if isinstance(self.value, list) and all(isinstance(entry, dict) for entry in self.value):
            return self.value
        return []

    @property
    def first(self) -> dict[str, Any]:
        """The first object of the list, by which a format is recognised; empty where there is none."""
        begins = isinstance(self.value, list) and self.value and isinstance(self.value[0], dict)
        return self.value[0] if begins else {}


@dataclass(frozen=True)
class Words:
    """Lines of words separated by white space, without a header.

    Attributes
    ----------
    name : str
        Name of the file.
    rows : list of list of str
        The words of each line that is not blank.
    """

    name: str
    rows: list[list[str]]


@dataclass(frozen=True)
class Folder:
    """Files of a folder or a zip.

    Attributes
    ----------
    name : str
        Path of the folder or archive.
    members : mapping of str to Source
        The files by their path within it.
    """

    name: str
    members: Mapping[str, Source]


Document = Table | Records | Words | Folder


def open_document(path: Any, encoding: str | None = None) -> Document:
    """Open a path, or take a data frame as the table that it is.

    Parameters
    ----------
    path : str, Path or data frame
        As in `read_export`.
    encoding : str or None, default=None
        Encoding of text files that are not UTF-8.

    Returns
    -------
    Table, Records, Words or Folder
        The content.
    """
    if is_frame(path):
        from manyhands.io.read.frames import frame_as_text

        frame, header = frame_as_text(path)
        return Table(FRAME, frame, header, typed=_typed(path, frame))
    opened = open_path(path)
    return parse(opened, encoding) if isinstance(opened, Source) else Folder(str(path), opened)


def parse(source: Source, encoding: str | None = None) -> Document:
    """Parse one file, recognised by its content first and by its name second.

    Parameters
    ----------
    source : Source
        The file.
    encoding : str or None, default=None
        Encoding of text files that are not UTF-8.

    Returns
    -------
    Table, Records or Words
        The content.

    Raises
    ------
    AnnotationError
        If the file is empty, damaged, or of an unknown kind.
    """
    if not source.size:
        raise AnnotationError(f"{source.name} is empty. Export it again; the first line must name the columns.")
    if source.head.startswith(PARQUET):
        return _parquet_table(source)
    if source.head.startswith(ZIP):
        frame, header, notes = read_workbook(source)
        return Table(source.name, frame, header, _sheet_rows(source), notes=notes)
    if source.suffix in _PACKED_SUFFIXES:
        raise AnnotationError(f"{source.name} has a wrong name: its content is not that of a {source.suffix} file.")
    if source.suffix not in _TEXT_SUFFIXES:
        raise AnnotationError(f"{source.name} ends in {source.suffix!r}. manyhands reads {READABLE}.")
    loaded = source.loaded()
    text = as_utf8(loaded, encoding)
    if text.head.lstrip()[:15].lower().startswith(_WEB_PAGE):
        raise AnnotationError(f"{source.name} is a web page, perhaps one to sign in. Download the export again.")
    if source.suffix not in TABLE_SUFFIXES and looks_like_json(text):
        return Records(source.name, *parse_json(text))
    if source.suffix not in TABLE_SUFFIXES and not _has_separators(text):
        return Words(source.name, _word_rows(text))
    frame, header, locate, notes = read_text_table(text, again=source if text is loaded else None)
    return Table(source.name, frame, header, locate, notes=notes)


def _has_separators(source: Source) -> bool:
    """Whether the first line has cells rather than words; blank lines are skipped."""
    line = source.head.lstrip().split(b"\n", 1)[0]
    return any(separator in line for separator in (b"\t", b",", b";", b"|"))


def _word_rows(source: Source) -> list[list[str]]:
    """Return the words of each line."""
    wrong = utf8_error(source)
    if wrong is not None:
        raise AnnotationError(wrong)
    rows = [line.split() for line in source.read().decode().split("\n") if line.strip()]
    if not rows:
        raise AnnotationError(f"{source.name} holds nothing but white space. Export it again.")
    return rows


def _sheet_rows(source: Source) -> Locate:
    """Return a function that finds the row of a sheet: blank rows above the header are not read, but counted."""

    def locate(row: int) -> str | None:
        import fastexcel

        try:
            book = fastexcel.read_excel(source.read())
            sheet = book.load_sheet(0, header_row=None, dtypes="string", skip_rows=0, n_rows=_MAX_ABOVE).to_polars()
        except (fastexcel.FastExcelError, AnnotationError):
            return None
        non_blank = sheet.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
        begun = int(non_blank.arg_max() or 0)
        title = count_title_rows(sheet[begun : begun + LOOKED_AT].rows())
        return f"row {begun + title + row + 2} of the sheet" if non_blank.any() else None

    return locate


_MAX_ABOVE = 10_000  # rows of a sheet in which the header is searched


def _parquet_table(source: Source) -> Table:
    """Read a Parquet file as a table of text."""
    from manyhands.io.read.frames import frame_as_text

    frame = read_parquet(source)
    return Table(source.name, *frame_as_text(frame), typed=frame)


def _typed(frame: Any, text: pl.DataFrame) -> pl.DataFrame | None:
    """Return a frame of polars as it is, and one of pandas with its numbers as numbers; None for all others."""
    if isinstance(frame, pl.DataFrame) or not hasattr(frame, "iloc"):
        return frame if isinstance(frame, pl.DataFrame) else None
    numbers = [getattr(frame.iloc[:, at].dtype, "kind", "") in "biuf" for at in range(len(frame.columns))]
    columns = [
        pl.Series(name, frame.iloc[:, at].to_numpy(), nan_to_null=True) if numbers[at] else text[name]
        for at, name in enumerate(text.columns)
    ]
    return pl.DataFrame(columns)
