"""What is measured of a fitted method: beside the truth of test items, and by what it says of itself.

Truth is looked at here, after the fit, and nowhere before.
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
from manyhands.reproduce.splits import Part
from manyhands.reproduce.tables import OF_HISTORY, OF_LABELS, OF_ROUND

Figures = dict[str, float]

_FURTHER_POSTERIOR = re.compile(r"posterior_(\w+)_")


def label_figures(model: Any, part: Part, name: str) -> tuple[Figures, int]:
    """An aggregator's labels beside the truth of the items that it saw, where that is known; and how many those are."""
    known = part.has_truth
    if part.y_train is None or not known.any():
        raise ParameterError(f"{name} has no item of known truth to measure an aggregator on.")
    figures = _figures(part, part.y_train[known], model.labels_[known], model.posterior_[known], model.classes_)
    return figures | {"label_accuracy": figures["accuracy"], "label_auc": figures["auc"]}, int(known.sum())


def predicted_figures(model: Any, part: Part, name: str) -> tuple[Figures, int]:
    """A classifier's predictions beside the truth of the test part, and its labels of the training items."""
    if part.X_test is None or part.y_test is None:
        raise ParameterError(f"{name} has no test part to measure a classifier on; give it folds = 5.")
    last, proba = _last(model), model.predict_proba(part.X_test)
    figures = _figures(part, part.y_test, last.classes_[proba.argmax(axis=1)], proba, last.classes_)
    figures |= _label_accuracy("label_accuracy", last, last.posterior_, part)
    known = part.has_truth
    if part.y_train is not None and known.any():
        figures["label_auc"] = auc(part.y_train[known], last.posterior_[known], last.classes_)
    return figures, len(part.y_test)


def own_figures(model: Any, part: Part) -> Figures:
    """What only some methods have: numbers of the last round, and further posteriors of the training items."""
    last = _last(model)
    figures = _numbers(OF_ROUND, (getattr(last, "rounds_", None) or [{}])[-1])
    for noted in getattr(last, "history_", ()):
        if isinstance(noted, dict):  # an aggregator's are the values of its objective
            figures |= _numbers(OF_HISTORY, noted)
    for attribute, value in vars(last).items():
        found = _FURTHER_POSTERIOR.fullmatch(attribute)
        if found and isinstance(value, np.ndarray) and value.shape == last.posterior_.shape:
            figures |= _label_accuracy(OF_LABELS + found[1], last, value, part)
    return figures


def planted_figures(model: Any, part: Part) -> Figures:
    """What a method says of workers' expertise and items' difficulty, beside what was planted or is true.

    expertise_error: the mean distance, over workers and classes, of the chance of a right label on the easiest items;
    of methods that know no difficulty, on all items. difficulty_rank: Spearman's correlation. difficulty_error: how far
    the share of right labels that an item's difficulty makes one expect is from the share that is right, as in `ece`.
    """
    last, figures = _last(model), {}
    if "expertise" in part.planted:
        figures["expertise_error"] = float(np.abs(_expertise(last, part) - part.planted["expertise"]).mean())
    if "difficulty" in part.planted and hasattr(last, "difficulty_"):
        from scipy.stats import spearmanr

        found, planted = last.difficulty_, part.planted["difficulty"]
        differ = np.ptp(found) > 0 and np.ptp(planted) > 0
        figures["difficulty_rank"] = float(spearmanr(found, planted).statistic) if differ else 0.0
    if hasattr(last, "item_accuracy_") and part.has_truth.any():
        figures["difficulty_error"] = _difficulty_error(last, part)
    return figures


def _expertise(last: Any, part: Part) -> npt.NDArray[np.float64]:
    """(n_workers, n_classes) how often labels are right: what a method says, or what its posterior does."""
    if hasattr(last, "expertise_"):
        return np.asarray(last.expertise_)
    of_posterior = worker_confusions(part.annotations, last.posterior_, strength=1e-6)[:-1]
    return np.einsum("wcc->wc", getattr(last, "confusion_", of_posterior))


def _difficulty_error(last: Any, part: Part, n_bins: int = 10) -> float:
    votes, known = part.annotations, part.has_truth
    assert part.y_train is not None
    is_right = (votes.classes[votes.label] == part.y_train[votes.item])[known[votes.item]].astype(float)
    expected = last.item_accuracy_[votes.item][known[votes.item]]
    order = np.argsort(expected, kind="stable")
    gaps = np.array_split((expected - is_right)[order], min(n_bins, len(order)))
    return float(sum(abs(gap.sum()) for gap in gaps) / len(order))


def _last(model: Any) -> Any:
    return model[-1] if hasattr(model, "named_steps") else model


def _numbers(prefix: str, noted: Mapping[str, Any]) -> Figures:
    """What a table could name, of all that a method noted."""
    return {
        prefix + key: float(value)
        for key, value in noted.items()
        if key.isidentifier() and isinstance(value, int | float | np.integer | np.floating)
    }


def _label_accuracy(metric: str, model: Any, posterior: npt.NDArray[np.float64], part: Part) -> Figures:
    known = part.has_truth
    if part.y_train is None or not known.any():
        return {}
    code, _ = pick_classes(posterior, np.zeros(len(known), bool))
    return {metric: metrics.accuracy(part.y_train[known], model.classes_[code[known]])}


def _figures(part: Part, truth: Any, label: Any, proba: Any, classes: Any) -> Figures:
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
    """The share of the items of the class that is rarest in training which get its label; equals are averaged.

    NaN where no truth of training items is known, or where the class is not among the items.
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
    """The chance that an item of a class gets more of it than one of another; averaged over more than two classes.

    Two classes give one figure. Classes without items, or without items of others, are left out; NaN if all are.
    """
    values = truth.tolist()
    ranked = [1] if len(classes) == 2 else range(len(classes))
    each = [_one_auc(np.array([value == classes[k] for value in values]), proba[:, k]) for k in ranked]
    defined = [value for value in each if not math.isnan(value)]
    return math.fsum(defined) / len(defined) if defined else math.nan


def _one_auc(inside: npt.NDArray[np.bool_], score: Any) -> float:
    if inside.all() or not inside.any():
        return math.nan
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]  # from 1; equals share the mean of theirs
    n_inside = int(inside.sum())
    above = rank[inside].sum() - n_inside * (n_inside + 1) / 2
    return float(above / (n_inside * (len(inside) - n_inside)))
