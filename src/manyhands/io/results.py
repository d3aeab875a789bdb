"""What a fitted aggregator has to say, as data frames and as one summary."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

import numpy as np
import polars as pl

from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError, MissingExtraError, ParameterError
from manyhands.io.names import shorten
from manyhands.io.plain import as_plain
from manyhands.scorecards import Scorecards, WorkerCard, score_workers

_DECIMALS = 6  # of a probability in a file: finer than it can be known, coarser than any rounding between machines


def label_frame(model: Aggregator, library: str = "polars") -> Any:
    """One row per item: label, confidence, n_labels, flags, and a column p_<class> for each class.

    `library="pandas"` gives a pandas frame with the items as its index.
    """
    posterior = model.posterior_
    columns = {
        "item": _text(model.item_ids_),
        "label": _labels(model),
        "confidence": posterior.max(axis=1),
        "n_labels": model.annotations_.n_labels,
        "flags": _flags(model),
    }
    return _in_library(pl.DataFrame(columns | _probabilities(model)), "item", library)


def worker_frame(model: Aggregator, library: str = "polars") -> Any:
    """One row per worker: the scorecard (docs/scorecards.md) and, where the model knows confusions, recall_<class>."""
    cards = worker_cards(model)
    names = class_names(model.classes_)
    columns: dict[str, Any] = {
        "worker": _text(model.worker_ids_),
        "n_labels": cards.n_labels,
        "n_checked": cards.n_checked,
        "accuracy": cards.accuracy,
        "accuracy_low": cards.accuracy_low,
        "accuracy_high": cards.accuracy_high,
        "agreement": pl.Series(cards.agreement).fill_nan(None),
        "bias_class": pl.Series([None if k < 0 else names[k] for k in cards.bias_class], dtype=pl.String),
        "bias": pl.Series([b if k >= 0 else None for k, b in zip(cards.bias_class, cards.bias)], dtype=pl.Float64),
        "confusions": pl.Series([_confusions(card) for card in cards], dtype=pl.String),
        "flags": pl.Series([";".join(flags) or None for flags in cards.flags], dtype=pl.String),
        "reasons": pl.Series(["; ".join(reasons) or None for reasons in cards.reasons], dtype=pl.String),
    }
    confusion = getattr(model, "confusion_", None)
    if confusion is not None:
        columns |= {f"recall_{name}": confusion[:, k, k] for k, name in enumerate(names)}
    return _in_library(pl.DataFrame(columns), "worker", library)


def worker_cards(model: Aggregator) -> Scorecards:
    """The scorecards of a fitted model's workers."""
    return score_workers(
        model.annotations_,
        model.posterior_,
        confusion=getattr(model, "confusion_", None),
        power=getattr(model, "power_", 1.0),
        one_voice=getattr(model, "one_voice_", None),
        gold=model._gold or None,
    )


def training_frame(model: Aggregator, *, soft: bool = False, library: str = "polars") -> Any:
    """Items with a label, ready for any classifier that takes `sample_weight`: item, label, weight.

    Hard labels weigh what the model is sure of. With `soft`, an item comes once for every class, weighed by its
    probability, which trains on the whole distribution; classes of probability 0 are left out.
    """
    model.annotations_  # noqa: B018  # says so where the model is not fitted
    labelled = ~model.unlabelled_
    posterior = model.posterior_[labelled]
    items = np.array([str(value) for value in model.item_ids_.tolist()], object)[labelled]
    if not soft:
        labels = _labels(model).filter(pl.Series(labelled))
        table = pl.DataFrame({"item": items.tolist(), "label": labels, "weight": posterior.max(axis=1)})
        return _in_library(table, "item", library)
    row, code = np.nonzero(posterior)
    names = np.array(class_names(model.classes_), object)
    weighed = {"item": items[row].tolist(), "label": names[code].tolist(), "weight": posterior[row, code]}
    return _in_library(pl.DataFrame(weighed), "item", library)


def summary(model: Aggregator, method: str) -> dict[str, Any]:
    """Counts, shares and warnings of one run; nothing in it depends on the clock or the machine."""
    annotations = model.annotations_
    confidence = model.posterior_.max(axis=1)[~model.unlabelled_]
    class_names(model.classes_)  # refuses what would be counted together
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
        "mean_confidence": round(float(confidence.mean()), _DECIMALS) if len(confidence) else None,
        "share_above_0.9": round(float((confidence >= 0.9).mean()), _DECIMALS) if len(confidence) else None,
        "labels": dict(sorted(labels.items())),
        "n_iter": model.n_iter_,
        "converged": model.converged_,
        "notes": model.notes_,
    }
    return {name: as_plain(value) for name, value in told.items()}


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


def class_names(classes: np.ndarray[Any, Any]) -> list[str]:
    """The classes as text, each of which must be another."""
    seen: dict[str, Any] = {}
    for value in classes.tolist():
        other = seen.setdefault(str(value), value)
        if other is not value:
            pair = f"{shorten(repr(other))} and {shorten(repr(value))}"
            raise AnnotationError(f"The classes {pair} print alike, so a table cannot tell them apart. Rename one.")
    return list(seen)


def _confusions(card: WorkerCard) -> str | None:
    """The confusions made most, as text: `cat taken for dog, about 7 (31%)`."""
    made = (f"{k} taken for {c}, about {n:.0f} ({rate:.0%})" for k, c, n, rate in card.top_confusions)
    return "; ".join(made) or None


def _labels(model: Aggregator) -> pl.Series:
    return pl.Series([None if label is None else str(label) for label in model.labels_.tolist()], dtype=pl.String)


def _probabilities(model: Aggregator) -> dict[str, Any]:
    return {f"p_{name}": model.posterior_[:, k] for k, name in enumerate(class_names(model.classes_))}


def _in_library(table: pl.DataFrame, key: str, library: str) -> Any:
    if library == "polars":
        return table
    if library != "pandas":
        raise ParameterError(f"library is {library!r}; it may be polars or pandas.")
    try:
        import pandas
    except ImportError:
        raise MissingExtraError("pandas is not installed: pip install pandas, or take library='polars'.") from None
    return pandas.DataFrame(table.to_dict(as_series=False)).set_index(key)
