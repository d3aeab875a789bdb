"""`evaluate`: the predictions of a trained model compared with ground truth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from manyhands import metrics
from manyhands.io.features.feature_loading import Features, match
from manyhands.io.features.model_folder import load_folder
from manyhands.io.messages import shorten
from manyhands.io.read.truth import read_truth
from manyhands.validation import check_known
from manyhands.workflows.device_option import check_device
from manyhands.workflows.options import DEFAULT_MATCHING, FeatureOptions
from manyhands.workflows.prediction import read_rows


@dataclass(frozen=True)
class EvaluationRun:
    """Result of `evaluate`.

    Attributes
    ----------
    metrics : dict of str to float
        ``accuracy``, ``balanced_accuracy``, ``macro_f1``, ``log_loss``, ``brier`` and ``ece`` (expected calibration
        error).
    n_items : int
        Number of items with features and ground truth.
    n_without_features : int
        Number of items with ground truth but without features.
    n_without_truth : int
        Number of rows of features without ground truth.
    """

    metrics: dict[str, float]
    n_items: int
    n_without_features: int
    n_without_truth: int

    def as_dict(self) -> dict[str, Any]:
        """Return counts and metrics as one dictionary."""
        counts = {name: getattr(self, name) for name in ("n_items", "n_without_features", "n_without_truth")}
        return counts | self.metrics


def evaluate(
    model: str | Path,
    features: str | Path,
    truth: str | Path,
    matching: FeatureOptions = DEFAULT_MATCHING,
    *,
    device: str | None = None,
) -> EvaluationRun:
    """Compare a model's predictions with ground truth: accuracy, F1 and calibration of its probabilities.

    Parameters
    ----------
    model : str or Path
        Folder that `train` wrote.
    features : str or Path
        File of features.
    truth : str or Path
        Table of items and their true classes.
    matching : FeatureOptions, default=FeatureOptions()
        How to match rows of features with items of the truth.
    device : str or None, default=None
        Device of torch on which a network predicts; None is the CPU.

    Returns
    -------
    EvaluationRun
        Metrics and counts.

    Raises
    ------
    ParameterError
        If an option is invalid, the folder is not a complete model, or the device cannot be used.
    AlignmentError
        If features and truth have no item in common, or are not of one length where matched by position.
    """
    matching.check()
    if device is not None:
        check_device(device)
    classifier, pipeline = load_folder(Path(model), device)
    ids, X = read_rows(pipeline, features, matching)
    known = read_truth(truth, n_rows=len(ids) if matching.rows_in_order else None)
    items = list(known)
    kept, rows = match(Features(str(features), ids, X), items)
    figures = _metrics(classifier, X[rows], [known[items[at]] for at in kept], truth)
    return EvaluationRun(figures, len(kept), len(items) - len(kept), len(ids) - len(kept))


def _metrics(classifier: Any, X: Any, y: list[str], truth: str | Path) -> dict[str, float]:
    """Return all metrics of the predictions for X, whose true classes are y."""
    classes = [str(value) for value in classifier.classes_.tolist()]
    remedy = f"The model knows {', '.join(map(shorten, classes[:5]))}; train it with labels of all classes."
    check_known(sorted(set(y)), classes, f"Classes of {truth}", remedy)
    proba = classifier.predict_proba(X)
    label = np.array(classes, object)[proba.argmax(axis=1)]
    return {
        "accuracy": metrics.accuracy(y, label),
        "balanced_accuracy": metrics.balanced_accuracy(y, label),
        "macro_f1": metrics.macro_f1(y, label),
        "log_loss": metrics.log_loss(y, proba, classes),
        "brier": metrics.brier(y, proba, classes),
        "ece": metrics.ece(y, proba, classes),
    }
