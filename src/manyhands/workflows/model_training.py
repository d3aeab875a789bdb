"""`train`: a classifier from annotations and features, saved as a folder."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from manyhands import registry
from manyhands.annotations import Annotations
from manyhands.classifiers.network_device import device_of
from manyhands.exceptions import AnnotationError, CrowdWarning, ParameterError
from manyhands.io.features.feature_loading import Features, match
from manyhands.io.features.feature_pipeline import FeaturePipeline
from manyhands.io.features.model_folder import FILES, model_files
from manyhands.io.messages import counted
from manyhands.io.overview import describe_reading
from manyhands.io.read.reading import Reading
from manyhands.io.write.json_values import to_json_value
from manyhands.model_selection import compare
from manyhands.workflows.device_option import with_device
from manyhands.workflows.gold_labels import collect_gold
from manyhands.workflows.options import (
    DEFAULT_EXPORT,
    DEFAULT_MATCHING,
    ExportOptions,
    FeatureOptions,
    check_seed,
    require_labels,
    require_workers,
)
from manyhands.workflows.outputs import Written, claim_folder, write_all

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
    standardise: bool = True,
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
    (`manyhands.model_selection.compare`) is trained on all data.

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
    standardise : bool, default=True
        Scale features to mean 0 and standard deviation 1.
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
        _create(name, own)._check_parameters()
    export.check()
    matching.check()
    with claim_folder(out, FILES, force=force) as output:
        reading = export.read(files)
        require_labels(reading)
        require_workers(reading, "there are no workers to learn from")
        found = _same_items(matching, export, files, features).read(features, columns=columns, text=text)
        known = collect_gold(reading, gold, use_gold, found.ids or ())
        data = _prepare(found, reading.annotations, known, standardise=standardise)
        model, ranking = fit_classifier(parameters, data.X, data.annotations, data.gold, random_state)
        written = write_all(output, model_files(model, data.pipeline))
    summary = {"schema": 1, "files": [Path(name).name for name in files]} | describe_reading(reading) | data.counts
    summary |= {"written": list(written.names), "notes": reading.notes | model.notes_} | ranking
    summary |= {"parameters": to_json_value(model.get_params(deep=False)), "n_epochs": len(model.history_)}
    summary["device"] = device_of(model)
    return TrainingRun(reading, model, summary, written)


def check_classifiers(methods: Sequence[str]) -> None:
    """Refuse names that are not those of classifiers, with what to use instead.

    Parameters
    ----------
    methods : sequence of str
        Registry names.

    Raises
    ------
    ParameterError
        If a name is unknown, or that of an aggregator or of a pure representation learner.
    """
    for name in methods:
        if name in registry.names("classifier"):
            continue
        if name in registry.names("aggregator"):
            raise ParameterError(
                f"{name} uses labels alone: use manyhands aggregate, or -m two-stage --set aggregator={name}."
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

    Parameters
    ----------
    parameters : mapping of str to parameters
        Registry names of classifiers with the parameters of each.
    X : array-like or sparse matrix of shape (n_items, ...)
        Features.
    annotations : Annotations
        Labels of the same items.
    gold : mapping of item to class or None, default=None
        Known classes.
    random_state : int, default=0
        Seed of the folds.

    Returns
    -------
    model : CrowdClassifier
        The fitted classifier.
    ranking : dict
        ``method``, its name, and ``methods``, the ranking if there are several.
    """
    known = gold or None
    if len(parameters) == 1:
        name, own = next(iter(parameters.items()))
        return _create(name, own).fit(X, annotations, known), {"method": name}
    estimators = [_create(name, own) for name, own in parameters.items()]
    found = compare(estimators, annotations, X, gold=known, random_state=random_state)
    names = dict(zip(found.names, parameters))
    table = [row | {"method": names[row["method"]]} for row in found.table()]
    return found.best_estimator.fit(X, annotations, known), {"method": names[found.best], "methods": table}


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


def _prepare(found: Features, annotations: Annotations, gold: Mapping[Any, Any], *, standardise: bool) -> _TrainingData:
    """Match features and annotations, and transform the features to numbers."""
    annotations, n_gold_alone = _with_gold_items(annotations, gold, found)
    annotations, rows, counts = _match_items(found, annotations)
    pipeline = FeaturePipeline.learn(rows, standardise=standardise)
    X = pipeline.apply(rows)
    here = set(annotations.item_ids.tolist())
    known = {item: label for item, label in gold.items() if item in here}
    counts |= {
        "n_gold_used": len(known),
        "n_gold_without_labels": n_gold_alone,
        "n_features": list(X.shape[1:]),
        "standardised": pipeline.scale is not None,
        "feature_columns": list(pipeline.columns),
        "text_columns": list(pipeline.text),
        "n_words": 0 if pipeline.tfidf is None else len(pipeline.tfidf.terms),
        "columns_not_used": list(found.left_out),
    }
    return _TrainingData(X, annotations, known, pipeline, counts)


def _with_gold_items(annotations: Annotations, gold: Mapping[Any, Any], found: Features) -> tuple[Annotations, int]:
    """Add the items that have gold and features but are not among the annotations, and return their number."""
    items, rows = set(annotations.item_ids.tolist()), set(found.ids or ())
    alone = [item for item in gold if item not in items and item in rows]
    item_ids = [*annotations.item_ids.tolist(), *alone]
    ids: dict[str, Any] = {"item_ids": item_ids, "worker_ids": annotations.worker_ids, "classes": annotations.classes}
    return Annotations(annotations.item, annotations.worker, annotations.label, **ids, weight=annotations.weight), len(
        alone
    )


def _match_items(found: Features, annotations: Annotations) -> tuple[Annotations, Features, dict[str, Any]]:
    """Return the items that have features, their rows, and how many items and rows were left out."""
    items = [str(item) for item in annotations.item_ids.tolist()]
    kept, rows = match(found, items)
    counts: dict[str, Any] = {
        "n_items_trained": len(kept),
        "n_items_without_features": len(items) - len(kept),
        "n_rows_without_item": len(found) - len(rows),
    }
    if not annotations.n_labels[kept].any():
        raise AnnotationError(f"None of the {len(kept)} items with features in {found.source} has a label.")
    if counts["n_items_without_features"]:
        _warn(f"left out: {counted(counts['n_items_without_features'], 'item')} without features.")
    if counts["n_rows_without_item"]:
        left_out = counted(counts["n_rows_without_item"], "row")
        _warn(f"left out: {left_out} of {found.source} without a label and without gold.")
    if found.ids is None:
        _warn(f"by position: the first row is matched with {items[kept[0]]!r}, the last with {items[kept[-1]]!r}.")
    return annotations[kept], found.take(rows), counts


def _warn(sentence: str) -> None:
    warnings.warn(sentence, CrowdWarning, stacklevel=5)
