"""All methods on the same labels: how sure they are, how well they foretell labels, and where they differ."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from manyhands import registry
from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.exceptions import CrowdWarning
from manyhands.heldout import split_labels

_N_FOLDS = 5


def compare_methods(
    model: Aggregator, method: str, seed: int = 0, gold: Mapping[Any, Any] | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """One row per method, the best foreteller first, and one row per item on which their labels differ.

    `foretells` is the mean log-likelihood of a fifth of the labels, held out; it needs no truth. `right_on_gold` comes
    from a fit that was not told the gold.
    """
    annotations = model.annotations_
    fitted = {method: model}
    rows = [_judge(model, method, model, seed, gold)]
    for name in registry.names("aggregator"):
        if name == method or (name == "kos" and annotations.n_classes != 2):
            continue
        fitted[name] = _fit(name, seed, annotations, gold)
        rows.append(_judge(fitted[name], name, model, seed, gold))
    methods = pl.DataFrame(rows, infer_schema_length=None).sort("foretells", "method", descending=[True, False])
    return methods, _differences(fitted, annotations)


def _fit(name: str, seed: int, annotations: Annotations, gold: Mapping[Any, Any] | None) -> Aggregator:
    model: Aggregator = registry.create_seeded(name, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)  # the chosen method has said it already
        return model.fit(annotations, gold=gold or None)


def _judge(
    model: Aggregator, name: str, chosen: Aggregator, seed: int, gold: Mapping[Any, Any] | None
) -> dict[str, Any]:
    annotations = model.annotations_
    labelled = ~model.unlabelled_
    row = {
        "method": name,
        "foretells": _foretells(name, seed, annotations),
        "confidence": float(model.posterior_[labelled].max(axis=1).mean()),
        "same": float(np.mean(model.labels_[labelled] == chosen.labels_[labelled])),
        "tied": int(model.tied_.sum()),
        "converged": model.converged_,
    }
    if gold:
        blind = _fit(name, seed, annotations, None)
        said = dict(zip(blind.item_ids_.tolist(), blind.labels_.tolist()))
        row["right_on_gold"] = float(np.mean([said[item] == label for item, label in gold.items()]))
    return row


def _foretells(name: str, seed: int, annotations: Annotations) -> float | None:
    fold = split_labels(annotations, _N_FOLDS)
    if not (fold == 0).any() or not (fold != 0).any():
        return None
    return _fit(name, seed, annotations.keep(fold != 0), None).score(annotations.keep(fold == 0))


def _differences(fitted: Mapping[str, Aggregator], annotations: Annotations) -> pl.DataFrame:
    """The items on which not all methods agree, with each method's label and what was voted."""
    labels = {name: np.array([_as_label(v) for v in model.labels_.tolist()], object) for name, model in fitted.items()}
    first, *others = labels.values()
    differ = np.zeros(annotations.n_items, bool)
    for other in others:
        differ |= other != first
    rows = np.flatnonzero(differ)
    columns: dict[str, Any] = {
        "item": [str(value) for value in annotations.item_ids[rows].tolist()],
        "votes": [_votes(annotations, row) for row in rows.tolist()],
    }
    columns |= {name: pl.Series(values[rows].tolist(), dtype=pl.String) for name, values in labels.items()}
    return pl.DataFrame(columns, schema_overrides={"item": pl.String, "votes": pl.String})


def _as_label(value: Any) -> str | None:
    return None if value is None else str(value)


def _votes(annotations: Annotations, item: int) -> str:
    """What was said of an item, the most frequent first: `cat 3; dog 1`."""
    given = annotations.label[annotations.start[item] : annotations.start[item + 1]]
    counts = np.bincount(given, minlength=annotations.n_classes)
    order = np.lexsort((np.arange(len(counts)), -counts))
    return "; ".join(f"{annotations.classes[k]} {counts[k]}" for k in order if counts[k])
