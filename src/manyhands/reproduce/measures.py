"""Metrics of a fitted method: compared with ground truth, and figures that the method itself records.

Ground truth is used here, after the fit, and nowhere before.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands import metrics
from manyhands.em.decisions import pick_classes
from manyhands.exceptions import ParameterError
from manyhands.heldout import worker_confusions
from manyhands.reproduce.metric_names import OF_HISTORY, OF_LABELS, OF_ROUND, SHIFTED, UNIFORM_PRIOR
from manyhands.reproduce.splits import Part

Figures = dict[str, float]

_FURTHER_POSTERIOR = re.compile(r"posterior_(\w+)_")


def label_figures(model: Any, part: Part, name: str) -> tuple[Figures, int]:
    """Compare an aggregator's labels with the ground truth of its items, where it is known.

    Parameters
    ----------
    model : Aggregator
        A fitted method.
    part : Part
        The data that it was fitted to.
    name : str
        Name of the data set, for messages.

    Returns
    -------
    figures : dict of str to float
        Metrics.
    n_test : int
        Number of items with known truth.
    """
    known = part.has_truth
    if part.y_train is None or not known.any():
        raise ParameterError(f"{name} has no item with known truth, so an aggregator cannot be measured.")
    figures = _figures(part, part.y_train[known], model.labels_[known], model.posterior_[known], model.classes_)
    return figures | {"label_accuracy": figures["accuracy"], "label_auc": figures["auc"]}, int(known.sum())


def predicted_figures(model: Any, part: Part, name: str) -> tuple[Figures, int]:
    """Compare a classifier's predictions with the truth of the test items, and its labels of the training items.

    Parameters
    ----------
    model : CrowdClassifier or Pipeline
        A fitted method.
    part : Part
        The data that it was fitted to, with test items.
    name : str
        Name of the data set, for messages.

    Returns
    -------
    figures : dict of str to float
        Metrics.
    n_test : int
        Number of test items.
    """
    if part.X_test is None or part.y_test is None:
        raise ParameterError(f"{name} has no test items, so a classifier cannot be measured; give it folds = 5.")
    last, proba = last_step(model), model.predict_proba(part.X_test)
    figures = _figures(part, part.y_test, last.classes_[proba.argmax(axis=1)], proba, last.classes_)
    shifted = last._uniform_prior_proba(proba)  # a control for claims about class imbalance; uses no truth
    moved = _figures(part, part.y_test, last.classes_[shifted.argmax(axis=1)], shifted, last.classes_)
    figures |= {name: moved[name.removesuffix(UNIFORM_PRIOR)] for name in SHIFTED}
    figures |= _label_accuracy("label_accuracy", last, last.posterior_, part)
    known = part.has_truth
    if part.y_train is not None and known.any():
        figures["label_auc"] = auc(part.y_train[known], last.posterior_[known], last.classes_)
    return figures, len(part.y_test)


def recorded_figures(model: Any, part: Part) -> Figures:
    """Return figures that only some methods record: of the last round, of the history, of further posteriors.

    Parameters
    ----------
    model : estimator
        A fitted method.
    part : Part
        The data that it was fitted to.

    Returns
    -------
    dict of str to float
        Keys begin with ``round.``, ``history.`` or ``label_accuracy.``.
    """
    last = last_step(model)
    figures = _numbers(OF_ROUND, (getattr(last, "rounds_", None) or [{}])[-1])
    for recorded in getattr(last, "history_", ()):
        if isinstance(recorded, dict):  # that of an aggregator has the values of its objective
            figures |= _numbers(OF_HISTORY, recorded)
    for attribute, value in vars(last).items():
        found = _FURTHER_POSTERIOR.fullmatch(attribute)
        if found and isinstance(value, np.ndarray) and value.shape == last.posterior_.shape:
            figures |= _label_accuracy(OF_LABELS + found[1], last, value, part)
    return figures


def planted_figures(model: Any, part: Part) -> Figures:
    """Compare estimated expertise and difficulty with those of the simulation.

    Parameters
    ----------
    model : estimator
        A fitted method.
    part : Part
        The data, with `planted` parameters.

    Returns
    -------
    dict of str to float
        ``expertise_error``: mean absolute error, over workers and classes, of the probability of a correct label on
        the easiest items (on all items for methods without difficulty). ``difficulty_rank``: Spearman's correlation
        of estimated and true difficulty. ``difficulty_error``: calibration error of the expected share of correct
        labels of an item, in bins as for `ece`.
    """
    last, figures = last_step(model), {}
    if "expertise" in part.planted:
        figures["expertise_error"] = float(np.abs(estimated_expertise(last, part) - part.planted["expertise"]).mean())
    if "difficulty" in part.planted and hasattr(last, "difficulty_"):
        from scipy.stats import spearmanr

        found, planted = last.difficulty_, part.planted["difficulty"]
        differ = np.ptp(found) > 0 and np.ptp(planted) > 0
        figures["difficulty_rank"] = float(spearmanr(found, planted).statistic) if differ else 0.0
    if hasattr(last, "item_accuracy_") and part.has_truth.any():
        figures["difficulty_error"] = _difficulty_error(last, part)
    return figures


def estimated_expertise(last: Any, part: Part) -> npt.NDArray[np.float64]:
    """Return the accuracy of each worker and class by the method itself, or by its posterior.

    Parameters
    ----------
    last : estimator
        A fitted method, the last step of a pipeline.
    part : Part
        The data that it was fitted to.

    Returns
    -------
    ndarray of shape (n_workers, n_classes)
        Probability of a correct label.
    """
    if hasattr(last, "expertise_"):
        return np.asarray(last.expertise_)
    of_posterior = worker_confusions(part.annotations, last.posterior_, strength=1e-6)[:-1]
    return np.einsum("wcc->wc", getattr(last, "confusion_", of_posterior))


def _difficulty_error(last: Any, part: Part, n_bins: int = 10) -> float:
    """Return the calibration error of `item_accuracy_` over bins of equal numbers of labels."""
    votes, known = part.annotations, part.has_truth
    assert part.y_train is not None
    is_right = (votes.classes[votes.label] == part.y_train[votes.item])[known[votes.item]].astype(float)
    expected = last.item_accuracy_[votes.item][known[votes.item]]
    order = np.argsort(expected, kind="stable")
    gaps = np.array_split((expected - is_right)[order], min(n_bins, len(order)))
    return float(sum(abs(gap.sum()) for gap in gaps) / len(order))


def last_step(model: Any) -> Any:
    """Return the last step of a pipeline, or the model itself.

    Parameters
    ----------
    model : estimator
        A method or a pipeline.

    Returns
    -------
    estimator
        The step with `classes_` and `posterior_`.
    """
    return model[-1] if hasattr(model, "named_steps") else model


def _numbers(prefix: str, recorded: Mapping[str, Any]) -> Figures:
    """Return the numbers among recorded values whose names a table can list."""
    return {
        prefix + key: float(value)
        for key, value in recorded.items()
        if key.isidentifier() and isinstance(value, int | float | np.integer | np.floating)
    }


def _label_accuracy(metric: str, model: Any, posterior: npt.NDArray[np.float64], part: Part) -> Figures:
    """Return the accuracy of the most probable classes of the training items."""
    known = part.has_truth
    if part.y_train is None or not known.any():
        return {}
    code, _ = pick_classes(posterior, np.zeros(len(known), bool))
    return {metric: metrics.accuracy(part.y_train[known], model.classes_[code[known]])}


def _figures(part: Part, truth: Any, label: Any, proba: Any, classes: Any) -> Figures:
    """Return the metrics that all methods have."""
    return {
        "accuracy": metrics.accuracy(truth, label),
        "balanced_accuracy": metrics.balanced_accuracy(truth, label),
        "macro_f1": metrics.macro_f1(truth, label),
        "rare_recall": rare_recall(part, truth, label),
        "log_loss": metrics.log_loss(truth, proba, classes),
        "ece": metrics.ece(truth, proba, classes),
        "auc": auc(truth, proba, classes),
    }


def rare_recall(part: Part, truth: Any, label: Any) -> float:
    """Return the recall of the class that is rarest among the training items; several rarest ones are averaged.

    Parameters
    ----------
    part : Part
        The data, whose `y_train` determines the rarest class.
    truth : ndarray of shape (n_items,)
        True classes.
    label : ndarray of shape (n_items,)
        Predicted classes.

    Returns
    -------
    float
        NaN if no truth of training items is known, or no item has the class.
    """
    known = part.has_truth
    counts: Mapping[Any, int] = {}
    if part.y_train is not None and known.any():
        trained = part.y_train[known].tolist()
        counts = {value: trained.count(value) for value in dict.fromkeys(trained)}
    found = []
    for value in (value for value, n in counts.items() if n == min(counts.values())):
        of_class = np.array([one == value for one in truth.tolist()])
        if of_class.any():
            found.append(metrics.accuracy(truth[of_class], label[of_class]))
    return math.fsum(found) / len(found) if found else math.nan


def auc(truth: Any, proba: Any, classes: Any) -> float:
    """Return the area under the ROC curve, one-versus-rest and averaged for more than two classes.

    Parameters
    ----------
    truth : ndarray of shape (n_items,)
        True classes.
    proba : ndarray of shape (n_items, n_classes)
        Predicted probabilities.
    classes : ndarray of shape (n_classes,)
        Classes of the columns.

    Returns
    -------
    float
        Classes without items, or without items of other classes, are left out; NaN if all are.
    """
    values = truth.tolist()
    ranked = [1] if len(classes) == 2 else range(len(classes))
    each = [_one_auc(np.array([value == classes[k] for value in values]), proba[:, k]) for k in ranked]
    defined = [value for value in each if not math.isnan(value)]
    return math.fsum(defined) / len(defined) if defined else math.nan


def _one_auc(inside: npt.NDArray[np.bool_], score: Any) -> float:
    """Return the Mann-Whitney statistic of one class against all others, divided by the number of pairs."""
    if inside.all() or not inside.any():
        return math.nan
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]  # from 1; ties share their mean rank
    n_inside = int(inside.sum())
    above = rank[inside].sum() - n_inside * (n_inside + 1) / 2
    return float(above / (n_inside * (len(inside) - n_inside)))
