"""What a notebook shows of annotations, a few facts and the first rows, and of models that are not fitted."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyhands.html_tables import facts, page, shown_value, table

_FIRST = 5  # rows of items that give an impression


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


def unfitted_html(model: Any) -> str:
    """Return an estimator that is not fitted as HTML: its parameters and what to call.

    Parameters
    ----------
    model : BaseEstimator
        An estimator.

    Returns
    -------
    str
        HTML.
    """
    return page(shown_value(repr(model)), facts({"not fitted": f"call fit{model._fit_takes}"}))
