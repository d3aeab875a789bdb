"""`manyhands convert`: an export of one tool as a plain table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from manyhands.cli.options import Force, Quiet, reads
from manyhands.cli.show import say, show_ledger
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.privacy import pseudonymise
from manyhands.io.reading import Reading
from manyhands.io.triples import TARGETS, encode_table, triples_frame, wide_frame
from manyhands.writing import write_files


@reads
def convert(
    files: list[str],
    reading: Reading,
    out: Annotated[Path | None, typer.Option("-o", "--out", help=f"The file: {', '.join(TARGETS)}.")] = None,
    wide: Annotated[bool, typer.Option("--wide", help="One row per item, one column per worker.")] = False,
    pseudonyms: Annotated[bool, typer.Option("--pseudonymise", help="Replace worker ids.")] = False,
    key: Annotated[Path | None, typer.Option(help="A secret file that keeps pseudonyms alike in all runs.")] = None,
    force: Force = False,
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
    reading = pseudonymise(reading, key) if pseudonyms or key is not None else reading
    table = wide_frame(reading.annotations) if wide else triples_frame(reading.annotations)
    content = encode_table(table, ending)
    if out is None:
        sys.stdout.write(content.decode())
    else:
        write_files(out.parent, {out.name: content}, force=force)
    if not quiet:
        show_ledger(reading)
        if out is not None:
            say(f"Written: {out}, {len(table)} rows")
