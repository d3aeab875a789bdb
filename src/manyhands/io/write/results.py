"""What a fitted aggregator has to say, as data frames and as one summary."""

from __future__ import annotations

import io
from collections import Counter
from typing import Any

import numpy as np
import polars as pl

from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError, LimitError, MissingExtraError, ParameterError
from manyhands.io.messages import shorten
from manyhands.io.write.json_values import to_json_value
from manyhands.scorecards import Scorecards, WorkerCard, score_workers

_DECIMALS = 6  # of a probability in a file: finer than it can be known, coarser than any rounding between machines


def label_frame(model: Aggregator, library: str = "polars") -> Any:
    """One row per item: label, confidence, n_labels, flags, and a column p_<class> for each class.

    Items that nobody labelled have neither label nor confidence. Flags: `tie`, `unlabelled`, `gold`, and `unvoted` for
    a label that none of the item's workers gave.

    `library="pandas"` gives a pandas frame with the items as its index.
    """
    columns = {
        "item": _values(model.item_ids_.tolist()),
        "label": _values(model.labels_.tolist()),
        "confidence": _confidence(model),
        "n_labels": model.annotations_.n_labels,
        "flags": _flags(model),
    }
    return _in_library(pl.DataFrame(columns | _probabilities(model)), "item", library)


def worker_frame(model: Aggregator, library: str = "polars") -> Any:
    """One row per worker: the scorecard (docs/scorecards.md) and, where the model knows confusions, recall_<class>.

    A crowd with so many classes that no scorecard fits into memory has n_labels and accuracy alone.
    """
    names = class_names(model.classes_)
    columns: dict[str, Any] = {"worker": _values(model.worker_ids_.tolist())}
    try:
        columns |= _scorecard(worker_cards(model), names)
    except LimitError:
        volume = np.bincount(model.annotations_.worker, minlength=len(model.worker_ids_))
        columns |= {"n_labels": volume, "accuracy": model.worker_accuracy_}
    confusion = getattr(model, "confusion_", None)
    if confusion is not None:
        columns |= {f"recall_{name}": confusion[:, k, k] for k, name in enumerate(names)}
    return _in_library(pl.DataFrame(columns), "worker", library)


def _scorecard(cards: Scorecards, names: list[str]) -> dict[str, Any]:
    """The columns of the scorecards, with classes by name and lists as text."""
    return {
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


def worker_cards(model: Aggregator) -> Scorecards:
    """The scorecards of a fitted model's workers."""
    return score_workers(
        model.annotations_,
        model.posterior_,
        confusion=getattr(model, "confusion_", None),
        tempering_exponent=getattr(model, "tempering_exponent_", 1.0),
        collusion_group=getattr(model, "collusion_group_", None),
        gold=model._gold or None,
    )


def training_frame(model: Aggregator, *, soft: bool = False, library: str = "polars") -> Any:
    """Items with a label, ready for any classifier that takes `sample_weight`: item, label, weight.

    Hard labels weigh what the model is sure of. With `soft`, an item comes once for every class, weighed by its
    probability, which trains on the whole distribution; classes of probability 0 are left out.
    """
    model.annotations_  # noqa: B018  # says so where the model is not fitted
    labelled = np.flatnonzero(~model.unlabelled_)
    posterior = model.posterior_[labelled]
    items = model.item_ids_[labelled].tolist()
    if not soft:
        labels = [model.labels_[row] for row in labelled]
        table = pl.DataFrame({"item": _values(items), "label": _values(labels), "weight": posterior.max(axis=1)})
        return _in_library(table, "item", library)
    row, code = np.nonzero(posterior)
    weighed = {
        "item": _values([items[at] for at in row]),
        "label": _values([model.classes_[k] for k in code]),
        "weight": posterior[row, code],
    }
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
        "gold_contradicted": contradicted_gold(model),
        "mean_confidence": round(float(confidence.mean()), _DECIMALS) if len(confidence) else None,
        "share_above_0.9": round(float((confidence >= 0.9).mean()), _DECIMALS) if len(confidence) else None,
        "labels": dict(sorted(labels.items())),
        "n_iter": model.n_iter_,
        "converged": model.converged_,
        "notes": model.notes_,
    }
    return {name: to_json_value(value) for name, value in told.items()}


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


def contradicted_gold(model: Aggregator) -> list[Any]:
    """The gold items on which another class has more votes than the known one."""
    votes = model.annotations_
    class_of = {value: k for k, value in enumerate(model.classes_.tolist())}
    row_of = {item: i for i, item in enumerate(model.item_ids_.tolist())}
    found = []
    for item, value in model._gold.items():
        i = row_of[item]
        counts = np.bincount(votes.label[votes.start[i] : votes.start[i + 1]], minlength=votes.n_classes)
        if counts.max() > counts[class_of[value]]:
            found.append(item)
    return found


def _flags(model: Aggregator) -> pl.Series:
    """The words for each item, joined by ";"; nothing where there is nothing to say."""
    gold = np.isin(np.arange(len(model.item_ids_)), _rows_of_gold(model))
    words = {"tie": model.tied_, "unlabelled": model.unlabelled_, "gold": gold, "unvoted": _unvoted(model) & ~gold}
    said = (";".join(word for word, on in zip(words, row) if on) for row in zip(*words.values()))
    return pl.Series([flags or None for flags in said], dtype=pl.String)


def _rows_of_gold(model: Aggregator) -> list[int]:
    return [row for row, item in enumerate(model.item_ids_.tolist()) if item in model._gold] if model._gold else []


def _unvoted(model: Aggregator) -> np.ndarray[Any, Any]:
    """(n_items,) where no worker of the item gave the label that it gets."""
    votes = model.annotations_
    class_of = {value: k for k, value in enumerate(model.classes_.tolist())}
    code = np.array([class_of.get(label, -1) for label in model.labels_.tolist()])
    voted = np.zeros(votes.n_items, bool)
    voted[votes.item[code[votes.item] == votes.label]] = True
    return (code >= 0) & ~voted


def _confidence(model: Aggregator) -> pl.Series:
    sure = np.where(model.unlabelled_, np.nan, model.posterior_.max(axis=1))
    return pl.Series(sure).fill_nan(None)


def _values(values: list[Any]) -> pl.Series:
    """Ids or labels as a column in their own type, where it is one that a table has; as text otherwise."""
    kinds = {type(value.item() if isinstance(value, np.generic) else value) for value in values if value is not None}
    if kinds in ({int}, {bool}):
        return pl.Series([None if value is None else int(value) for value in values])
    return pl.Series([None if value is None else str(value) for value in values], dtype=pl.String)


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
