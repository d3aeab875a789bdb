"""`manyhands predict`: what a trained model says of features."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from manyhands.cli.options import AsJson, Force, Quiet, SpreadsheetSafe
from manyhands.cli.output_targets import claimed, print_data, print_json, table_target, write_output
from manyhands.cli.show import say
from manyhands.cli.training_options import FeatureFile, FeatureIds, IdColumn, Model, RowsInOrder
from manyhands.io.features.feature_pipeline import FeaturePipeline
from manyhands.io.features.model_folder import load_folder
from manyhands.io.messages import counted
from manyhands.io.write.results import class_names
from manyhands.io.write.spreadsheet import guard_table
from manyhands.io.write.triples import TARGETS, encode_table


def predict(
    model: Model,
    features: FeatureFile,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help=f"The table: {', '.join(TARGETS)}.")
    ] = None,
    id_column: IdColumn = None,
    feature_ids: FeatureIds = None,
    rows_in_order: RowsInOrder = False,
    spreadsheet_safe: SpreadsheetSafe = False,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Predict the class of every row of features, with its probability.

    Without -o the table goes to stdout as CSV.

    \b
    Examples:
      manyhands predict model/ --features X_new.npz -o predictions.csv
      manyhands predict model/ --features texts.csv --id-column comment
    """
    with claimed(table_target(out), force) as output:
        classifier, recipe = load_folder(model)
        ids, X = rows_of(recipe, features, id_column, feature_ids, rows_in_order)
        table = _table(ids, classifier, classifier.predict_proba(X))
        ending = ".csv" if out is None else out.suffix.lower()
        content = encode_table(guard_table(table) if spreadsheet_safe else table, ending)
        if output is not None and out is not None:
            write_output(output, {out.name: content})
    counts = {str(label): n for label, n in table["label"].value_counts().sort("label").iter_rows()}
    if as_json:
        written = None if out is None else out.name
        print_json({"schema": 1, "n_rows": len(table), "labels": counts, "written": written})
    elif out is None:
        print_data(content)
    if out is not None and not quiet and not as_json:
        said = ", ".join(f"{n} {label}" for label, n in counts.items())
        say(f"Written: {out}, {counted(len(table), 'row')} ({said})")


def rows_of(
    recipe: FeaturePipeline, features: Path, id_column: str | None, feature_ids: Path | None, rows_in_order: bool
) -> tuple[list[str], Any]:
    """The ids of a file's rows and its features, made as in training; in order, an id is the number of a row."""
    found = recipe.read(features, id_column=id_column, ids_file=feature_ids, rows_in_order=rows_in_order)
    ids = [str(row) for row in range(len(found))] if found.ids is None else found.ids
    return ids, recipe.apply(found)


def _table(ids: list[str], classifier: Any, proba: Any) -> pl.DataFrame:
    names = class_names(classifier.classes_)
    columns: dict[str, Any] = {
        "item": pl.Series(ids, dtype=pl.String),
        "label": pl.Series([names[k] for k in proba.argmax(axis=1)], dtype=pl.String),
        "confidence": proba.max(axis=1),
    }
    return pl.DataFrame(columns | {f"p_{name}": proba[:, k] for k, name in enumerate(names)})
