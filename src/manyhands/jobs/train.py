"""`train`: a classifier from annotations and features, saved as a folder. `predict`, `evaluate`: what it is worth."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from manyhands import metrics, registry
from manyhands.annotations import Annotations
from manyhands.comparison import compare
from manyhands.exceptions import AnnotationError, CrowdWarning, ParameterError
from manyhands.io.feature_pipeline import FILES, FeaturePipeline, load_folder, model_files
from manyhands.io.features import Features, match
from manyhands.io.messages import counted, shorten
from manyhands.io.overview import describe_reading
from manyhands.io.reading import Reading
from manyhands.io.side_tables import read_truth
from manyhands.io.write.result_files import encode_table
from manyhands.io.write.results import class_names, guard_table, to_json_value
from manyhands.jobs.options import (
    DEFAULT_EXPORT,
    DEFAULT_MATCHING,
    ExportOptions,
    FeatureOptions,
    Written,
    begin_summary,
    check_device,
    check_seed,
    claim_file,
    claim_folder,
    collect_gold,
    require_labels,
    require_workers,
    table_ending,
    with_device,
    write_all,
)
from manyhands.validation import check_known

# ----------------------------------------------------------------------------------------------------
# `predict`: class probabilities of new features by a trained model.


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

    Shapes: returns X (n_rows, ...).
    """
    matching.check()
    table = pipeline.read(features, **matching.as_arguments())
    ids = [str(row) for row in range(len(table))] if table.ids is None else table.ids
    return ids, pipeline.apply(table)


def _tabulate(ids: list[str], classifier: Any, proba: Any) -> pl.DataFrame:
    """Return the table of predictions from probabilities of shape (n_rows, n_classes)."""
    names = class_names(classifier.classes_)
    columns: dict[str, Any] = {
        "item": pl.Series(ids, dtype=pl.String),
        "label": pl.Series([names[k] for k in proba.argmax(axis=1)], dtype=pl.String),
        "confidence": proba.max(axis=1),
    }
    return pl.DataFrame(columns | {f"p_{name}": proba[:, k] for k, name in enumerate(names)})


# ----------------------------------------------------------------------------------------------------
# `evaluate`: the predictions of a trained model compared with ground truth.


@dataclass(frozen=True)
class EvaluationRun:
    """Result of `evaluate`.

    Attributes
    ----------
    metrics : dict of str to float
        ``accuracy``, ``balanced_accuracy``, ``macro_f1``, ``log_loss``, ``brier`` and ``ece`` (expected calibration
        error).
    n_items : int
        Number of items with features and ground truth.
    n_without_features : int
        Number of items with ground truth but without features.
    n_without_truth : int
        Number of rows of features without ground truth.
    """

    metrics: dict[str, float]
    n_items: int
    n_without_features: int
    n_without_truth: int

    def as_dict(self) -> dict[str, Any]:
        """Return counts and metrics as one dictionary."""
        counts = {name: getattr(self, name) for name in ("n_items", "n_without_features", "n_without_truth")}
        return counts | self.metrics


def evaluate(
    model: str | Path,
    features: str | Path,
    truth: str | Path,
    matching: FeatureOptions = DEFAULT_MATCHING,
    *,
    device: str | None = None,
) -> EvaluationRun:
    """Compare a model's predictions with ground truth: accuracy, F1 and calibration of its probabilities.

    Parameters
    ----------
    model : str or Path
        Folder that `train` wrote.
    features : str or Path
        File of features.
    truth : str or Path
        Table of items and their true classes.
    matching : FeatureOptions, default=FeatureOptions()
        How to match rows of features with items of the truth.
    device : str or None, default=None
        Device of torch on which a network predicts; None is the CPU.

    Returns
    -------
    EvaluationRun
        Metrics and counts.

    Raises
    ------
    ParameterError
        If an option is invalid, the folder is not a complete model, or the device cannot be used.
    AlignmentError
        If features and truth have no item in common, or are not of one length where matched by position.
    """
    matching.check()
    if device is not None:
        check_device(device)
    classifier, pipeline = load_folder(Path(model), device)
    ids, X = read_rows(pipeline, features, matching)
    truth_of = read_truth(truth, n_rows=len(ids) if matching.rows_in_order else None)
    items = list(truth_of)
    kept, rows = match(Features(str(features), ids, X), items)
    figures = _metrics(classifier, X[rows], [truth_of[items[at]] for at in kept], truth)
    return EvaluationRun(figures, len(kept), len(items) - len(kept), len(ids) - len(kept))


def _metrics(classifier: Any, X: Any, y: list[str], truth: str | Path) -> dict[str, float]:
    """Return all metrics of the predictions for X, whose true classes are y."""
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


# ----------------------------------------------------------------------------------------------------
# `train`: features and annotations of the same items, a classifier fitted to them, and its folder.

DEFAULT_METHOD = "spee-lfc"
DEFAULT_PARAMETERS: Mapping[str, Any] = {"init": "dawid-skene"}


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """Result of `train`.

    Attributes
    ----------
    reading : Reading
        What was read.
    model : CrowdClassifier
        The fitted classifier.
    summary : dict
        Method, parameters, device, numbers of items and features, and the ranking if several methods were compared.
    written : Written
        Names of the files that were written.
    """

    reading: Reading
    model: Any
    summary: dict[str, Any]
    written: Written


@dataclass(frozen=True, eq=False)
class _TrainingData:
    """Features and annotations of the same items, and what was left out."""

    X: Any
    annotations: Annotations
    gold: dict[Any, Any]
    pipeline: FeaturePipeline
    counts: dict[str, Any]


def train(
    files: Sequence[str],
    features: str | Path,
    out: str | Path,
    export: ExportOptions = DEFAULT_EXPORT,
    matching: FeatureOptions = DEFAULT_MATCHING,
    *,
    methods: Mapping[str, Mapping[str, Any]] | None = None,
    columns: Sequence[str] = (),
    text: Sequence[str] = (),
    standardise: bool | None = None,
    gold: str | Path | None = None,
    use_gold: bool = False,
    device: str | None = None,
    random_state: int = 0,
    force: bool = False,
) -> TrainingRun:
    """Train a classifier on the crowd's labels and features of the items, and save it.

    Rows of features are matched to items by id. Items with gold and features are used even if no worker labelled them;
    items without features, and rows without labels and gold, are left out and counted. With several methods, the one
    with the highest cross-validated log-likelihood of held-out annotations and gold classes
    (`manyhands.compare`) is trained on all data.

    Parameters
    ----------
    files : sequence of str
        The export with the labels.
    features : str or Path
        File of features: .npy, .npz or a table.
    out : str or Path
        Folder for the model.
    export : ExportOptions, default=ExportOptions()
        How to read the labels.
    matching : FeatureOptions, default=FeatureOptions()
        How to match rows of features with items.
    methods : mapping of str to parameters or None, default=None
        Registry names of classifiers with the parameters of each; None is ``spee-lfc`` with
        ``init="dawid-skene"``. A `random_state` that is not given is that of the run.
    columns : sequence of str, default=()
        Numeric columns of a table of features.
    text : sequence of str, default=()
        Text columns, encoded as TF-IDF.
    standardise : bool or None, default=None
        Whether features are scaled to mean 0 and standard deviation 1. None follows what the method expects
        (`registry.expected_features`); of several methods, all have standardised features unless all expect them raw.
    gold : str, Path or None, default=None
        Table of items whose class is known.
    use_gold : bool, default=False
        Use the known answers of the export itself.
    device : str or None, default=None
        Device of torch for the methods that train a network; None is that of their parameters.
    random_state : int, default=0
        Seed.
    force : bool, default=False
        Replace a model that exists.

    Returns
    -------
    TrainingRun
        The fitted model and a summary.

    Raises
    ------
    ParameterError
        If an option is invalid.
    AnnotationError
        If the export has no labels, no worker ids, or none of its labelled items has features.
    AlignmentError
        If rows and items cannot be matched.
    """
    chosen = methods or {DEFAULT_METHOD: DEFAULT_PARAMETERS}
    check_classifiers(list(chosen))
    check_seed(random_state)
    parameters = {name: _seeded(name, random_state) | own for name, own in with_device(chosen, device).items()}
    for name, own in parameters.items():
        _create(name, own).check_parameters()
    export.check()
    matching.check()
    with claim_folder(out, FILES, force=force) as output:
        reading = export.read(files)
        require_labels(reading)
        require_workers(reading, "there are no workers to learn from")
        table = _same_items(matching, export, files, features).read(features, columns=columns, text=text)
        gold_of_items = collect_gold(reading, gold, use_gold, table.ids or ())
        scaled = _expect_standardised(list(parameters)) if standardise is None else standardise
        data = _prepare(table, reading.annotations, gold_of_items, standardise=scaled)
        model, ranking = fit_classifier(parameters, data.X, data.annotations, data.gold, random_state)
        written = write_all(output, model_files(model, data.pipeline))
    summary = begin_summary([Path(name).name for name in files]) | describe_reading(reading) | data.counts
    summary |= {"written": list(written.names), "notes": reading.notes | model.notes_} | ranking
    summary |= {"parameters": to_json_value(model.get_params(deep=False)), "n_epochs": len(model.history_)}
    summary |= {"device": _device_of(model), "expected_features": registry.expected_features(summary["method"])}
    return TrainingRun(reading, model, summary, written)


def _expect_standardised(methods: Sequence[str]) -> bool:
    """Return whether features are standardised: methods that are compared have the same."""
    return any(registry.expected_features(name) == "standardised" for name in methods)


def _device_of(model: Any) -> str | None:
    """Return the device of the network of a fitted method."""
    if not hasattr(model.module_, "parameters"):
        return None
    return next((str(parameter.device) for parameter in model.module_.parameters()), None)


def check_classifiers(methods: Sequence[str]) -> None:
    """Refuse names that are not those of classifiers, with what to use instead."""
    for name in methods:
        if name in registry.names("classifier"):
            continue
        if name in registry.names("aggregator"):
            raise ParameterError(
                f"{name} uses labels alone: use manyhands aggregate, or two-stage with {name} as its aggregator."
            )
        if name in registry.names("representation"):
            raise ParameterError(
                f"{name} learns a representation and predicts no labels: use it in Python, in a Pipeline before a "
                f"classifier."
            )
        registry.check_name(name, "classifier")


def fit_classifier(
    parameters: Mapping[str, Mapping[str, Any]],
    X: Any,
    annotations: Annotations,
    gold: Mapping[Any, Any] | None = None,
    random_state: int = 0,
) -> tuple[Any, dict[str, Any]]:
    """Fit one method, or the best of several by cross-validation.

    Shapes: X (n_items, ...).
    """
    gold_or_none = gold or None
    if len(parameters) == 1:
        name, own = next(iter(parameters.items()))
        return _create(name, own).fit(X, annotations, gold_or_none), {"method": name}
    estimators = [_create(name, own) for name, own in parameters.items()]
    comparison = compare(estimators, annotations, X, gold=gold_or_none, random_state=random_state)
    names = dict(zip(comparison.names, parameters))
    table = [row | {"method": names[row["method"]]} for row in comparison.table()]
    return comparison.best_estimator.fit(X, annotations, gold_or_none), {
        "method": names[comparison.best],
        "methods": table,
    }


def _same_items(
    matching: FeatureOptions, export: ExportOptions, files: Sequence[str], features: str | Path
) -> FeatureOptions:
    """Return how to match: if the features are in the export itself, its items are named in the same way."""
    same = any(Path(name).resolve() == Path(features).resolve() for name in files)
    return replace(matching, id_column=export.item) if same and matching.id_column is None else matching


def _seeded(method: str, random_state: int) -> dict[str, Any]:
    """Return the seed as a parameter, for methods that have one."""
    return {"random_state": random_state} if "random_state" in registry.create(method).get_params(deep=False) else {}


def _create(method: str, parameters: Mapping[str, Any]) -> Any:
    """Return an unfitted classifier; ``group__name`` sets a parameter of a group of options."""
    return registry.create(method).set_params(**parameters)


def _prepare(
    features: Features, annotations: Annotations, gold: Mapping[Any, Any], *, standardise: bool
) -> _TrainingData:
    """Match features and annotations, and transform the features to numbers."""
    annotations, n_gold_alone = _with_gold_items(annotations, gold, features)
    annotations, rows, counts = _match_items(features, annotations)
    pipeline = FeaturePipeline.learn(rows, standardise=standardise)
    X = pipeline.apply(rows)
    here = set(annotations.item_ids.tolist())
    gold_of_items = {item: label for item, label in gold.items() if item in here}
    counts |= {
        "n_gold_used": len(gold_of_items),
        "n_gold_without_labels": n_gold_alone,
        "n_features": list(X.shape[1:]),
        "standardised": pipeline.scale is not None,
        "feature_columns": list(pipeline.columns),
        "text_columns": list(pipeline.text),
        "n_words": 0 if pipeline.tfidf is None else len(pipeline.tfidf.terms),
        "columns_not_used": list(features.left_out),
    }
    return _TrainingData(X, annotations, gold_of_items, pipeline, counts)


def _with_gold_items(annotations: Annotations, gold: Mapping[Any, Any], features: Features) -> tuple[Annotations, int]:
    """Add the items that have gold and features but are not among the annotations, and return their number."""
    items, rows = set(annotations.item_ids.tolist()), set(features.ids or ())
    alone = [item for item in gold if item not in items and item in rows]
    item_ids = [*annotations.item_ids.tolist(), *alone]
    ids: dict[str, Any] = {"item_ids": item_ids, "worker_ids": annotations.worker_ids, "classes": annotations.classes}
    return Annotations(annotations.item, annotations.worker, annotations.label, **ids, weight=annotations.weight), len(
        alone
    )


def _match_items(features: Features, annotations: Annotations) -> tuple[Annotations, Features, dict[str, Any]]:
    """Return the items that have features, their rows, and how many items and rows were left out."""
    items = [str(item) for item in annotations.item_ids.tolist()]
    kept, rows = match(features, items)
    counts: dict[str, Any] = {
        "n_items_trained": len(kept),
        "n_items_without_features": len(items) - len(kept),
        "n_rows_without_item": len(features) - len(rows),
    }
    if not annotations.n_labels[kept].any():
        raise AnnotationError(f"None of the {len(kept)} items with features in {features.source} has a label.")
    if counts["n_items_without_features"]:
        _warn(f"left out: {counted(counts['n_items_without_features'], 'item')} without features.")
    if counts["n_rows_without_item"]:
        left_out = counted(counts["n_rows_without_item"], "row")
        _warn(f"left out: {left_out} of {features.source} without a label and without gold.")
    if features.ids is None:
        _warn(f"by position: the first row is matched with {items[kept[0]]!r}, the last with {items[kept[-1]]!r}.")
    return annotations[kept], features.take(rows), counts


def _warn(sentence: str) -> None:
    warnings.warn(sentence, CrowdWarning, stacklevel=5)
