"""Guarantees with a confidence: labels of which few are wrong (`guarantee`), and sets of classes (`label_sets`).

A label set holds every class whose posterior is at least a threshold, and always the label itself. Sets only grow as
the threshold falls, so the number of items whose set misses the truth is bounded as in `guarantee`, by an exact bound
from random answers: P(share of sets with the truth >= coverage) >= confidence. Split conformal prediction guarantees
the mean over draws only, of which about every second draw falls below.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array, Codes, Mask
from manyhands.aggregation.base import Aggregator
from manyhands.em.decisions import TIE_DIGITS
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.trust.answers import RANDOM, Answers, as_answers
from manyhands.trust.calibration import largest_count, probability_at_most, without_answers
from manyhands.trust.selection import label_codes
from manyhands.validation import Constraint, NoneOr, Number, check_parameters

# ----------------------------------------------------------------------------------------------------
# A guarantee about the errors of labels: which labels stand, and which items an expert must answer.
#
# Items are released in order of confidence. For each threshold, the number of wrong labels among the released ones is
# bounded by an exact hypergeometric bound from the random answers; the threshold is lowered as long as the bound is at
# most the guaranteed share of all items. Wrong labels among the released ones only increase as the threshold falls, so
# that one error probability serves all thresholds: P(share of wrong labels <= error) >= confidence, without asymptotics
# (probably approximately correct labels, Candes, Ilyas and Zrnic 2025, with sampling without replacement).
#
# Answers of several drawings are random samples of strata (`Answers.strata_of`). Every stratum that is used has a bound
# of its own, with an equal part of the error probability. Which strata are used depends on their sizes and numbers of
# answers alone, so that the choice changes no probability; the items of all others go to the expert.

_ROUNDING = 1e-9  # of a share times a count, before floor and ceil: 0.29 * 100 is 28.999999999999996
_SHARE = r"(\d+(?:\.\d+)?)\s*%"
_GUARANTEE = re.compile(rf"\s*error\s*<=?\s*{_SHARE}\s*(?:at|with)\s*{_SHARE}\s*", re.IGNORECASE)
SHARES: dict[str, Constraint] = {"error": Number(above=0, most=0.9999), "confidence": Number(above=0, most=0.9999)}


@dataclass(frozen=True, eq=False)
class _Strata:
    """Strata with random answers that a guarantee uses, and the error probability of each."""

    names: tuple[str, ...]
    items: tuple[Mask, ...]  # labelled items of each, (n_items,)
    answers: tuple[Mask, ...]  # answers of each, (n_answers,)
    alpha: float

    @classmethod
    def choose(cls, given: Answers, reference: Aggregator, rows: Codes, wrong_share: float, alpha: float) -> _Strata:
        """Choose by the numbers of items and answers; a wrong_share of 1 uses every stratum with answers.

        The value of a stratum is the share of its labels that can stand at most, in about, 1 - least / answers, times
        its size. With no value anywhere, the one with most answers is used.
        """
        names, codes = given.strata_of(reference.item_ids_.tolist())
        codes = np.where(reference.unlabelled_, -1, codes)
        with_answers = [at for at in range(len(names)) if np.any(codes[rows] == at)]
        if not with_answers:
            raise AnnotationError("No item that was answered as a random one has a label, so that nothing is checked.")
        sizes = [int(np.sum(codes == at)) for at in with_answers]
        numbers = [int(np.sum(codes[rows] == at)) for at in with_answers]
        used, best = [int(np.argmax(numbers))], 0.0
        for number in range(1, len(with_answers) + 1):
            allowed = [math.floor(wrong_share * size + _ROUNDING) for size in sizes]
            least = [least_answers(size, most, alpha / number) for size, most in zip(sizes, allowed)]
            value = [size * max(0.0, 1 - few / n) for size, n, few in zip(sizes, numbers, least)]
            first = sorted(range(len(with_answers)), key=lambda at: (-value[at], at))[:number]
            total = sum(value[at] for at in first)
            if total > best + _ROUNDING and all(value[at] for at in first):
                used, best = sorted(first), total
        if wrong_share == 1:
            used = list(range(len(with_answers)))
        chosen = [with_answers[at] for at in used]
        items, answers = ([array == at for at in chosen] for array in (codes, codes[rows]))
        return cls(tuple(names[at] for at in chosen), tuple(items), tuple(answers), alpha / len(chosen))

    def __iter__(self) -> Iterator[tuple[str, Mask, Mask]]:
        return iter(zip(self.names, self.items, self.answers))


@dataclass(frozen=True, eq=False)
class Guarantee:
    """Which labels stand under a guarantee, and which items must go to an expert.

    Attributes
    ----------
    error : float
        Guaranteed largest share of wrong labels among all items, those of the expert counted as right.
    confidence : float
        Probability with which the guarantee is kept.
    threshold : float
        Labels with at least this confidence stand; infinite if none do. Of several strata the lowest (see `strata`).
    stands : ndarray of shape (n_items,) of bool
        Items whose label stands: released ones, and those that were answered.
    to_expert : ndarray of shape (n_items,) of bool
        Items that an expert must still answer.
    bound : float
        Upper bound of the share of wrong labels, at this confidence.
    n_answers : int
        Number of random answers.
    n_audit : int
        Items that would have to go to the expert if they were drawn at random instead.
    n_least : int
        Smallest number of answers, all of them right, with which any label could stand.
    strata : dict of str to (int, int, float)
        Number of labelled items, number of answers, and threshold of each stratum that is covered. Items of no
        stratum, about which the answers say nothing or too little, go to the expert.
    """

    error: float
    confidence: float
    threshold: float
    stands: Mask
    to_expert: Mask
    bound: float
    n_answers: int
    n_audit: int
    n_least: int
    strata: dict[str, tuple[int, int, float]] = field(default_factory=dict)

    @property
    def n_covered(self) -> int:
        """Number of labelled items that the answers cover."""
        total = int((self.stands | self.to_expert).sum())
        return sum(size for size, _, _ in self.strata.values()) if self.strata else total

    def __str__(self) -> str:
        guaranteed = f"error <= {self.error:.1%} at {self.confidence:.0%}"
        total = int((self.stands | self.to_expert).sum())
        few = f" {self.n_answers} random answers are too few for more: it takes at least {self.n_least}."
        if not math.isfinite(self.threshold):
            why = few if self.n_answers < self.n_least else f" The {self.n_answers} answers show too many errors."
            return (
                f"{guaranteed}: only the answered items stand, {int(self.to_expert.sum())} need an expert.{why}"
                f"{_not_covered(total - self.n_covered, 'go to the expert')}"
            )
        return (
            f"{guaranteed}: {int(self.stands.sum())} of {total} labels stand (confidence of at least "
            f"{_thresholds(self.threshold, self.strata)}, or answered), {int(self.to_expert.sum())} items need an "
            f"expert; a random audit would need {self.n_audit}.{few if self.n_answers < self.n_least else ''}"
            f"{_not_covered(total - self.n_covered, 'go to the expert')}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return all values but the masks, for a summary.

        Returns
        -------
        dict
            Values that JSON can hold.
        """
        return {
            "error": self.error,
            "confidence": self.confidence,
            "threshold": round(self.threshold, 6) if math.isfinite(self.threshold) else None,
            "n_stand": int(self.stands.sum()),
            "n_to_expert": int(self.to_expert.sum()),
            "n_random_audit": self.n_audit,
            "bound": round(self.bound, 6),
            "n_answers": self.n_answers,
            "n_least": self.n_least,
            "n_covered": self.n_covered,
            "strata": _strata_as_dict(self.strata),
            "sentence": str(self),
        }


def _thresholds(lowest: float, strata: Mapping[str, tuple[int, int, float]]) -> str:
    """Return the threshold, or that of each stratum."""
    if len(strata) < 2:
        return f"{lowest:.3f}"
    pairs = [(name, threshold) for name, (_, _, threshold) in strata.items()]
    return ", ".join(f"{threshold:.3f} in {name}" for name, threshold in pairs if math.isfinite(threshold))


def _not_covered(number: int, what: str) -> str:
    """Return a sentence on the items about which the answers say nothing, or too little."""
    if not number:
        return ""
    items = "1 item is" if number == 1 else f"{number:,} items are"
    return f" {items} not covered, because there are no or too few random answers about items like these: they {what}."


def _strata_as_dict(strata: Mapping[str, tuple[int, int, float]]) -> dict[str, Any]:
    return {
        name: {"n_items": size, "n_answers": n, "threshold": round(at, 6) if math.isfinite(at) else None}
        for name, (size, n, at) in strata.items()
    }


def parse_guarantee(text: str) -> tuple[float, float]:
    """Read a guarantee such as "error<=5% at 95%".

    Examples
    --------
    >>> parse_guarantee("error<=5% at 95%")
    (0.05, 0.95)
    """
    match = _GUARANTEE.fullmatch(text)
    shares = [float(match[k]) / 100 for k in (1, 2)] if match else []
    if not shares or not all(0 < share < 1 for share in shares):
        raise ParameterError(f'The guarantee {text!r} is not of the form "error<=5% at 95%".')
    return shares[0], shares[1]


def guarantee(
    model: Aggregator, answers: Answers | Mapping[Any, Any], *, error: float = 0.05, confidence: float = 0.95
) -> Guarantee:
    """Say which labels stand so that at most a given share of all labels is wrong, with a given probability.

    The share is that of all labelled items, those that an expert answers counted as right. Items that were new after
    the answers were drawn, and strata with too few answers, go to the expert. The guarantee is about draws
    of the random answers: it is kept in at least the given share of them. Labels and confidence must not depend on
    these answers; a model that has them as gold is fitted again without them, and of a calibrated model the original
    posterior is used.

    Parameters
    ----------
    model : Aggregator
        A fitted model.
    answers : Answers
        Answers about items that were drawn at random; others are left out.
    error : float, default=0.05
        Largest share of wrong labels.
    confidence : float, default=0.95
        Probability of the guarantee.

    Returns
    -------
    Guarantee
        Prints as a sentence.

    Raises
    ------
    AnnotationError
        If no answer is about a random item.

    Examples
    --------
    >>> import manyhands as mh
    >>> crowd = mh.simulate.make_crowd(n_items=400, n_workers=20, random_state=0)
    >>> truth = dict(zip(crowd.annotations.item_ids.tolist(), crowd.truth.tolist()))
    >>> drawn = mh.trust.random_items(crowd.annotations, n=100)
    >>> model = mh.MajorityVote().fit(crowd.annotations)
    >>> found = mh.guarantee(model, drawn.answer({item: truth[item] for item in drawn}), error=0.1)
    >>> bool((found.stands | found.to_expert).all())
    True
    """
    check_parameters("guarantee", {"error": error, "confidence": confidence}, SHARES)
    reference, given, rows, truth = unseen(model, answers, "A guarantee")
    label = label_codes(reference)
    score = np.round(reference.posterior_.max(axis=1), TIE_DIGITS)
    labelled = ~reference.unlabelled_
    wrong = label[rows] != truth
    used = _Strata.choose(given, reference, rows, error, 1 - confidence)
    stands = np.zeros(len(score), bool)
    stands[rows] = labelled[rows]
    strata: dict[str, tuple[int, int, float]] = {}
    bounds, audits, least, population = 0, 0, 0, 0
    for name, items, own in used:
        size, n = int(items.sum()), int(own.sum())
        allowed = math.floor(error * size + _ROUNDING)
        threshold, bound = release(score[items], score[rows][own], wrong[own], allowed, used.alpha)
        stands |= items & (score >= threshold)
        strata[name] = (size, n, threshold)
        population, bounds = population + size, bounds + bound
        audits += random_audit(int(wrong[own].sum()), n, size, allowed, used.alpha)
        least = max(least, least_answers(size, allowed, used.alpha))
    covered = np.any(used.items, axis=0)
    return Guarantee(
        error=error,
        confidence=confidence,
        threshold=min(threshold for _, _, threshold in strata.values()),
        stands=stands,
        to_expert=labelled & ~stands,
        bound=bounds / population,
        n_answers=sum(n for _, n, _ in strata.values()),
        n_audit=audits + int(np.sum(labelled & ~covered & ~stands)),
        n_least=least,
        strata=strata,
    )


def unseen(
    model: Aggregator, answers: Answers | Mapping[Any, Any], what: str
) -> tuple[Aggregator, Answers, Codes, Codes]:
    """Return a model that has not seen the random answers, these, their rows and their classes.

    Shapes: returns rows (n_answers,); returns truth (n_answers,).
    """
    given = as_answers(answers).of_kind(RANDOM)
    if not len(given):
        raise AnnotationError(
            f"{what} needs answers about random items, which ask with `purpose='confidence'` or mh.trust.random_items "
            f"draws. If each item had the same probability, say so: mh.trust.Answers(answers, sampled='random')."
        )
    reference = without_answers(model, given)
    rows, truth = given.codes(reference.annotations_)
    return reference, given, rows, truth


def release(every: Array, sampled: Array, wrong: Mask, allowed: int, alpha: float) -> tuple[float, int]:
    """Return the lowest confidence at which labels stand, and the bound of wrong labels among them.

    Shapes: every (n_items,); sampled (n_answers,); wrong (n_answers,).
    """
    n, population = len(sampled), len(every)
    errors = np.sort(sampled[wrong])[::-1]
    bounds: list[int] = []  # of 0, 1, ... errors among the answers, as long as they are small enough
    while len(bounds) <= len(errors) and (bound := largest_count(len(bounds), n, population, alpha)) <= allowed:
        bounds.append(bound)
    values, counts = np.unique(every, return_counts=True)
    n_released = counts[::-1].cumsum()[::-1]
    few = values[n_released <= allowed]  # no more labels than may be wrong: nothing needs to be known
    possible = values if len(bounds) > len(errors) else values[values > errors[len(bounds) - 1]] if bounds else few
    chosen = [float(confidences.min()) for confidences in (few, possible) if len(confidences)]
    if not chosen:
        return math.inf, 0
    threshold = min(chosen)
    n_errors = int(np.sum(errors >= threshold))
    most = int(n_released[np.searchsorted(values, threshold)])
    return threshold, min(most, bounds[n_errors] if n_errors < len(bounds) else most)


def random_audit(n_wrong: int, n: int, population: int, allowed: int, alpha: float) -> int:
    """Items that an expert must still answer for the same guarantee if they are drawn at random.

    The wrong labels of all items are bounded by the answers, with half of the error probability; with the other half,
    the number of random items is chosen so that enough of the wrong ones are among them.

    Examples
    --------
    >>> random_audit(0, 100, 1000, 50, 0.05), random_audit(20, 100, 1000, 50, 0.05)
    (0, 759)
    """
    worst = largest_count(n_wrong, n, population, alpha / 2)
    to_find = worst - allowed
    low, high = n, population
    while low < high:
        middle = (low + high) // 2
        if to_find <= 0 or probability_at_most(to_find - 1, middle, population, worst) <= alpha / 2:
            high = middle
        else:
            low = middle + 1
    return low - n


def least_answers(population: int, allowed: int, alpha: float) -> int:
    """Smallest number of answers, all right, with which labels can stand."""
    low, high = 1, population
    while low < high:
        middle = (low + high) // 2
        if largest_count(0, middle, population, alpha) <= allowed:
            high = middle
        else:
            low = middle + 1
    return low


_SETS = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*(?:(?:at|with)\s*(\d+(?:\.\d+)?)\s*%\s*)?")


@dataclass(frozen=True, eq=False)
class LabelSets:
    """A set of classes for each item.

    Attributes
    ----------
    coverage : float
        Guaranteed share of items whose set contains the truth.
    confidence : float or None
        Probability of the guarantee; None guarantees the mean over draws of the answers (split conformal prediction).
    threshold : float
        Classes with at least this posterior are in a set; 0 if all are. Of several strata the lowest (see `strata`).
    members : ndarray of shape (n_items, n_classes) of bool
        Which classes are in the set of each item; none for an item without labels.
    mean_size : float
        Mean number of classes of a set.
    n_answers : int
        Number of random answers.
    classes : ndarray of shape (n_classes,)
        The classes.
    strata : dict of str to (int, int, float)
        Number of labelled items, number of answers, and threshold of each stratum that is covered. Sets of items of no
        stratum have all classes.
    """

    coverage: float
    confidence: float | None
    threshold: float
    members: Mask
    mean_size: float
    n_answers: int
    classes: npt.NDArray[Any]
    strata: dict[str, tuple[int, int, float]] = field(default_factory=dict)

    @property
    def n_covered(self) -> int:
        """Number of labelled items that the answers cover."""
        total = int(self.members.any(axis=1).sum())
        return sum(size for size, _, _ in self.strata.values()) if self.strata else total

    def __str__(self) -> str:
        at = "on average over draws of the answers" if self.confidence is None else f"at {self.confidence:.0%}"
        single = float((self.members.sum(axis=1) == 1).mean())
        n_labelled = int(self.members.any(axis=1).sum())
        return (
            f"Label sets contain the truth for {self.coverage:.0%} of the items, {at}: {self.mean_size:.2f} classes on "
            f"average, {single:.0%} of the sets have one ({self.n_answers} answers)."
            f"{_not_covered(n_labelled - self.n_covered, 'have all classes')}"
        )

    def as_lists(self) -> list[list[Any]]:
        """Return the classes of each item's set.

        Returns
        -------
        list of list
            In the order of the items.
        """
        return [self.classes[row].tolist() for row in self.members]

    def as_dict(self) -> dict[str, Any]:
        """Return all values but the sets, for a summary.

        Returns
        -------
        dict
            Values that JSON can hold.
        """
        return {
            "coverage": self.coverage,
            "confidence": self.confidence,
            "threshold": round(self.threshold, 6),
            "mean_size": round(self.mean_size, 6),
            "n_answers": self.n_answers,
            "n_covered": self.n_covered,
            "strata": _strata_as_dict(self.strata),
            "sentence": str(self),
        }


def parse_sets(text: str) -> tuple[float, float]:
    """Read a coverage such as "90%" or "90% at 95%".

    Examples
    --------
    >>> parse_sets("90%"), parse_sets("80% at 90%")
    ((0.9, 0.95), (0.8, 0.9))
    """
    match = _SETS.fullmatch(text)
    shares = [float(match[1]) / 100, float(match[2] or 95) / 100] if match else []
    if not shares or not all(0 < share < 1 for share in shares):
        raise ParameterError(f'The coverage of sets {text!r} is not of the form "90%" or "90% at 95%".')
    return shares[0], shares[1]


def label_sets(
    model: Aggregator,
    answers: Answers | Mapping[Any, Any],
    *,
    coverage: float = 0.9,
    confidence: float | None = 0.95,
) -> LabelSets:
    """Return a set of classes for each item, so that a guaranteed share of the sets contains the truth.

    Parameters
    ----------
    model : Aggregator
        A fitted model; its posterior must not depend on the answers, see `manyhands.guarantee`.
    answers : Answers
        Answers about items that were drawn at random; others are left out.
    coverage : float, default=0.9
        Share of items whose set contains the truth.
    confidence : float or None, default=0.95
        Probability of the guarantee over draws of the answers; None guarantees the mean coverage over draws, with
        smaller sets (split conformal prediction).

    Returns
    -------
    LabelSets
        Prints as a sentence. With too few answers every set has all classes.

    Raises
    ------
    AnnotationError
        If no answer is about a random item.

    Examples
    --------
    >>> import manyhands as mh
    >>> crowd = mh.simulate.make_crowd(n_items=400, n_workers=20, n_classes=4, random_state=0)
    >>> truth = dict(zip(crowd.annotations.item_ids.tolist(), crowd.truth.tolist()))
    >>> drawn = mh.trust.random_items(crowd.annotations, n=50)
    >>> model = mh.MajorityVote().fit(crowd.annotations)
    >>> sets = mh.trust.label_sets(model, drawn.answer({item: truth[item] for item in drawn}))
    >>> sets.members.shape
    (400, 4)
    """
    share = Number(above=0, most=0.9999)
    constraints: dict[str, Constraint] = {"coverage": share, "confidence": NoneOr(share)}
    check_parameters("label_sets", {"coverage": coverage, "confidence": confidence}, constraints)
    reference, given, rows, truth = unseen(model, answers, "A guarantee about label sets")
    posterior = reference.posterior_
    labelled = ~reference.unlabelled_
    top = np.maximum(label_codes(reference), 0)
    score = posterior[rows, truth].copy()
    score[top[rows] == truth] = 1.0  # the label is always in the set
    missed, alpha = (1.0, 1.0) if confidence is None else (1 - coverage, 1 - confidence)
    used = _Strata.choose(given, reference, rows, missed, alpha)
    lowest = np.zeros(len(posterior))
    strata: dict[str, tuple[int, int, float]] = {}
    for name, items, own in used:
        size = int(items.sum())
        if confidence is None:
            threshold = conformal_threshold(score[own], coverage)
        else:
            threshold = pac_threshold(score[own], size, math.floor((1 - coverage) * size + _ROUNDING), used.alpha)
        lowest[items] = threshold
        strata[name] = (size, int(own.sum()), threshold)
    members = posterior >= lowest[:, None]
    members[np.arange(len(members)), top] = True
    members[rows] = np.eye(posterior.shape[1], dtype=bool)[truth]  # an answered item is known
    members[~labelled] = False
    mean_size = float(members[labelled].sum(axis=1).mean())
    lowest_of_all = min(threshold for _, _, threshold in strata.values())
    n_answers = sum(n for _, n, _ in strata.values())
    return LabelSets(coverage, confidence, lowest_of_all, members, mean_size, n_answers, reference.classes_, strata)


def conformal_threshold(score: Array, coverage: float) -> float:
    """Threshold of split conformal prediction.

    Examples
    --------
    >>> conformal_threshold(np.linspace(0.1, 0.9, 9), 0.9)
    0.1

    Shapes: score (n_answers,).
    """
    needed = math.ceil((len(score) + 1) * coverage - _ROUNDING)
    return 0.0 if needed > len(score) else float(np.sort(score)[::-1][needed - 1])


def pac_threshold(score: Array, population: int, allowed: int, alpha: float) -> float:
    """The largest threshold at which the bound of missed items is at most the allowed number.

    Shapes: score (n_answers,).
    """
    ordered = np.sort(score)
    n_misses = -1
    while n_misses + 1 < len(score) and largest_count(n_misses + 1, len(score), population, alpha) <= allowed:
        n_misses += 1
    # A threshold at the (n_misses + 1)-th lowest score is missed by at most n_misses answers.
    return 0.0 if n_misses < 0 else float(ordered[n_misses])
