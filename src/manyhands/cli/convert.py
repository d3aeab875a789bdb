"""`manyhands convert`: an export of one tool as a plain table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manyhands.cli.options import AsJson, Force, Key, Pseudonyms, Quiet, SpreadsheetSafe, reads_into
from manyhands.cli.output_targets import print_data, print_json, table_target, write_output
from manyhands.cli.show import say, show_ledger
from manyhands.exceptions import AnnotationError
from manyhands.io.overview import describe_reading
from manyhands.io.read.reading import Reading
from manyhands.io.write.pseudonyms import pseudonymise
from manyhands.io.write.spreadsheet import guard_table
from manyhands.io.write.triples import TARGETS, encode_table, triples_frame, wide_frame
from manyhands.writing import Output


@reads_into(lambda given: table_target(given["out"]))
def convert(
    files: list[str],
    reading: Reading,
    output: Output | None,
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
    if pseudonyms or key is not None:
        reading, _ = pseudonymise(reading, key)
    table = wide_frame(reading.annotations) if wide else triples_frame(reading.annotations)
    content = encode_table(guard_table(table) if spreadsheet_safe else table, ending)
    if output is not None and out is not None:
        write_output(output, {out.name: content})
    if as_json:
        print_json({"schema": 1, "written": None if out is None else out.name} | describe_reading(reading))
    elif out is None:
        print_data(content)
    if not quiet and not as_json:
        show_ledger(reading)
        if out is not None:
            say(f"Written: {out}, {len(table)} rows")
