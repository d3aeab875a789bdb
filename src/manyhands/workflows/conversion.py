"""`convert`: an export of any tool as a table of item, worker and label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.overview import describe_reading
from manyhands.io.read.reading import Reading
from manyhands.io.write.pseudonyms import pseudonymise
from manyhands.io.write.spreadsheet import guard_table
from manyhands.io.write.triples import encode_table, triples_frame, wide_frame
from manyhands.workflows.options import DEFAULT_EXPORT, ExportOptions
from manyhands.workflows.outputs import Written, claim_file, table_ending, write_all


@dataclass(frozen=True, eq=False)
class ConversionRun:
    """Result of `convert`.

    Attributes
    ----------
    reading : Reading
        What was read.
    table : polars.DataFrame
        The annotations.
    content : bytes
        The table as a file.
    summary : dict
        What was read, and the name of the file.
    written : Written
        Name of the file that was written.
    """

    reading: Reading
    table: pl.DataFrame
    content: bytes
    summary: dict[str, Any]
    written: Written


def convert(
    files: Sequence[str],
    export: ExportOptions = DEFAULT_EXPORT,
    *,
    wide: bool = False,
    pseudonyms: bool = False,
    key: str | Path | None = None,
    spreadsheet_safe: bool = False,
    out: str | Path | None = None,
    force: bool = False,
) -> ConversionRun:
    """Convert an export to a table of the annotations that count.

    Drafts, skipped and repeated judgements are left out; an item without any label is a row without worker and label.

    Parameters
    ----------
    files : sequence of str
        The export.
    export : ExportOptions, default=ExportOptions()
        How to read it.
    wide : bool, default=False
        One row per item and one column per worker, instead of one row per annotation.
    pseudonyms : bool, default=False
        Replace worker ids.
    key : str, Path or None, default=None
        Secret file from which pseudonyms are derived; implies `pseudonyms`.
    spreadsheet_safe : bool, default=False
        Prevent spreadsheet programs from running cells as formulas.
    out : str, Path or None, default=None
        File to write, whose ending determines the format; None gives CSV and writes nothing.
    force : bool, default=False
        Replace a file that exists.

    Returns
    -------
    ConversionRun
        The table and its content as a file.

    Raises
    ------
    ParameterError
        If an option is invalid.
    AnnotationError
        If the export cannot be read.
    """
    ending = table_ending(out)
    export.check()
    with claim_file(out, force=force) as output:
        reading = export.read(files)
        if reading.refusal is not None and not reading.ledger.kept:  # texts that are no classes can be written
            raise AnnotationError(reading.refusal)
        if pseudonyms or key is not None:
            reading, _ = pseudonymise(reading, key)
        table = wide_frame(reading.annotations) if wide else triples_frame(reading.annotations)
        content = encode_table(guard_table(table) if spreadsheet_safe else table, ending)
        written = write_all(output, {} if out is None else {Path(out).name: content})
    summary = {"schema": 1, "written": None if out is None else Path(out).name} | describe_reading(reading)
    return ConversionRun(reading, table, content, summary, written)
