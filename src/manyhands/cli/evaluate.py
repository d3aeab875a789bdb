"""`manyhands evaluate`: a trained model beside the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from manyhands import metrics
from manyhands.cli.options import AsJson, Quiet
from manyhands.cli.output_targets import print_data, print_json
from manyhands.cli.predict import rows_of
from manyhands.cli.show import say
from manyhands.cli.training_options import FeatureFile, FeatureIds, IdColumn, Model, RowsInOrder
from manyhands.io.features.loading import Features, match
from manyhands.io.features.model_folder import load_folder
from manyhands.io.messages import counted, shorten
from manyhands.io.read.truth import read_truth
from manyhands.validation import check_known


def evaluate(
    model: Model,
    features: FeatureFile,
    truth: Annotated[Path, typer.Option(metavar="FILE", help="A table of items and their classes: item, label.")],
    id_column: IdColumn = None,
    feature_ids: FeatureIds = None,
    rows_in_order: RowsInOrder = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Lay a model's predictions beside the truth: accuracy, F1 and how honest its probabilities are.

    The figures go to stdout, one a line. Truth and features are matched by id.

    \b
    Examples:
      manyhands evaluate model/ --features X_test.npz --truth truth.csv
      manyhands evaluate model/ --features X_test.npy --truth truth.csv --rows-in-order --json
    """
    classifier, recipe = load_folder(model)
    ids, X = rows_of(recipe, features, id_column, feature_ids, rows_in_order)
    known = read_truth(truth, n_rows=len(ids) if rows_in_order else None)
    items = list(known)
    kept, rows = match(Features(str(features), ids, X), items)
    figures = _figures(classifier, X[rows], [known[items[at]] for at in kept], truth)
    told = {
        "n_items": len(kept),
        "n_without_features": len(items) - len(kept),
        "n_without_truth": len(ids) - len(kept),
    }
    if as_json:
        print_json({"schema": 1} | told | figures)
        return
    print_data("".join(f"{name} {value:.4f}\n" for name, value in figures.items()))
    if not quiet:
        say(
            f"{counted(told['n_items'], 'item')} compared; {told['n_without_features']} with truth have no features, "
            f"{told['n_without_truth']} with features no truth"
        )


def _figures(classifier: Any, X: Any, y: list[str], truth: Path) -> dict[str, float]:
    """What the classifier says of these rows, beside what is true."""
    classes = [str(value) for value in classifier.classes_.tolist()]
    remedy = f"The model knows {', '.join(map(shorten, classes[:5]))}; train it with labels of all classes."
    check_known(sorted(set(y)), classes, f"Classes of {truth}", remedy)
    proba = classifier.predict_proba(X)
    label = np.array(classes, object)[proba.argmax(axis=1)]
    return {
        "accuracy": metrics.accuracy(y, label),
        "balanced_accuracy": metrics.balanced_accuracy(y, label),
        "macro_f1": metrics.macro_f1(y, label),
        "log_loss": metrics.log_loss(y, proba, classes),
        "brier": metrics.brier(y, proba, classes),
        "ece": metrics.ece(y, proba, classes),
    }
