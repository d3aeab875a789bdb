"""Statistics of a data set itself, for tables that describe data: the same for every method."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from manyhands.metrics import fleiss_kappa
from manyhands.reproduce.metric_names import OF_DATA
from manyhands.reproduce.splits import Part


def data_figures(part: Part, names: Sequence[str]) -> dict[str, float]:
    """Return statistics of the training items, their labels and features.

    Parameters
    ----------
    part : Part
        The data.
    names : sequence of str
        The metrics of the table; nothing is computed if none of them is a statistic of the data.

    Returns
    -------
    dict of str to float
        ``data.kappa``, Fleiss' kappa of the labels; ``data.positive_share``, the share of the last class among items
        of known truth; ``data.worker_error``, the share of wrong labels on these; ``data.items``, ``data.workers`` and
        ``data.features``, their numbers.
    """
    if not any(name.startswith(OF_DATA) for name in names):
        return {}
    votes, known = part.annotations, part.has_truth
    figures = {
        "kappa": fleiss_kappa(votes, n_bootstrap=0).value,
        "items": float(len(votes)),
        "workers": float(votes.n_workers),
    }
    if part.X is not None:
        figures["features"] = float(np.prod(part.X.shape[1:]))
    if part.y_train is not None and known.any():
        is_wrong = votes.classes[votes.label] != part.y_train[votes.item]
        figures["positive_share"] = float(np.mean(part.y_train[known] == votes.classes[-1]))
        figures["worker_error"] = float(is_wrong[known[votes.item]].mean())
    return {OF_DATA + name: value for name, value in figures.items()}
