"""A promise about the errors of labels: which labels stand, and which items an expert must answer.

Items are released in order of confidence. For each threshold, the number of wrong labels among the released ones is
bounded by an exact hypergeometric bound from the random answers; the threshold is lowered as long as the bound is at
most the promised share of all items. Wrong labels among the released ones only increase as the threshold falls, so
that one error probability serves all thresholds: P(share of wrong labels <= error) >= confidence, without asymptotics
(probably approximately correct labels, Candes, Ilyas and Zrnic 2025, with sampling without replacement).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.base import Aggregator
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.trust.answers import RANDOM, Answers, as_answers
from manyhands.trust.candidates import label_codes
from manyhands.trust.intervals import largest_count, probability_at_most
from manyhands.trust.representative import without_answers
from manyhands.validation import Constraint, Number, check_parameters

_SHARE = r"(\d+(?:\.\d+)?)\s*%"
_PROMISE = re.compile(rf"\s*error\s*<=?\s*{_SHARE}\s*(?:at|with)\s*{_SHARE}\s*", re.IGNORECASE)
_TIE_DIGITS = 9  # confidences that differ less are equal
SHARES: dict[str, Constraint] = {"error": Number(above=0, most=0.9999), "confidence": Number(above=0, most=0.9999)}

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Guarantee:
    """Which labels stand under a promise, and which items must go to an expert.

    Attributes
    ----------
    error : float
        Promised largest share of wrong labels among all items, those of the expert counted as right.
    confidence : float
        Probability with which the promise is kept.
    threshold : float
        Labels with at least this confidence stand; infinite if none do.
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

    def __str__(self) -> str:
        promise = f"error <= {self.error:.1%} at {self.confidence:.0%}"
        total = int((self.stands | self.to_expert).sum())
        few = f" {self.n_answers} random answers are too few for more: it takes at least {self.n_least}."
        if not math.isfinite(self.threshold):
            why = few if self.n_answers < self.n_least else f" The {self.n_answers} answers show too many errors."
            return f"{promise}: only the answered items stand, {int(self.to_expert.sum())} need an expert.{why}"
        return (
            f"{promise}: {int(self.stands.sum())} of {total} labels stand (confidence of at least "
            f"{self.threshold:.3f}, or answered), {int(self.to_expert.sum())} items need an expert; a random audit "
            f"would need {self.n_audit}.{few if self.n_answers < self.n_least else ''}"
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
            "sentence": str(self),
        }


def parse_promise(text: str) -> tuple[float, float]:
    """Read a promise such as "error<=5% at 95%".

    Parameters
    ----------
    text : str
        The promise.

    Returns
    -------
    (error, confidence) : tuple of float
        Shares.

    Raises
    ------
    ParameterError
        If it is not of this form.

    Examples
    --------
    >>> parse_promise("error<=5% at 95%")
    (0.05, 0.95)
    """
    found = _PROMISE.fullmatch(text)
    shares = [float(found[k]) / 100 for k in (1, 2)] if found else []
    if not shares or not all(0 < share < 1 for share in shares):
        raise ParameterError(f'The guarantee {text!r} is not of the form "error<=5% at 95%".')
    return shares[0], shares[1]


def guarantee(
    model: Aggregator, answers: Answers | Mapping[Any, Any], *, error: float = 0.05, confidence: float = 0.95
) -> Guarantee:
    """Say which labels stand so that at most a given share of all labels is wrong, with a given probability.

    The share is that of all labelled items, those that an expert answers counted as right. The promise is about draws
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
        Probability of the promise.

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
    >>> drawn = mh.random_items(crowd.annotations, n=100)
    >>> model = mh.MajorityVote().fit(crowd.annotations)
    >>> found = mh.guarantee(model, drawn.answer({item: truth[item] for item in drawn}), error=0.1)
    >>> bool((found.stands | found.to_expert).all())
    True
    """
    check_parameters("guarantee", {"error": error, "confidence": confidence}, SHARES)
    reference, rows, truth = unseen(model, answers, "A guarantee")
    label = label_codes(reference)
    score = np.round(reference.posterior_.max(axis=1), _TIE_DIGITS)
    labelled = ~reference.unlabelled_
    population = int(labelled.sum())
    allowed = math.floor(error * population + 1e-9)
    wrong = label[rows] != truth
    alpha = 1 - confidence
    threshold, bound = release(score[labelled], score[rows], wrong, allowed, alpha)
    answered = np.zeros(len(score), bool)
    answered[rows] = True
    stands = labelled & ((score >= threshold) | answered)
    return Guarantee(
        error=error,
        confidence=confidence,
        threshold=threshold,
        stands=stands,
        to_expert=labelled & ~stands,
        bound=bound / population,
        n_answers=len(rows),
        n_audit=random_audit(int(wrong.sum()), len(rows), population, allowed, alpha),
        n_least=least_answers(population, allowed, alpha),
    )


def unseen(model: Aggregator, answers: Answers | Mapping[Any, Any], what: str) -> tuple[Aggregator, Codes, Codes]:
    """Return a model that has not seen the random answers, their rows and their classes.

    Parameters
    ----------
    model : Aggregator
        A fitted model.
    answers : Answers or mapping
        Answers of any kind.
    what : str
        What they are used for, as the beginning of a sentence.

    Returns
    -------
    model : Aggregator
        A fitted model without these answers.
    rows : ndarray of shape (n_answers,)
        Positions of the answered items.
    truth : ndarray of shape (n_answers,)
        Class codes of the answers.

    Raises
    ------
    AnnotationError
        If no answer is about a random item.
    """
    given = as_answers(answers).of_kind(RANDOM)
    if not len(given):
        raise AnnotationError(
            f"{what} needs answers about random items, which manyhands ask --purpose confidence or mh.random_items "
            f"draws. If each item had the same probability, say so: mh.Answers(answers, sampled='random')."
        )
    reference = without_answers(model, given)
    rows, truth = given.codes(reference.annotations_)
    return reference, rows, truth


def release(every: Array, sampled: Array, wrong: Mask, allowed: int, alpha: float) -> tuple[float, int]:
    """Return the lowest confidence at which labels stand, and the bound of wrong labels among them.

    Parameters
    ----------
    every : ndarray of shape (n_items,)
        Confidence of all items.
    sampled : ndarray of shape (n_answers,)
        Confidence of the answered items, a random sample.
    wrong : ndarray of shape (n_answers,) of bool
        Whether their labels are wrong.
    allowed : int
        Largest number of wrong labels.
    alpha : float
        Probability with which the promise may be broken.

    Returns
    -------
    (threshold, bound) : tuple of (float, int)
        The threshold is infinite and the bound 0 if no label can stand.
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
    chosen = [float(found.min()) for found in (few, possible) if len(found)]
    if not chosen:
        return math.inf, 0
    threshold = min(chosen)
    n_errors = int(np.sum(errors >= threshold))
    most = int(n_released[np.searchsorted(values, threshold)])
    return threshold, min(most, bounds[n_errors] if n_errors < len(bounds) else most)


def random_audit(n_wrong: int, n: int, population: int, allowed: int, alpha: float) -> int:
    """Items that an expert must still answer for the same promise if they are drawn at random.

    The wrong labels of all items are bounded by the answers, with half of the error probability; with the other half,
    the number of random items is chosen so that enough of the wrong ones are among them.

    Parameters
    ----------
    n_wrong : int
        Wrong labels among the answers.
    n : int
        Number of answers.
    population : int
        Number of items.
    allowed : int
        Largest number of wrong labels that may remain.
    alpha : float
        Probability with which the promise may be broken.

    Returns
    -------
    int
        Number of items beyond those that are answered.

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
    """Smallest number of answers, all right, with which labels can stand.

    Parameters
    ----------
    population : int
        Number of items.
    allowed : int
        Largest number of wrong labels.
    alpha : float
        Probability with which the promise may be broken.

    Returns
    -------
    int
        Number of answers; at most the population.
    """
    low, high = 1, population
    while low < high:
        middle = (low + high) // 2
        if largest_count(0, middle, population, alpha) <= allowed:
            high = middle
        else:
            low = middle + 1
    return low
