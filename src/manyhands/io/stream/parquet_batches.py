"""Rows of a Parquet file in batches: slices of the file, each read by itself.

Of the ways in which polars reads a large file, slices are the one whose memory is bounded: at 500,000 rows of three
columns of text 0.2 GB, however large the row groups are, while its streams of batches took 0.9 GB on the same file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.messages import shorten
from manyhands.io.read.documents import Table
from manyhands.io.read.frames import frame_as_text
from manyhands.io.read.judgements import ColumnOptions
from manyhands.io.stream.inputs import InputFile
from manyhands.io.stream.row_batches import ROLES, Batch, Columns, Rows, choose_columns

_SAMPLE = 10_000  # rows by which the columns are chosen
_EXACT = 2.0**53  # beyond it not every integer has a float of its own


class ParquetBatches:
    """The rows of a Parquet file.

    Parameters
    ----------
    file : InputFile
        The file.
    options : ColumnOptions
        Columns that the caller named.
    n_rows : int
        Rows of a batch.

    Attributes
    ----------
    columns : Columns
        Where the file has what.
    total : int
        Number of its rows.
    integers : set of str
        Roles whose columns hold integers.
    """

    def __init__(self, file: InputFile, options: ColumnOptions, n_rows: int) -> None:
        self._file, self._step = file, n_rows
        with _explained(file.name):
            self._scan = pl.scan_parquet(file.path, glob=False, hive_partitioning=False)
            schema = self._scan.collect_schema()
            self.total = int(self._scan.select(pl.len()).collect().item())
            sample = self._scan.head(_SAMPLE).collect()
        self._names = schema.names()
        self.columns: Columns = choose_columns(
            Table(file.name, *frame_as_text(sample), typed=sample), self._names, options
        )
        types = {role: schema[self._names[at]] for role, at in self.columns.place.items()}
        self.integers = {role for role, kind in types.items() if kind.is_integer()}
        self._floats = [  # of ids; times may have fractions
            self._names[self.columns.place[role]]
            for role, kind in types.items()
            if kind.is_float() and role not in ("time", "question")
        ]

    def __iter__(self) -> Iterator[Batch]:
        """Yield the batches."""
        self._refuse_fractions()
        wanted = list(dict.fromkeys(self._names[at] for at in self.columns.place.values()))
        for begin in range(0, self.total, self._step):
            with _explained(self._file.name):
                frame = self._scan.select(wanted).slice(begin, self._step).collect()
            frame = frame.with_columns(pl.col(name).fill_nan(None).cast(pl.Int64) for name in self._floats)
            cells = dict(zip(wanted, frame_as_text(frame)[0].get_columns()))
            columns = {
                role: cells[self._names[self.columns.place[role]]] if role in self.columns.place else None
                for role in ROLES
            }
            yield Batch(
                **columns,  # type: ignore[arg-type]  # item, worker and label are there
                place=lambda row, begin=begin: f"{self._file.name}, row {begin + row + 1}",  # type: ignore[misc]
                is_blank=lambda rows, begin=begin: self._is_blank(begin, rows),  # type: ignore[misc]
                share=min((begin + self._step) / max(self.total, 1), 1.0),
            )

    def _refuse_fractions(self) -> None:
        """Refuse floats that are not exact integers: the text of 1.0 would depend on the rows read together with it."""
        for name in self._floats:
            given = pl.col(name).cast(pl.Float64).fill_nan(None)
            whole = ((given == given.round()) & (given.abs() < _EXACT)).all()
            for begin in range(0, self.total, self._step):
                with _explained(self._file.name):
                    found = self._scan.select(name).slice(begin, self._step).select(whole).collect().item()
                if not found:
                    raise AnnotationError(
                        f"{self._file.name}: column {shorten(name)!r} holds fractions, or numbers beyond 2^53, which "
                        f"are not read as ids in parts. Write the column as text or as integers."
                    )

    def _is_blank(self, begin: int, rows: Rows) -> npt.NDArray[np.bool_]:
        """Whether all cells of some rows are empty, in the columns that were not read too."""
        first, last = int(rows[0]), int(rows[-1])
        with _explained(self._file.name):
            frame = self._scan.slice(begin + first, last - first + 1).collect()
        cells = frame_as_text(frame[(rows - first).tolist()])[0]
        return np.array([not any(cell and cell.strip() for cell in row) for row in cells.iter_rows()], bool)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Context manager in which errors of polars name the file in one sentence."""
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        cause = str(error).partition("\n")[0][:200]  # a panic of polars is not derived from Exception
        raise AnnotationError(f"{name} cannot be read as Parquet: {cause.rstrip('.')}. Write it again.") from None
