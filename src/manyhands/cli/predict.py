"""`manyhands predict`: predictions of a trained model for new features."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manyhands import workflows
from manyhands.cli.options import AsJson, Force, OnDevice, Quiet, SpreadsheetSafe
from manyhands.cli.printing import print_data, print_json, require_stdout
from manyhands.cli.show import echo
from manyhands.cli.training_options import FeatureFile, FeatureIds, IdColumn, Model, RowsInOrder
from manyhands.io.messages import counted
from manyhands.io.write.triples import TARGETS
from manyhands.workflows import FeatureOptions

_Out = Annotated[Path | None, typer.Option("-o", "--out", metavar="FILE", help=f"File to write: {', '.join(TARGETS)}.")]


def predict(
    model: Model,
    features: FeatureFile,
    out: _Out = None,
    id_column: IdColumn = None,
    feature_ids: FeatureIds = None,
    rows_in_order: RowsInOrder = False,
    device: OnDevice = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    r"""Predict the class of every row of features, with its probability.

    Without -o the table goes to stdout as CSV.

    \b
    Examples:
      manyhands predict model/ --features X_new.npz -o predictions.csv
      manyhands predict model/ --features texts.csv --id-column comment
    """
    if out is None:
        require_stdout()
    matching = FeatureOptions(id_column, feature_ids, rows_in_order)
    run = workflows.predict(
        model, features, matching, device=device, spreadsheet_safe=spreadsheet_safe, out=out, force=force
    )
    if as_json:
        written = None if out is None else out.name
        print_json({"schema": 1, "n_rows": len(run.table), "labels": run.counts, "written": written})
    elif out is None:
        print_data(run.content)
    if out is not None and not quiet and not as_json:
        counts = ", ".join(f"{n} {label}" for label, n in run.counts.items())
        echo(f"Written: {out}, {counted(len(run.table), 'row')} ({counts})")
