"""What answers about random items say: the accuracy of labels with an interval, and what the confidence is worth."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from manyhands._core.arrays import Array, Codes
from manyhands.aggregation.base import Aggregator
from manyhands.aggregation.tempering import CROWD_POWER
from manyhands.annotations import Annotations
from manyhands.em.kernels import vote_share
from manyhands.exceptions import AnnotationError, CrowdWarning, ParameterError
from manyhands.trust.answers import CONTESTED, RANDOM, UNKNOWN, Answers, as_answers
from manyhands.trust.selection import (
    KINDS,
    CalibratedAggregator,
    Consensus,
    MapParameters,
    fit_map,
    fit_one,
    gold_of,
)
from manyhands.validation import Constraint, NoneOr, Number, OneOf, check_parameters

# ----------------------------------------------------------------------------------------------------
# Exact bounds of a count from a random sample, of a finite or an infinite population.
#
# All are inversions of tests, without asymptotics: Clopper and Pearson for the binomial distribution, and the same for
# the hypergeometric one, where the sample is a noticeable part of the population.


def binomial_interval(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Clopper-Pearson interval of a share.

    Parameters
    ----------
    successes : int
        Number of successes.
    n : int
        Size of the sample.
    level : float, default=0.95
        Probability of the interval.

    Returns
    -------
    (low, high) : tuple of float
        Contains the share with at least this probability, whatever the share is.

    Examples
    --------
    >>> [round(x, 3) for x in binomial_interval(10, 10)]
    [0.692, 1.0]
    """
    from scipy.special import betaincinv

    _check(successes, n)
    tail = (1 - level) / 2
    low = 0.0 if successes == 0 else float(betaincinv(successes, n - successes + 1, tail))
    high = 1.0 if successes == n else float(betaincinv(successes + 1, n - successes, 1 - tail))
    return low, high


def finite_interval(successes: int, n: int, population: int, level: float = 0.95) -> tuple[float, float]:
    """Exact interval of a share of a finite population, from a sample without replacement.

    Parameters
    ----------
    successes : int
        Number of successes in the sample.
    n : int
        Size of the sample.
    population : int
        Size of the population.
    level : float, default=0.95
        Probability of the interval.

    Returns
    -------
    (low, high) : tuple of float
        Shares of the population; a point if the sample is the population.

    Examples
    --------
    >>> finite_interval(3, 4, 4)
    (0.75, 0.75)
    >>> [round(x, 3) for x in finite_interval(10, 10, 20)]
    [0.8, 1.0]
    """
    _check(successes, n, population)
    tail = (1 - level) / 2
    failures = n - successes
    high = largest_count(successes, n, population, tail)
    low = population - largest_count(failures, n, population, tail)
    return low / population, high / population


@lru_cache(maxsize=4096)
def largest_count(successes: int, n: int, population: int, alpha: float) -> int:
    """Upper bound of the number of successes in a population: the largest that the sample does not refute.

    Examples
    --------
    >>> largest_count(0, 59, 10_000, 0.05), largest_count(0, 50, 10_000, 0.05)
    (493, 580)
    """
    _check(successes, n, population)
    low, high = successes, population - (n - successes)  # possible counts
    while low < high:  # the larger the count, the smaller the probability of at most `successes`
        middle = (low + high + 1) // 2
        if probability_at_most(successes, n, population, middle) > alpha:
            low = middle
        else:
            high = middle - 1
    return low


def probability_at_most(successes: int, n: int, population: int, count: int) -> float:
    """Hypergeometric P(X <= successes) for a sample of n from a population with `count` successes.

    Examples
    --------
    >>> round(probability_at_most(0, 2, 4, 1), 9)
    0.5
    """
    first = max(0, n - (population - count))
    total = sum(
        math.exp(_log_choose(count, x) + _log_choose(population - count, n - x) - _log_choose(population, n))
        for x in range(first, min(successes, count, n) + 1)
    )
    return min(total, 1.0)


def answers_for(half_width: float, population: int, *, share: float = 0.8, level: float = 0.95) -> int:
    """Number of random answers after which the interval of a share is about so narrow.

    Parameters
    ----------
    half_width : float
        Half of the width of the interval.
    population : int
        Number of items.
    share : float, default=0.8
        Assumed share of right labels.
    level : float, default=0.95
        Probability of the interval.

    Returns
    -------
    int
        By the normal approximation with the correction for a finite population; at most the population.

    Examples
    --------
    >>> answers_for(0.05, 10_000), answers_for(0.02, 10_000), answers_for(0.05, 100)
    (240, 1333, 72)
    """
    from scipy.special import ndtri

    needed = share * (1 - share) * (float(ndtri(0.5 + level / 2)) / half_width) ** 2
    return min(population, math.ceil(needed / (1 + (needed - 1) / population)))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _check(successes: int, n: int, population: int | None = None) -> None:
    if not 0 <= successes <= n or n < 1 or (population is not None and n > population):
        raise ParameterError(f"{successes} successes in a sample of {n} from {population} are impossible.")


# ----------------------------------------------------------------------------------------------------
# Which answers represent all items, and a model that has not seen them: what every estimate from answers needs.


def usable_answers(answers: Answers, what: str) -> tuple[Answers, dict[Any, float]]:
    """Return the answers that represent all items, and the weight of each."""
    kinds = answers.kinds
    if set(kinds) == {RANDOM}:
        return answers, answers.weights()
    random = answers.of_kind(RANDOM)
    if len(random):
        covered = {answers.stratum.get(item) for item in answers.values}
        whole = {name for name, size in answers.sizes.items() if size}
        is_complete = sum(answers.sizes.values()) == answers.n_items and whole <= covered
        is_complete &= len({drawing.items for drawing in answers.drawings}) <= 1  # strata of one and the same draw
        if UNKNOWN not in kinds and is_complete and all(item in answers.stratum for item in answers.values):
            return answers, answers.weights()
        return random, random.weights()
    if CONTESTED in kinds:
        raise AnnotationError(
            f"{what} needs answers about random items: these {len(answers)} are about contested ones, on which the "
            f"methods disagree and err more often than elsewhere, and no weight can replace answers about the others. "
            f"Draw random ones: ask with `purpose='confidence'`, or mh.trust.random_items."
        )
    raise AnnotationError(
        f"{what} needs answers about random items, and it is not known how the items of these {len(answers)} were "
        f"drawn. If each item had the same probability, say so: mh.trust.Answers(answers, sampled='random')."
    )


def without_answers(model: Aggregator, answers: Answers) -> Aggregator:
    """Return a fitted model that has not seen the answers."""
    gold = gold_of(model)
    kept = {item: label for item, label in gold.items() if item not in answers.values}
    if isinstance(model, CalibratedAggregator):
        fresh: Aggregator = CalibratedAggregator(model.model, None, model.hidden)
    elif len(kept) == len(gold):
        return model
    else:
        fresh = type(model)(**model.get_params(deep=False))
    return fit_one(fresh, model.annotations_, kept)


def shares_of(annotations: Annotations) -> Array:
    """Return the shares of the votes; 1 / n_classes for an item without votes.

    Shapes: returns (n_items, n_classes).
    """
    share = np.array(vote_share(annotations))
    share[annotations.n_labels == 0] = 1.0 / annotations.n_classes
    return share


def power_of(model: Aggregator) -> float:
    """Return the power that was learnt across crowds, as far as a model has applied it to its posterior."""
    method = model.model_ if isinstance(model, CalibratedAggregator) else model
    return float(getattr(method, "crowd_power_", 1.0))


# ----------------------------------------------------------------------------------------------------
# Accuracy of labels, with an interval that covers: from answers about random items, and from nothing else.

MIN_FOR_PREDICTIONS = 100  # answers from which on a normal approximation is used, if it is narrower
MIN_OF_EACH = 10  # right and wrong labels among them
MIN_OF_CLASS = 5  # answers of a class from which on its accuracy is given


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
    strata : dict of str to (int, int)
        Number of labelled items and of answers in each stratum that has random answers (`Answers.strata_of`). The
        estimate is about these items; others are new since the drawing, and nothing is known about them.
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
    strata: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def n_covered(self) -> int:
        """Number of labelled items that the estimate is about."""
        return sum(size for size, _ in self.strata.values()) if self.strata else self.n_items

    def __str__(self) -> str:
        if self.value is None:
            return (
                f"How accurate the labels are cannot be known without checking some: {self.needed[0.05]} random "
                f"answers tell it within 5 points, {self.needed[0.02]} within 2 (of {self.n_items} items)."
            )
        text = (
            f"{self.value:.1%} of the labels are right ({self.level:.0%} interval {self.low:.1%} to {self.high:.1%}, "
            f"{self.n_answers} answers, {self.method})."
        )
        n_new = self.n_items - self.n_covered
        if not n_new:
            return text
        return (
            f"{text} This is about {self.n_covered:,} of {self.n_items:,} items; of the other {n_new:,}, about which "
            f"there are no random answers, it is not known how many labels are right."
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
            "n_covered": 0 if self.value is None else self.n_covered,
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
    label_of = _labels_of(labels, given)
    missing = [item for item in given.values if item not in label_of]
    if missing:
        raise AnnotationError(f"{len(missing)} answered items have no label, such as {missing[0]!r}.")
    items = list(given.values)
    right = np.array([label_of[item] == given.values[item] for item in items], float)
    n_items = len(label_of)
    if set(given.kinds) != {RANDOM}:
        value, low, high, method = _stratified(right, items, given, level)
        strata = (
            {"all strata": (sum(item in label_of for item in given.drawings[0].items), len(items))}
            if given.drawings
            else {}
        )
        return AccuracyEstimate(
            value, low, high, level, method, len(items), n_items, _needed(n_items, level), {}, strata
        )
    sampled = _Sampled.of(given, list(label_of))
    sizes = sampled.counts()
    if len(sizes) == 1:
        value, low, high, method = _from_random(right, items, labels, given, sampled, level)
    else:
        by_stratum = sampled.by_stratum(dict(zip(items, right.tolist())))
        value, low, high = stratified_interval([(sum(own), len(own), size) for own, size in by_stratum], level)
        method = "stratified"
    classes = _by_class(label_of, given, sampled, level)
    return AccuracyEstimate(
        value, low, high, level, method, len(items), n_items, _needed(n_items, level), classes, sizes
    )


@dataclass(frozen=True, eq=False)
class _Sampled:
    """Strata of labelled items by the random drawings that they belong to."""

    names: tuple[str, ...]
    stratum: dict[Any, int]  # of each item that belongs to a stratum with answers
    n_answers: dict[int, int]

    @classmethod
    def of(cls, given: Answers, items: list[Any]) -> _Sampled:
        """Divide the items; strata without an answer are left out."""
        names, codes = given.strata_of(items)
        stratum = {item: code for item, code in zip(items, codes.tolist()) if code >= 0}
        n_answers = Counter(stratum[item] for item in given.values)
        return cls(names, {item: code for item, code in stratum.items() if n_answers[code]}, dict(n_answers))

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return the items and the answers of each stratum, by its name."""
        sizes = Counter(self.stratum.values())
        return {self.names[code]: (sizes[code], self.n_answers[code]) for code in sorted(sizes)}

    def by_stratum(
        self, values: Mapping[Any, float], among: Iterable[Any] | None = None
    ) -> list[tuple[list[float], int]]:
        """Return the values of the answered items in each stratum, and its number of items; only of some items."""
        own: dict[int, list[float]] = {}
        sizes: Counter[int] = Counter()
        for item in self.stratum if among is None else among:
            if (code := self.stratum.get(item)) is not None:
                sizes[code] += 1
                own.setdefault(code, []).extend([values[item]] if item in values else [])
        return [(own[code], sizes[code]) for code in sorted(sizes)]


def stratified_interval(strata: Sequence[tuple[float, int, int]], level: float = 0.95) -> tuple[float, float, float]:
    """Return a share of several strata with an interval: from the successes, the sample and the size of each.

    The exact intervals of the strata are combined by the squares of their distances from the estimates (the method of
    variance estimates recovery, Zou and Donner 2008), which is the exact interval where there is one stratum. A stratum
    without a sample may have any share: it widens the interval by its whole weight.

    Examples
    --------
    >>> [round(x, 3) for x in stratified_interval([(10, 10, 20)])], finite_interval(10, 10, 20)
    ([1.0, 0.8, 1.0], (0.8, 1.0))
    >>> [round(x, 3) for x in stratified_interval([(40, 50, 500), (2, 4, 50)])]
    [0.773, 0.649, 0.866]
    """
    n_items = sum(size for _, n, size in strata if n)
    total = sum(size for _, _, size in strata)
    value = sum(successes / n * size for successes, n, size in strata if n) / n_items
    below = above = 0.0
    for successes, n, size in strata:
        if n:
            low, high = finite_interval(int(successes), n, size, level)
            below += (size / total * (successes / n - low)) ** 2
            above += (size / total * (high - successes / n)) ** 2
    free = 1 - n_items / total
    centre = value * (1 - free)
    return value, max(centre - math.sqrt(below), 0.0), min(centre + free + math.sqrt(above), 1.0)


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
    label_of = dict(zip(model.item_ids_.tolist(), model.labels_.tolist()))
    return {item: label for item, label in (label_of | heldout).items() if label is not None}


def _from_random(
    right: Array, items: list[Any], labels: Any, given: Answers, sampled: _Sampled, level: float
) -> tuple[float, float, float, str]:
    """The exact interval, or the prediction-powered one where it is allowed and narrower."""
    n, n_right, n_items = len(right), int(right.sum()), len(sampled.stratum)
    low, high = finite_interval(n_right, n, n_items, level)
    exact = (n_right / n, low, high, "exact")
    if n < MIN_FOR_PREDICTIONS or not MIN_OF_EACH <= n_right <= n - MIN_OF_EACH or not isinstance(labels, Aggregator):
        return exact
    model = without_answers(labels, given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        confidence = model.posterior_.max(axis=1)
    at = {item: row for row, item in enumerate(model.item_ids_.tolist())}
    could = [item in sampled.stratum for item in model.item_ids_.tolist()]
    every = confidence[~model.unlabelled_ & np.array(could)]
    value, low, high = prediction_powered(right, confidence[[at[item] for item in items]], every, level)
    return (value, low, high, "prediction-powered") if high - low < exact[2] - exact[1] else exact


def prediction_powered(right: Array, predicted: Array, every: Array, level: float) -> tuple[float, float, float]:
    """Mean of a sample, corrected by a prediction that is known for all items (power-tuned difference estimator).

    Shapes: right (n,); predicted (n,); every (n_items,).
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


def _by_class(
    label_of: Mapping[Any, Any], given: Answers, sampled: _Sampled, level: float
) -> dict[Any, tuple[float, float, float, int]]:
    """Share of right labels among the items of each label, with exact intervals."""
    items: dict[Any, list[Any]] = {}
    for item in sampled.stratum:
        items.setdefault(label_of[item], []).append(item)
    right = {item: float(label_of[item] == label) for item, label in given.values.items()}
    estimates = {}
    for label in dict.fromkeys(label_of.values()):
        own = sampled.by_stratum(right, items.get(label, []))
        n = sum(len(values) for values, _ in own)
        if n >= MIN_OF_CLASS:
            estimates[label] = (
                *stratified_interval([(sum(values), len(values), size) for values, size in own], level),
                n,
            )
    return estimates


# ----------------------------------------------------------------------------------------------------
# What the confidence is worth.

MIN_FOR_KINDS = 20  # answers from which on a kind other than plain may be chosen
N_FOLDS, N_REPEATS = 5, 2  # of the cross-fitting of the answers


@dataclass(frozen=True, eq=False)
class Calibration:
    """How the posterior was recalibrated, and how certain that is.

    Attributes
    ----------
    parameters : MapParameters
        The fitted parameters.
    n_answers : int
        Number of answers that were used.
    scale_interval : tuple of float
        Interval of the scale.
    shift_interval : tuple of float
        Interval of the shift.
    expected_accuracy : float
        Mean confidence after calibration of the items whose class was not known before: the expected share of right
        labels.
    accuracy_interval : tuple of float
        Interval of the share of right labels, by the held-out answers; `estimate_accuracy` assumes less.
    level : float
        Probability of the intervals.
    log_loss : dict of str to float
        Mean log loss on held-out answers of every kind that was tried.
    heldout : dict of item to class
        Label of each answered item by a calibration that has not seen its answer.
    heldout_confidence : dict of item to float
        Confidence of these labels.
    """

    parameters: MapParameters
    n_answers: int
    scale_interval: tuple[float, float]
    shift_interval: tuple[float, float]
    expected_accuracy: float
    accuracy_interval: tuple[float, float]
    level: float
    log_loss: dict[str, float]
    heldout: dict[Any, Any]
    heldout_confidence: dict[Any, float] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The kind that was chosen: "plain", "classwise" or "map"."""
        return self.parameters.kind

    def __str__(self) -> str:
        what = {"plain": "scale and shift", "classwise": "scale, shift and a shift per class", "map": "the answer map"}
        low, high = self.accuracy_interval
        scale = f"scale {self.parameters.scale:.2f} ({self.scale_interval[0]:.2f} to {self.scale_interval[1]:.2f})"
        return (
            f"Confidence is calibrated on {self.n_answers} random answers by {what[self.kind]}: {scale}, shift "
            f"{self.parameters.shift:+.2f} ({self.shift_interval[0]:+.2f} to {self.shift_interval[1]:+.2f}); its mean "
            f"is {self.expected_accuracy:.1%} ({low:.1%} to {high:.1%})."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the main values for a summary.

        Returns
        -------
        dict
            Values that JSON can hold.
        """
        return {
            "kind": self.kind,
            "n_answers": self.n_answers,
            "scale": round(self.parameters.scale, 6),
            "scale_interval": [round(x, 6) for x in self.scale_interval],
            "shift": round(self.parameters.shift, 6),
            "shift_interval": [round(x, 6) for x in self.shift_interval],
            "expected_accuracy": round(self.expected_accuracy, 6),
            "accuracy_interval": [round(x, 6) for x in self.accuracy_interval],
            "level": self.level,
            "heldout_log_loss": {kind: round(loss, 6) for kind, loss in self.log_loss.items()},
            "sentence": str(self),
        }


def calibrate(
    model: Aggregator, answers: Answers | Mapping[Any, Any], *, kind: str | None = None, level: float = 0.9
) -> CalibratedAggregator:
    """Recalibrate the posterior of a fitted method by answers about random items.

    Scale and shift are fitted by maximum a posteriori (`manyhands.trust.selection`). With at least 20 answers, a
    shift per class and the K x K answer map are tried too, and the kind with the lowest log loss on held-out answers is
    used (five folds, twice). The map may change labels; so may the shifts.

    The posterior that is calibrated has not seen the answers: if they were gold of the fit, it is repeated without
    them. Afterwards the answered items are certain.

    Parameters
    ----------
    model : Aggregator
        A fitted method.
    answers : Answers
        Answers about items that were drawn at random. Contested ones are used too, weighted by stratum, if random
        ones are among them and every stratum has answers.
    kind : {"plain", "classwise", "map"} or None, default=None
        Which parameters to fit; None chooses.
    level : float, default=0.9
        Probability of the intervals.

    Returns
    -------
    CalibratedAggregator
        A fitted model with the new posterior; ``calibration_`` is a `Calibration`, which prints as a sentence.

    Raises
    ------
    AnnotationError
        If the answers are not about random items.

    Examples
    --------
    >>> import manyhands as mh
    >>> crowd = mh.simulate.make_crowd(n_items=300, n_workers=20, random_state=0)
    >>> truth = dict(zip(crowd.annotations.item_ids.tolist(), crowd.truth.tolist()))
    >>> drawn = mh.trust.random_items(crowd.annotations, n=50)
    >>> model = mh.DawidSkene().fit(crowd.annotations)
    >>> calibrated = mh.calibrate(model, drawn.answer({item: truth[item] for item in drawn}))
    >>> calibrated.posterior_.shape
    (300, 2)
    """
    constraints: dict[str, Constraint] = {"kind": NoneOr(OneOf(KINDS)), "level": Number(above=0, most=0.9999)}
    check_parameters("calibrate", {"kind": kind, "level": level}, constraints)
    given, weights = usable_answers(as_answers(answers), "Calibration")
    annotations = model.annotations_
    rows, truth = given.codes(annotations)
    weight = np.array([weights[item] for item in annotations.item_ids[rows].tolist()])
    weight *= weight.sum() / (weight @ weight)  # as many answers as have the same precision (Kish)
    reference = without_answers(model, given)
    prior_scale = CROWD_POWER / power_of(reference)
    everything = Consensus.of(reference.posterior_, shares_of(annotations))
    seen = everything[rows]
    fitted, heldout, loss = choose_map(seen, truth, weight, prior_scale, None if kind is None else [kind])
    answered = annotations.item_ids[rows].tolist()
    labels = dict(zip(answered, annotations.classes[heldout.argmax(axis=1)].tolist()))
    gold_of_items = gold_of(reference)  # contested answers and gold; random answers are not among them
    is_open = (annotations.n_labels > 0) & np.array(
        [item not in gold_of_items for item in annotations.item_ids.tolist()]
    )
    could = given.strata_of(annotations.item_ids.tolist())[1] >= 0  # the confidence of new items was not checked
    labelled = np.flatnonzero((is_open if (is_open & could).any() else annotations.n_labels > 0) & could)
    gap = _heldout_gap(heldout, truth)
    calibration = _describe(fitted, everything[labelled], gap, weight, level, loss, labels)
    calibration = replace(calibration, heldout_confidence=dict(zip(answered, heldout.max(axis=1).tolist())))
    return _refit(model, given, calibration)


def _refit(model: Aggregator, answers: Answers, calibration: Calibration) -> CalibratedAggregator:
    """The calibrated model, fitted like the given one, with the answers known afterwards."""
    hidden, method = tuple(answers.values), model
    if isinstance(model, CalibratedAggregator):
        hidden, method = (*model.hidden, *hidden), model.model
    calibrated = CalibratedAggregator(method, calibration.parameters, hidden)
    fit_one(calibrated, model.annotations_, gold_of(model) | dict(answers.values))
    calibrated.calibration_ = calibration
    return calibrated


def choose_map(
    seen: Consensus, truth: Codes, weight: Array, prior_scale: float, kinds: Sequence[str] | None = None
) -> tuple[MapParameters, Array, dict[str, float]]:
    """Fit the kind with the lowest log loss on held-out answers.

    Shapes: truth (n_answers,); weight (n_answers,); returns heldout (n_answers, n_classes).
    """
    tried = list(kinds or (KINDS if len(truth) >= MIN_FOR_KINDS else KINDS[:1]))
    heldout = {one: heldout_probabilities(seen, truth, one, weight, prior_scale) for one in tried}
    loss = {one: _log_loss(q, truth, weight) for one, q in heldout.items()}
    best = min(tried, key=loss.__getitem__)
    return fit_map(seen, truth, best, weight=weight, prior_scale=prior_scale), heldout[best], loss


def heldout_probabilities(seen: Consensus, truth: Codes, kind: str, weight: Array, prior_scale: float) -> Array:
    """Return the calibrated probabilities of each answered item, by fits that have not seen its answer.

    Shapes: truth (n_answers,); weight (n_answers,); returns (n_answers, n_classes).
    """
    rng = np.random.default_rng(0)
    proba = np.zeros(seen.share.shape)
    for _ in range(N_REPEATS):
        fold = rng.permutation(len(truth)) % min(N_FOLDS, max(len(truth), 2))
        for k in np.unique(fold):
            train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            fitted = fit_map(seen[train], truth[train], kind, weight=weight[train], prior_scale=prior_scale)
            proba[test] += fitted.apply(seen[test]) / N_REPEATS
    return proba


def _log_loss(q: Array, truth: Codes, weight: Array) -> float:
    """Weighted mean log loss."""
    return -float(weight @ np.log(np.maximum(q[np.arange(len(q)), truth], 1e-12)) / weight.sum())


def _heldout_gap(q: Array, truth: Codes) -> Array:
    """Right or not, minus the confidence, of each answered item by a calibration that has not seen its answer."""
    return np.asarray((q.argmax(axis=1) == truth) - q.max(axis=1), np.float64)


def expected_accuracy(
    confidence: Array, gap: Array, level: float, weight: Array | None = None
) -> tuple[float, float, float]:
    """Return the mean confidence, and an interval of the accuracy by the held-out answers.

    Weighted answers count as many as have the same precision, which is the sum of the weights (Kish).

    Shapes: confidence (n_items,); gap (n_answers,); weight (n_answers,).
    """
    from scipy.special import stdtrit

    mean, n = float(confidence.mean()), len(gap)
    if weight is not None and np.ptp(weight) > 0 and n >= 3:
        # The quantiles of n unweighted values, then those of as many answers as the weights are worth.
        centre = float(weight @ gap / weight.sum())
        values, weights = np.r_[gap, 1.0 - mean, -mean], np.r_[weight, 1.0, 1.0]
        middle = weights @ values / weights.sum()
        n_effective = max(float(weight.sum()), 2.0)
        spread = math.sqrt(weights @ (values - middle) ** 2 / weights.sum() * (n_effective + 2) / (n_effective + 1))
        half = float(stdtrit(n_effective - 1, 0.5 + level / 2)) * spread / math.sqrt(n_effective)
        centre += mean
        return mean, max(min(centre - half, mean), 0.0), min(max(centre + half, mean), 1.0)
    if n < 3:
        return mean, 0.0, 1.0
    # One answer at either end is added, so that a sample without an error is not taken for certainty.
    spread = float(np.std(np.r_[gap, 1.0 - mean, -mean], ddof=1))
    half = float(stdtrit(n - 1, 0.5 + level / 2)) * spread / np.sqrt(n)
    centre = mean + float(gap.mean())
    return mean, max(min(centre - half, mean), 0.0), min(max(centre + half, mean), 1.0)


def _describe(
    fitted: MapParameters,
    items: Consensus,
    gap: Array,
    weight: Array,
    level: float,
    loss: dict[str, float],
    heldout: dict[Any, Any],
) -> Calibration:
    """Collect the parameters and their intervals."""
    from scipy.special import ndtri

    z = float(ndtri(0.5 + level / 2))
    spread = np.sqrt(np.diag(fitted.covariance))
    ratio = float(np.exp(z * spread[0] / fitted.scale))  # the scale is positive
    mean, low, high = expected_accuracy(fitted.apply(items).max(axis=1), gap, level, weight)
    return Calibration(
        parameters=fitted,
        n_answers=len(gap),
        scale_interval=(fitted.scale / ratio, fitted.scale * ratio),
        shift_interval=(fitted.shift - z * float(spread[1]), fitted.shift + z * float(spread[1])),
        expected_accuracy=mean,
        accuracy_interval=(low, high),
        level=level,
        log_loss=loss,
        heldout=heldout,
    )
