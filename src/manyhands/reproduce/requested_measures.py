"""Metrics that are computed only where a table lists them: recall of one class, accuracy on the training items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from manyhands import metrics
from manyhands.reproduce.measures import Figures, last_step
from manyhands.reproduce.metric_names import OF_CLASS, TRAINING
from manyhands.reproduce.splits import Part


def requested_figures(model: Any, part: Part, names: Sequence[str]) -> Figures:
    """Return the metrics among these names that are not computed for every table.

    Parameters
    ----------
    model : CrowdClassifier or Pipeline
        A fitted method that predicts.
    part : Part
        The data that it was fitted to, with test items.
    names : sequence of str
        Metrics of the table.

    Returns
    -------
    dict of str to float
        ``recall.<class>``: share of the test items of a class that are predicted as such; the class is named as in the
        annotations, and left out where no test item has it. ``training_accuracy``: accuracy of the predictions, without
        labels, for the training items whose truth is known.
    """
    figures: Figures = {}
    if TRAINING in names and part.y_train is not None and part.has_truth.any():
        known = part.has_truth
        figures[TRAINING] = metrics.accuracy(part.y_train[known], _predicted(model, part.X)[known])
    wanted = [name.removeprefix(OF_CLASS) for name in names if name.startswith(OF_CLASS)]
    if wanted and part.y_test is not None:
        label = _predicted(model, part.X_test)
        for name in wanted:
            own = np.array([str(value) == name for value in part.y_test.tolist()])
            if own.any():
                figures[OF_CLASS + name] = metrics.accuracy(part.y_test[own], label[own])
    return figures


def _predicted(model: Any, X: Any) -> Any:
    """Return the most probable class of each row."""
    return last_step(model).classes_[model.predict_proba(X).argmax(axis=1)]
