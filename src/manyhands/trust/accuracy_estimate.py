"""Accuracy of labels, with an interval that covers: from answers about random items, and from nothing else."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.base import Aggregator
from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.trust.answers import RANDOM, Answers, as_answers
from manyhands.trust.calibrated_model import CalibratedAggregator
from manyhands.trust.intervals import answers_for, finite_interval
from manyhands.trust.representative import usable_answers, without_answers
from manyhands.validation import Number, check_parameters

MIN_FOR_PREDICTIONS = 100  # answers from which on a normal approximation is used, if it is narrower
MIN_OF_EACH = 10  # right and wrong labels among them
MIN_OF_CLASS = 5  # answers of a class from which on its accuracy is given

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AccuracyEstimate:
    """Accuracy of labels with an interval; without answers, how many would be needed.

    Attributes
    ----------
    value : float or None
        Estimated share of right labels; None without answers.
    low : float or None
        Lower end of the interval.
    high : float or None
        Upper end of the interval.
    level : float
        Probability of the interval.
    method : {"exact", "prediction-powered", "stratified", "none"}
        How the interval was computed.
    n_answers : int
        Number of answers that were used.
    n_items : int
        Number of labelled items.
    needed : dict of float to int
        Half width of an interval -> random answers that it takes.
    classes : dict of class to (float, float, float, int)
        Of the items with each label: estimated share that is right, low, high, and number of answers.
    """

    value: float | None
    low: float | None
    high: float | None
    level: float
    method: str
    n_answers: int
    n_items: int
    needed: dict[float, int]
    classes: dict[Any, tuple[float, float, float, int]] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.value is None:
            return (
                f"How accurate the labels are cannot be known without checking some: {self.needed[0.05]} random "
                f"answers tell it within 5 points, {self.needed[0.02]} within 2 (of {self.n_items} items)."
            )
        return (
            f"{self.value:.1%} of the labels are right ({self.level:.0%} interval {self.low:.1%} to {self.high:.1%}, "
            f"{self.n_answers} answers, {self.method})."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return all values for a summary.

        Returns
        -------
        dict
            Values that JSON can hold.
        """
        rounded = {name: None if x is None else round(x, 6) for name, x in (("value", self.value), ("low", self.low))}
        return rounded | {
            "high": None if self.high is None else round(self.high, 6),
            "level": self.level,
            "method": self.method,
            "n_answers": self.n_answers,
            "n_items": self.n_items,
            "answers_for_5_points": self.needed[0.05],
            "answers_for_2_points": self.needed[0.02],
            "classes": {
                str(label): {"value": round(v, 6), "low": round(low, 6), "high": round(high, 6), "n_answers": n}
                for label, (v, low, high, n) in self.classes.items()
            },
            "sentence": str(self),
        }


def estimate_accuracy(
    labels: Aggregator | Mapping[Any, Any], answers: Answers | Mapping[Any, Any] | None = None, *, level: float = 0.95
) -> AccuracyEstimate:
    """Estimate the share of right labels from answers about random items, with an interval that covers.

    The interval is exact for a sample without replacement (Clopper and Pearson's for the hypergeometric distribution).
    With at least 100 answers, ten right and ten wrong labels among them, and a model whose confidence predicts where
    it errs, the prediction-powered interval is used where it is narrower; with contested and random answers in
    every stratum, the stratified one.

    Labels must not have seen the answers. A model that has them as gold is fitted again without them; of a calibrated
    model, the labels of the answered items are those of cross-validation.

    Parameters
    ----------
    labels : Aggregator or mapping of item to class
        A fitted model, or any labels.
    answers : Answers or None, default=None
        Answers about random items; without any, the result has no estimate but says how many are needed.
    level : float, default=0.95
        Probability of the interval.

    Returns
    -------
    AccuracyEstimate
        Prints as a sentence.

    Raises
    ------
    AnnotationError
        If the answers are not about random items, or about items without a label.

    Examples
    --------
    >>> labels = dict.fromkeys(range(1000), "cat")
    >>> print(estimate_accuracy(labels))  # doctest: +ELLIPSIS
    How accurate the labels are cannot be known without checking some: 198 random answers tell it within 5 points, ...
    >>> answers = Answers({k: "cat" if k % 10 else "dog" for k in range(40)}, sampled="random")
    >>> found = estimate_accuracy(labels, answers)
    >>> round(found.value, 2), round(found.low, 2), round(found.high, 2)
    (0.9, 0.77, 0.97)
    """
    check_parameters("estimate_accuracy", {"level": level}, {"level": Number(above=0, most=0.9999)})
    if answers is None:
        n_items = len(_labels_of(labels, None))
        return AccuracyEstimate(None, None, None, level, "none", 0, n_items, _needed(n_items, level))
    given, _ = usable_answers(as_answers(answers), "An estimate of accuracy")
    if isinstance(labels, Aggregator):
        given.codes(labels.annotations_)  # refuses unknown items, classes and other exports
    known = _labels_of(labels, given)
    missing = [item for item in given.values if item not in known]
    if missing:
        raise AnnotationError(f"{len(missing)} answered items have no label, such as {missing[0]!r}.")
    items = list(given.values)
    right = np.array([known[item] == given.values[item] for item in items], float)
    n_items = len(known)
    if set(given.kinds) == {RANDOM}:
        value, low, high, method = _from_random(right, items, labels, given, n_items, level)
    else:
        value, low, high, method = _stratified(right, items, given, level)
    classes = _by_class(known, given, level) if set(given.kinds) == {RANDOM} else {}
    return AccuracyEstimate(value, low, high, level, method, len(items), n_items, _needed(n_items, level), classes)


def _needed(n_items: int, level: float) -> dict[float, int]:
    """Answers for an interval of plus and minus 5 and 2 points."""
    return {half: answers_for(half, n_items, level=level) for half in (0.05, 0.02)}


def _labels_of(labels: Aggregator | Mapping[Any, Any], answers: Answers | None) -> dict[Any, Any]:
    """Labels by item, of a model that has not seen the answers."""
    if not isinstance(labels, Aggregator):
        return {item: label for item, label in labels.items() if label is not None}
    heldout: dict[Any, Any] = {}
    model = labels
    if answers is not None and isinstance(labels, CalibratedAggregator) and "calibration_" in vars(labels):
        heldout = labels.calibration_.heldout
    elif answers is not None:
        model = without_answers(labels, answers)
    found = dict(zip(model.item_ids_.tolist(), model.labels_.tolist()))
    return {item: label for item, label in (found | heldout).items() if label is not None}


def _from_random(
    right: Array, items: list[Any], labels: Any, given: Answers, n_items: int, level: float
) -> tuple[float, float, float, str]:
    """The exact interval, or the prediction-powered one where it is allowed and narrower."""
    n, n_right = len(right), int(right.sum())
    low, high = finite_interval(n_right, n, n_items, level)
    exact = (n_right / n, low, high, "exact")
    if n < MIN_FOR_PREDICTIONS or not MIN_OF_EACH <= n_right <= n - MIN_OF_EACH or not isinstance(labels, Aggregator):
        return exact
    model = without_answers(labels, given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        confidence = model.posterior_.max(axis=1)
    at = {item: row for row, item in enumerate(model.item_ids_.tolist())}
    every = confidence[~model.unlabelled_]
    value, low, high = prediction_powered(right, confidence[[at[item] for item in items]], every, level)
    return (value, low, high, "prediction-powered") if high - low < exact[2] - exact[1] else exact


def prediction_powered(right: Array, predicted: Array, every: Array, level: float) -> tuple[float, float, float]:
    """Mean of a sample, corrected by a prediction that is known for all items (power-tuned difference estimator).

    Parameters
    ----------
    right : ndarray of shape (n,)
        1 for right labels of the sample, 0 for wrong ones.
    predicted : ndarray of shape (n,)
        Prediction for the items of the sample, such as the confidence; it need not be calibrated.
    every : ndarray of shape (n_items,)
        Prediction for all items.
    level : float
        Probability of the interval.

    Returns
    -------
    (value, low, high) : tuple of float
        Estimate and normal interval, with the correction for a finite population.
    """
    from scipy.special import stdtrit

    n = len(right)
    spread = float(np.var(predicted))
    slope = 0.0 if spread == 0 else float(np.cov(right, predicted, bias=True)[0, 1]) / spread
    value = float(right.mean() + slope * (every.mean() - predicted.mean()))
    residual = right - slope * predicted
    variance = float(np.var(residual, ddof=2)) / n * max(1 - n / len(every), 0.0)
    half = float(stdtrit(n - 2, 0.5 + level / 2)) * np.sqrt(variance)
    return min(max(value, 0.0), 1.0), max(value - half, 0.0), min(value + half, 1.0)


def _stratified(right: Array, items: list[Any], given: Answers, level: float) -> tuple[float, float, float, str]:
    """Stratified estimate; the variance of a stratum has one right and one wrong answer added."""
    from scipy.special import ndtri

    total = sum(given.sizes.values())
    value = centre = variance = 0.0
    for name, size in given.sizes.items():
        own = right[[given.stratum[item] == name for item in items]]
        if not size or not len(own):
            continue
        share = (own.sum() + 1) / (len(own) + 2)
        value += size / total * float(own.mean())
        centre += size / total * share
        variance += (size / total) ** 2 * (1 - len(own) / size) * share * (1 - share) / len(own)
    half = float(ndtri(0.5 + level / 2)) * float(np.sqrt(variance))
    return value, max(min(centre, value) - half, 0.0), min(max(centre, value) + half, 1.0), "stratified"


def _by_class(known: Mapping[Any, Any], given: Answers, level: float) -> dict[Any, tuple[float, float, float, int]]:
    """Share of right labels among the items of each label, with exact intervals."""
    sizes: dict[Any, int] = {}
    for label in known.values():
        sizes[label] = sizes.get(label, 0) + 1
    found = {}
    for label, size in sizes.items():
        right = [given.values[item] == label for item in given.values if known[item] == label]
        if len(right) >= MIN_OF_CLASS:
            low, high = finite_interval(sum(right), len(right), size, level)
            found[label] = (sum(right) / len(right), low, high, len(right))
    return found
