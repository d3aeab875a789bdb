"""All aggregators on the same annotations, as two tables: scores per method, and items with different labels."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from manyhands import registry
from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.model_selection import compare
from manyhands.validation.input_checks import TAKE_WEIGHTS

_SCORES = {  # columns of `Comparison.table`, and their types where nothing could be scored
    "rank": pl.Int64,
    "heldout_log_likelihood": pl.Float64,
    "standard_error": pl.Float64,
    "difference_to_best": pl.Float64,
    "difference_standard_error": pl.Float64,
    "likelihood": pl.String,
}


def compare_aggregators(
    chosen: Aggregator, method: str, *, gold: Mapping[Any, Any] | None = None, random_state: int = 0
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Fit and cross-validate every aggregator on the annotations of a fitted one.

    The ranking is that of `manyhands.model_selection.compare` with the same seed and gold.

    Parameters
    ----------
    chosen : Aggregator
        A fitted method; the agreement of the others is measured with it.
    method : str
        Its registry name.
    gold : mapping of item to class or None, default=None
        Known classes, given to every fit except those whose accuracy on gold items is measured.
    random_state : int, default=0
        Seed of every method that uses random numbers.

    Returns
    -------
    methods : polars.DataFrame
        One row per method, the highest held-out log-likelihood first: ``method``, ``rank``,
        ``heldout_log_likelihood``, ``standard_error``, ``difference_to_best``, ``difference_standard_error``,
        ``likelihood`` ("own" or "confusion matrices"; these are empty where there are too few labels for
        cross-validation), ``mean_confidence``, ``agreement_with_chosen`` (share of
        items with the same label), ``n_tied``, ``converged`` and, with gold, ``gold_accuracy`` of a fit without gold.
    differences : polars.DataFrame
        One row per item on which the methods' labels differ: ``item``, ``votes`` and a column per method.
    """
    annotations = chosen.annotations_
    names = [method, *(name for name in _usable(annotations) if name != method)]
    fitted = {name: chosen if name == method else _fit(name, random_state, annotations, gold) for name in names}
    rows = {name: _describe(model, name, chosen, random_state, gold) for name, model in fitted.items()}
    try:
        ranking = compare(sorted(names), annotations, gold=gold, random_state=random_state).table()
    except AnnotationError:  # too few labels to hold some out
        ranking = [{"method": name} | dict.fromkeys(_SCORES) for name in sorted(names)]
    scored = [score | rows[score["method"]] for score in ranking]
    return pl.DataFrame(scored, schema_overrides=_SCORES), _differences(fitted, annotations)


def _usable(annotations: Annotations) -> list[str]:
    """Return the names of the aggregators for these labels: some are for two or ordered classes, few take weights."""
    unusable = {"kos"} if annotations.n_classes != 2 else set()
    if not annotations.is_ordered:
        unusable.add(registry.DEFAULT_ORDINAL)
    if annotations.weight is not None:
        unusable |= set(registry.names("aggregator")) - set(TAKE_WEIGHTS)
    return [name for name in registry.names("aggregator") if name not in unusable]


def _fit(name: str, random_state: int, annotations: Annotations, gold: Mapping[Any, Any] | None) -> Aggregator:
    """Return a method fitted to all annotations."""
    model: Aggregator = registry.create_seeded(name, random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)  # the chosen method has raised them already
        return model.fit(annotations, gold=gold or None)


def _describe(
    model: Aggregator, name: str, chosen: Aggregator, random_state: int, gold: Mapping[Any, Any] | None
) -> dict[str, Any]:
    """Return the columns of a fitted method that are not from cross-validation."""
    labelled = ~model.unlabelled_
    row = {
        "mean_confidence": float(model.posterior_[labelled].max(axis=1).mean()),
        "agreement_with_chosen": float(np.mean(model.labels_[labelled] == chosen.labels_[labelled])),
        "n_tied": int(model.tied_.sum()),
        "converged": model.converged_,
    }
    if gold:
        without_gold = _fit(name, random_state, model.annotations_, None)
        labels = dict(zip(without_gold.item_ids_.tolist(), without_gold.labels_.tolist()))
        row["gold_accuracy"] = float(np.mean([labels[item] == label for item, label in gold.items()]))
    return row


def _differences(fitted: Mapping[str, Aggregator], annotations: Annotations) -> pl.DataFrame:
    """Return the items on which not all methods agree, with the votes and each method's label."""
    labels = {name: np.array([_as_text(v) for v in model.labels_.tolist()], object) for name, model in fitted.items()}
    first, *others = labels.values()
    differ = np.zeros(annotations.n_items, bool)
    for other in others:
        differ |= other != first
    rows = np.flatnonzero(differ)
    columns: dict[str, Any] = {
        "item": [str(value) for value in annotations.item_ids[rows].tolist()],
        "votes": [_count_votes(annotations, row) for row in rows.tolist()],
    }
    columns |= {name: pl.Series(values[rows].tolist(), dtype=pl.String) for name, values in labels.items()}
    return pl.DataFrame(columns, schema_overrides={"item": pl.String, "votes": pl.String})


def _as_text(value: Any) -> str | None:
    return None if value is None else str(value)


def _count_votes(annotations: Annotations, item: int) -> str:
    """Return the votes on an item, the most frequent class first: ``cat 3; dog 1``."""
    own = slice(annotations.start[item], annotations.start[item + 1])
    weight = None if annotations.weight is None else annotations.weight[own]
    counts = np.bincount(annotations.label[own], weights=weight, minlength=annotations.n_classes)
    order, precision = np.lexsort((np.arange(len(counts)), -counts)), "d" if weight is None else ".3g"
    return "; ".join(f"{annotations.classes[k]} {counts[k]:{precision}}" for k in order if counts[k])
