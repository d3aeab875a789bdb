"""`manyhands convert`: an export of any tool as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manyhands import workflows
from manyhands.cli.options import AsJson, Force, Key, Pseudonyms, Quiet, SpreadsheetSafe, takes_export
from manyhands.cli.printing import print_data, print_json, require_stdout
from manyhands.cli.show import echo, show_ledger
from manyhands.io.write.triples import TARGETS
from manyhands.workflows import ExportOptions


@takes_export
def convert(
    files: list[str],
    export: ExportOptions,
    out: Annotated[Path | None, typer.Option("-o", "--out", help=f"File to write: {', '.join(TARGETS)}.")] = None,
    wide: Annotated[bool, typer.Option("--wide", help="One row per item, one column per worker.")] = False,
    pseudonyms: Pseudonyms = False,
    key: Key = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    r"""Convert any export to a table of item, worker and label, which every tool can read.

    Judgements that do not count (drafts, skips, repeats, ...) are left out; an item without any label is a row
    without worker and label. Without -o the table goes to stdout as CSV.

    \b
    Examples:
      manyhands convert export.json --question sentiment -o ratings.csv
      manyhands convert doccano.zip --wide -o matrix.csv
    """
    if out is None:
        require_stdout()
    run = workflows.convert(
        files,
        export,
        wide=wide,
        pseudonyms=pseudonyms,
        key=key,
        spreadsheet_safe=spreadsheet_safe,
        out=out,
        force=force,
    )
    if as_json:
        print_json(run.summary)
    elif out is None:
        print_data(run.content)
    if not quiet and not as_json:
        show_ledger(run.reading)
        if out is not None:
            echo(f"Written: {out}, {len(run.table)} rows")
