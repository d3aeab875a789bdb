"""`manyhands evaluate`: a trained model compared with ground truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manyhands import workflows
from manyhands.cli.options import AsJson, OnDevice, Quiet
from manyhands.cli.printing import print_data, print_json
from manyhands.cli.show import echo
from manyhands.cli.training_options import FeatureFile, FeatureIds, IdColumn, Model, RowsInOrder
from manyhands.io.messages import counted
from manyhands.workflows import FeatureOptions


def evaluate(
    model: Model,
    features: FeatureFile,
    truth: Annotated[Path, typer.Option(metavar="FILE", help="Table of items and their true classes: item, label.")],
    id_column: IdColumn = None,
    feature_ids: FeatureIds = None,
    rows_in_order: RowsInOrder = False,
    device: OnDevice = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    r"""Compare a model's predictions with ground truth: accuracy, F1 and calibration.

    The metrics go to stdout, one per line. Truth and features are matched by id.

    \b
    Examples:
      manyhands evaluate model/ --features X_test.npz --truth truth.csv
      manyhands evaluate model/ --features X_test.npy --truth truth.csv --rows-in-order --json
    """
    matching = FeatureOptions(id_column, feature_ids, rows_in_order)
    run = workflows.evaluate(model, features, truth, matching, device=device)
    if as_json:
        print_json({"schema": 1} | run.as_dict())
        return
    print_data("".join(f"{name} {value:.4f}\n" for name, value in run.metrics.items()))
    if not quiet:
        echo(
            f"{counted(run.n_items, 'item')} compared; {run.n_without_features} with truth have no features, "
            f"{run.n_without_truth} with features no truth"
        )
