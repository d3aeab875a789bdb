"""`manyhands convert`: an export of one tool as a plain table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from manyhands.cli.options import AsJson, Force, Key, Pseudonyms, Quiet, SpreadsheetSafe, reads
from manyhands.cli.show import print_json, say, show_ledger
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.overview import describe_reading
from manyhands.io.privacy import pseudonymise
from manyhands.io.reading import Reading
from manyhands.io.spreadsheet import guard_table
from manyhands.io.triples import TARGETS, encode_table, triples_frame, wide_frame
from manyhands.writing import write_files


@reads
def convert(
    files: list[str],
    reading: Reading,
    out: Annotated[Path | None, typer.Option("-o", "--out", help=f"The file: {', '.join(TARGETS)}.")] = None,
    wide: Annotated[bool, typer.Option("--wide", help="One row per item, one column per worker.")] = False,
    pseudonyms: Pseudonyms = False,
    key: Key = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Turn any export into a plain table of item, worker and label, the form that every tool reads.

    Judgements that do not count (drafts, skips, repeats, ...) are left out; an item without any label is a row
    without worker and label. Without -o the table goes to stdout as CSV.

    \b
    Examples:
      manyhands convert export.json --question sentiment -o ratings.csv
      manyhands convert doccano.zip --wide -o matrix.csv
    """
    if reading.refusal is not None:
        raise AnnotationError(reading.refusal)
    ending = ".csv" if out is None else out.suffix.lower()
    if ending not in TARGETS:
        raise ParameterError(f"{out} ends in {ending!r}. Tables are written as {', '.join(TARGETS)}.")
    if pseudonyms or key is not None:
        reading, _ = pseudonymise(reading, key)
    table = wide_frame(reading.annotations) if wide else triples_frame(reading.annotations)
    content = encode_table(guard_table(table) if spreadsheet_safe else table, ending)
    if out is not None:
        write_files(out.parent, {out.name: content}, force=force)
    if as_json:
        print_json({"schema": 1, "written": None if out is None else out.name} | describe_reading(reading))
    elif out is None:
        sys.stdout.write(content.decode())
    if not quiet and not as_json:
        show_ledger(reading)
        if out is not None:
            say(f"Written: {out}, {len(table)} rows")
