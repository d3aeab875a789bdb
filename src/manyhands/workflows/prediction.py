"""`predict`: class probabilities of new features by a trained model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from manyhands.io.features.feature_pipeline import FeaturePipeline
from manyhands.io.features.model_folder import load_folder
from manyhands.io.write.results import class_names
from manyhands.io.write.spreadsheet import guard_table
from manyhands.io.write.triples import encode_table
from manyhands.workflows.device_option import check_device
from manyhands.workflows.options import DEFAULT_MATCHING, FeatureOptions
from manyhands.workflows.outputs import Written, claim_file, table_ending, write_all


@dataclass(frozen=True, eq=False)
class PredictionRun:
    """Result of `predict`.

    Attributes
    ----------
    table : polars.DataFrame
        Columns ``item``, ``label``, ``confidence`` (the highest probability) and ``p_<class>`` for each class.
    content : bytes
        The table as a file.
    counts : dict of str to int
        Number of rows with each predicted label.
    written : Written
        Name of the file that was written.
    """

    table: pl.DataFrame
    content: bytes
    counts: dict[str, int]
    written: Written


def predict(
    model: str | Path,
    features: str | Path,
    matching: FeatureOptions = DEFAULT_MATCHING,
    *,
    device: str | None = None,
    spreadsheet_safe: bool = False,
    out: str | Path | None = None,
    force: bool = False,
) -> PredictionRun:
    """Predict the class of every row of features, with its probability.

    Parameters
    ----------
    model : str or Path
        Folder that `train` wrote.
    features : str or Path
        File of features, of the same columns as in training.
    matching : FeatureOptions, default=FeatureOptions()
        How to read item ids.
    device : str or None, default=None
        Device of torch on which a network predicts; None is the CPU.
    spreadsheet_safe : bool, default=False
        Prevent spreadsheet programs from running cells as formulas.
    out : str, Path or None, default=None
        File to write, whose ending determines the format; None gives CSV and writes nothing.
    force : bool, default=False
        Replace a file that exists.

    Returns
    -------
    PredictionRun
        The table of predictions.

    Raises
    ------
    ParameterError
        If an option is invalid, the folder is not a complete model, or the device cannot be used.
    AlignmentError
        If the features are not of the form that the model was trained with.
    """
    ending = table_ending(out)
    matching.check()
    if device is not None:
        check_device(device)
    with claim_file(out, force=force) as output:
        classifier, pipeline = load_folder(Path(model), device)
        ids, X = read_rows(pipeline, features, matching)
        table = _tabulate(ids, classifier, classifier.predict_proba(X))
        content = encode_table(guard_table(table) if spreadsheet_safe else table, ending)
        written = write_all(output, {} if out is None else {Path(out).name: content})
    counts = {str(label): n for label, n in table["label"].value_counts().sort("label").iter_rows()}
    return PredictionRun(table, content, counts, written)


def read_rows(pipeline: FeaturePipeline, features: str | Path, matching: FeatureOptions) -> tuple[list[str], Any]:
    """Read features and transform them as in training.

    Parameters
    ----------
    pipeline : FeaturePipeline
        The transformation of the training.
    features : str or Path
        File of features.
    matching : FeatureOptions
        How to read item ids.

    Returns
    -------
    ids : list of str
        Id of each row; by position, its number from 0.
    X : ndarray or sparse matrix of shape (n_rows, ...)
        Transformed features.
    """
    matching.check()
    found = pipeline.read(features, **matching.as_arguments())
    ids = [str(row) for row in range(len(found))] if found.ids is None else found.ids
    return ids, pipeline.apply(found)


def _tabulate(ids: list[str], classifier: Any, proba: Any) -> pl.DataFrame:
    """Return the table of predictions from probabilities of shape (n_rows, n_classes)."""
    names = class_names(classifier.classes_)
    columns: dict[str, Any] = {
        "item": pl.Series(ids, dtype=pl.String),
        "label": pl.Series([names[k] for k in proba.argmax(axis=1)], dtype=pl.String),
        "confidence": proba.max(axis=1),
    }
    return pl.DataFrame(columns | {f"p_{name}": proba[:, k] for k, name in enumerate(names)})
