"""What a notebook shows of annotations and of fitted models: a few facts and the first rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from manyhands.html_tables import facts, page, shown_value, table

_FIRST = 5  # rows of items that give an impression
_MOST_CLASSES = 10


def annotations_html(annotations: Any) -> str:
    """Return annotations as HTML: their size, the classes, and the first labels.

    Parameters
    ----------
    annotations : Annotations
        The labels.

    Returns
    -------
    str
        HTML.
    """
    a, per_item = annotations, annotations.n_labels
    count = np.bincount(a.label, minlength=a.n_classes)
    shares = ((str(a.classes[k]), count[k], count[k] / max(a.n_annotations, 1)) for k in range(a.n_classes))
    n_shown = min(_FIRST, a.n_annotations)
    codes = zip(a.item[:n_shown], a.worker[:n_shown], a.label[:n_shown], strict=True)
    labels = ((str(a.item_ids[i]), str(a.worker_ids[w]), str(a.classes[k])) for i, w, k in codes)
    known = {
        "labels": a.n_annotations,
        "items": a.n_items,
        "workers": a.n_workers,
        "labels per item": f"{per_item.min()} to {per_item.max()}, mean {per_item.mean():.1f}" if a.n_items else None,
    }
    first = table(["item", "worker", "label"], labels, n_shown, "First labels")
    return page("Annotations", facts(known), table(["class", "labels", "share"], shares, a.n_classes, "Classes"), first)


def model_html(model: Any) -> str:
    """Return an estimator as HTML: its parameters and, where it is fitted, what it found.

    Parameters
    ----------
    model : BaseEstimator
        An estimator.

    Returns
    -------
    str
        HTML.
    """
    if not model._is_fitted():
        takes = f"fit{model._fit_takes}"
        return page(_title(model), facts({"not fitted": f"call {takes}"}))
    found = vars(model)
    history = found.get("history_")
    accuracy = found.get("worker_accuracy_")
    known = {
        "classes": _listed(model.classes_),
        "items": len(model.posterior_),
        "workers": len(model.worker_ids_),
        "features": found.get("n_features_in_"),
        "iterations": found.get("n_iter_", len(history) if history else None),
        "converged": found.get("converged_"),
        "worker accuracy": _range(accuracy),
    }
    notes = found.get("notes_") or {}
    remarks = table(["note", ""], iter(notes.items()), len(notes)) if notes else ""
    return page(_title(model), facts(known), remarks, _first_items(found))


def _title(model: Any) -> str:
    return shown_value(repr(model))


def _first_items(found: dict[str, Any]) -> str:
    """Return the first labels of an aggregator; "" of a model that predicts from features."""
    if "labels_" not in found:
        return ""
    posterior, items, labels = found["posterior_"], found["item_ids_"], found["labels_"]
    n_shown = min(_FIRST, len(items))

    def rows() -> Iterator[tuple[str, str, float]]:
        for row in range(n_shown):
            yield str(items[row]), str(labels[row]), posterior[row].max()

    return table(["item", "label", "confidence"], rows(), n_shown, f"First {n_shown} of {len(items):,} items")


def _range(accuracy: Any) -> str | None:
    if accuracy is None or len(accuracy) == 0:
        return None
    return f"{accuracy.min():.2f} to {accuracy.max():.2f}, median {np.median(accuracy):.2f}"


def _listed(classes: Any) -> str:
    shown = ", ".join(str(value) for value in classes[:_MOST_CLASSES].tolist())
    return shown + (f" and {len(classes) - _MOST_CLASSES} more" if len(classes) > _MOST_CLASSES else "")
