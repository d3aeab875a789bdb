"""What a fitted aggregator has to say, as tables and as one summary."""

from __future__ import annotations

import io
import math
from collections import Counter
from typing import Any

import numpy as np
import polars as pl

from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError
from manyhands.io.names import shorten

_DECIMALS = 6  # of a probability in a file: finer than it can be known, coarser than any rounding between machines


def label_table(model: Aggregator, annotations: Annotations) -> pl.DataFrame:
    """One row per item: label, confidence, n_labels, flags, and a column p_<class> for each class."""
    posterior = model.posterior_
    columns = {
        "item": _text(model.item_ids_),
        "label": pl.Series(
            [None if label is None else str(label) for label in model.labels_.tolist()], dtype=pl.String
        ),
        "confidence": posterior.max(axis=1),
        "n_labels": annotations.n_labels,
        "flags": _flags(model),
    }
    columns |= {f"p_{name}": posterior[:, k] for k, name in enumerate(_class_names(model))}
    return pl.DataFrame(columns)


def worker_table(model: Aggregator, annotations: Annotations) -> pl.DataFrame:
    """One row per worker: n_labels, accuracy, and where the model knows confusions, recall_<class> for each class."""
    names = _class_names(model)
    columns: dict[str, Any] = {
        "worker": _text(model.worker_ids_),
        "n_labels": np.bincount(annotations.worker, minlength=annotations.n_workers),
        "accuracy": model.worker_accuracy_,
    }
    confusion = getattr(model, "confusion_", None)
    if confusion is not None:
        columns |= {f"recall_{name}": confusion[:, k, k] for k, name in enumerate(names)}
    return pl.DataFrame(columns)


def summary(model: Aggregator, annotations: Annotations, method: str) -> dict[str, Any]:
    """Counts, shares and warnings of one run; nothing in it depends on the clock or the machine."""
    confidence = model.posterior_.max(axis=1)[~model.unlabelled_]
    _class_names(model)  # refuses what would be counted together
    labels = Counter(str(label) for label in model.labels_[~model.unlabelled_].tolist())
    told = {
        "method": method,
        "parameters": model.get_params(),
        "n_items": annotations.n_items,
        "n_workers": annotations.n_workers,
        "n_classes": annotations.n_classes,
        "n_annotations": annotations.n_annotations,
        "labels_per_item": round(annotations.n_annotations / max(annotations.n_items, 1), 3),
        "n_components": count_components(annotations),
        "n_unlabelled": int(model.unlabelled_.sum()),
        "n_tied": int(model.tied_.sum()),
        "mean_confidence": round(float(confidence.mean()), _DECIMALS),
        "share_above_0.9": round(float((confidence >= 0.9).mean()), _DECIMALS),
        "labels": dict(sorted(labels.items())),
        "n_iter": model.n_iter_,
        "converged": model.converged_,
        "notes": model.notes_,
    }
    return {name: _plain(value) for name, value in told.items()}


def count_components(annotations: Annotations) -> int:
    """How many separate crowds there are: groups of workers and items that no label connects to one another."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n_items, n_workers = annotations.n_items, annotations.n_workers
    edges = np.ones(annotations.n_annotations, np.int8)
    ends = (annotations.item, annotations.worker + np.int64(n_items))
    graph = coo_array((edges, ends), shape=(n_items + n_workers, n_items + n_workers))
    touched = np.zeros(n_items + n_workers, bool)
    touched[ends[0]] = touched[ends[1]] = True
    _, component = connected_components(graph, directed=False)
    return len(np.unique(component[touched]))


def to_csv(table: pl.DataFrame) -> bytes:
    """A table as CSV; text cells are quoted where they must be and otherwise stay byte for byte."""
    buffer = io.BytesIO()
    table.write_csv(buffer, float_precision=_DECIMALS)
    return buffer.getvalue()


def _flags(model: Aggregator) -> pl.Series:
    """The words for each item, joined by ";"; nothing where there is nothing to say."""
    words = {"tie": model.tied_, "unlabelled": model.unlabelled_}
    said = (";".join(word for word, on in zip(words, row) if on) for row in zip(*words.values()))
    return pl.Series([flags or None for flags in said], dtype=pl.String)


def _text(ids: np.ndarray[Any, Any]) -> pl.Series:
    return pl.Series([str(value) for value in ids.tolist()], dtype=pl.String)


def _class_names(model: Aggregator) -> list[str]:
    """The classes as text, each of which must be another."""
    seen: dict[str, Any] = {}
    for value in model.classes_.tolist():
        other = seen.setdefault(str(value), value)
        if other is not value:
            pair = f"{shorten(repr(other))} and {shorten(repr(value))}"
            raise AnnotationError(f"The classes {pair} print alike, so a table cannot tell them apart. Rename one.")
    return list(seen)


def _plain(value: Any) -> Any:
    """A value as JSON can hold it: what is not a number is null, an infinity is a word."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if isinstance(value, dict):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value if value is None or isinstance(value, str | int | float) else repr(value)
