"""Numbers that describe an export: coverage, class balance, agreement."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from manyhands import metrics
from manyhands.annotations import Annotations
from manyhands.io.reading import Reading
from manyhands.io.write.results import class_names, count_components, to_json_value

_N_BOOTSTRAP = 200  # of an overview, which should be fast; `describe_agreement` by itself has 1000
_N_EXAMPLES = 3  # of the labels of a question
_WEIGHTS = ("linear", "quadratic")  # of weighted kappa


def overview(reading: Reading) -> dict[str, Any]:
    """Return everything that ``manyhands inspect`` shows, ready for JSON."""
    summary = {"schema": 1} | describe_reading(reading)
    if reading.refusal is None:
        summary |= describe_crowd(reading.annotations)
        level = "ordinal" if reading.annotations.is_ordered else "nominal"
        summary["agreement"] = describe_agreement(reading.annotations, level, n_bootstrap=_N_BOOTSTRAP)
        summary["examples"] = _examples(reading.annotations)
    json_value: dict[str, Any] = to_json_value(summary)
    return json_value


def describe_reading(reading: Reading) -> dict[str, Any]:
    """Return what was read, from where, and what became of every row."""
    return {
        "source": reading.source,
        "format": reading.format,
        "columns": reading.columns,
        "question": reading.question,
        "questions": reading.questions,
        "ledger": reading.ledger.as_dict(),
        "n_gold": len(reading.gold),
        "workers_known": reading.workers_known,
        "refusal": reading.refusal,
        "notes": reading.notes,
    } | ({"kinds": dict(Counter(kind.kind for kind in reading.kinds.values()))} if reading.kinds else {})


def describe_crowd(annotations: Annotations) -> dict[str, Any]:
    """Return counts of items, workers, classes and labels."""
    per_item = annotations.n_labels
    per_worker = np.bincount(annotations.worker, minlength=annotations.n_workers)
    pairs = len(np.unique(annotations.item.astype(np.int64) * max(annotations.n_workers, 1) + annotations.worker))
    cells = max(annotations.n_items * annotations.n_workers, 1)
    counts = np.bincount(annotations.label, minlength=annotations.n_classes)
    return {
        "n_items": annotations.n_items,
        "n_workers": annotations.n_workers,
        "n_classes": annotations.n_classes,
        "n_annotations": annotations.n_annotations,
        "n_unlabelled": int((per_item == 0).sum()),
        "n_labelled_once": int((per_item == 1).sum()),
        "labels_per_item": _summarise_counts(per_item),
        "labels_per_worker": _summarise_counts(per_worker),
        "density": pairs / cells,
        "sparsity": 1 - pairs / cells,
        "n_components": count_components(annotations),
        "labels": dict(zip(class_names(annotations.classes), counts.tolist())),
        "imbalance": metrics.imbalance_ratio(annotations) if annotations.n_annotations else None,
    }


def describe_order(annotations: Annotations) -> dict[str, Any]:
    """Return the order of ordered classes, and the crowd's weighted kappa."""
    kappas = {f"{w}_kappa": metrics.weighted_kappa(annotations, w, n_bootstrap=0).value for w in _WEIGHTS}
    return {"order": class_names(annotations.classes)} | {
        name: None if np.isnan(value) else round(value, 6) for name, value in kappas.items()
    }


def describe_agreement(
    annotations: Annotations,
    level: str = "nominal",
    order: list[str] | None = None,
    *,
    n_bootstrap: int = 1000,
    random_state: int = 0,
) -> list[dict[str, Any]]:
    """Return percent agreement, Fleiss' kappa and Krippendorff's alpha, each with its confidence interval.

    Ordered classes, of the level "ordinal" or of ordered annotations, have kappa with linear and quadratic weights too.
    """
    if order is None and annotations.is_ordered and level == "ordinal":
        order = annotations.classes.tolist()
    figures = {
        "percent agreement": metrics.percent_agreement(annotations, n_bootstrap=n_bootstrap, random_state=random_state),
        "Fleiss' kappa": metrics.fleiss_kappa(annotations, n_bootstrap=n_bootstrap, random_state=random_state),
        f"Krippendorff's alpha ({level})": metrics.krippendorff_alpha(
            annotations, level, order, n_bootstrap=n_bootstrap, random_state=random_state
        ),
    }
    if level == "ordinal" or annotations.is_ordered:
        for weights in _WEIGHTS:
            figures[f"kappa, {weights} weights"] = metrics.weighted_kappa(
                annotations, weights, order, n_bootstrap=n_bootstrap, random_state=random_state
            )
    return [
        {"measure": name, "value": a.value, "low": a.low, "high": a.high, "n_items": a.n_items, "reason": a.reason}
        for name, a in figures.items()
    ]


def _summarise_counts(counts: np.ndarray[Any, Any]) -> dict[str, float]:
    """Return mean, minimum, median and maximum of counts."""
    if not len(counts):
        return {"mean": 0.0, "min": 0, "median": 0.0, "max": 0}
    mean, median = round(float(counts.mean()), 3), float(np.median(counts))
    return {"mean": mean, "min": int(counts.min()), "median": median, "max": int(counts.max())}


def _examples(annotations: Annotations) -> list[dict[str, str]]:
    """Return the first annotations."""
    n = min(_N_EXAMPLES, annotations.n_annotations)
    columns = {
        "item": annotations.item_ids[annotations.item[:n]],
        "worker": annotations.worker_ids[annotations.worker[:n]],
        "label": annotations.classes[annotations.label[:n]],
    }
    return [dict(zip(columns, map(str, row))) for row in zip(*columns.values())]
