"""Label sets: classes that contain the truth for a promised share of the items.

A set holds every class whose posterior is at least a threshold, and always the label itself. Sets only grow as the
threshold falls, so the number of items whose set misses the truth is bounded as in `guarantee`, by an exact bound from
random answers: P(share of sets with the truth >= coverage) >= confidence. Split conformal prediction promises the mean
over draws only, of which about every second draw falls below.
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
from manyhands.exceptions import ParameterError
from manyhands.trust.answers import Answers
from manyhands.trust.candidates import label_codes
from manyhands.trust.guarantee import unseen
from manyhands.trust.intervals import largest_count
from manyhands.validation import Constraint, NoneOr, Number, check_parameters

_SETS = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*(?:(?:at|with)\s*(\d+(?:\.\d+)?)\s*%\s*)?")

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class LabelSets:
    """A set of classes for each item.

    Attributes
    ----------
    coverage : float
        Promised share of items whose set contains the truth.
    confidence : float or None
        Probability of the promise; None promises the mean over draws of the answers (split conformal prediction).
    threshold : float
        Classes with at least this posterior are in a set; 0 if all are.
    members : ndarray of shape (n_items, n_classes) of bool
        Which classes are in the set of each item; none for an item without labels.
    mean_size : float
        Mean number of classes of a set.
    n_answers : int
        Number of random answers.
    classes : ndarray of shape (n_classes,)
        The classes.
    """

    coverage: float
    confidence: float | None
    threshold: float
    members: Mask
    mean_size: float
    n_answers: int
    classes: npt.NDArray[Any]

    def __str__(self) -> str:
        at = "on average over draws of the answers" if self.confidence is None else f"at {self.confidence:.0%}"
        single = float((self.members.sum(axis=1) == 1).mean())
        return (
            f"Label sets contain the truth for {self.coverage:.0%} of the items, {at}: {self.mean_size:.2f} classes on "
            f"average, {single:.0%} of the sets have one ({self.n_answers} answers)."
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
            "sentence": str(self),
        }


def parse_sets(text: str) -> tuple[float, float]:
    """Read a coverage such as "90%" or "90% at 95%".

    Parameters
    ----------
    text : str
        The coverage, and the probability of the promise, 95% unless it is given.

    Returns
    -------
    (coverage, confidence) : tuple of float
        Shares.

    Raises
    ------
    ParameterError
        If it is not of this form.

    Examples
    --------
    >>> parse_sets("90%"), parse_sets("80% at 90%")
    ((0.9, 0.95), (0.8, 0.9))
    """
    found = _SETS.fullmatch(text)
    shares = [float(found[1]) / 100, float(found[2] or 95) / 100] if found else []
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
    """Return a set of classes for each item, so that a promised share of the sets contains the truth.

    Parameters
    ----------
    model : Aggregator
        A fitted model; its posterior must not depend on the answers, see `manyhands.guarantee`.
    answers : Answers
        Answers about items that were drawn at random; others are left out.
    coverage : float, default=0.9
        Share of items whose set contains the truth.
    confidence : float or None, default=0.95
        Probability of the promise over draws of the answers; None promises the mean coverage over draws, with
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
    >>> drawn = mh.random_items(crowd.annotations, n=50)
    >>> model = mh.MajorityVote().fit(crowd.annotations)
    >>> sets = mh.label_sets(model, drawn.answer({item: truth[item] for item in drawn}))
    >>> sets.members.shape
    (400, 4)
    """
    share = Number(above=0, most=0.9999)
    constraints: dict[str, Constraint] = {"coverage": share, "confidence": NoneOr(share)}
    check_parameters("label_sets", {"coverage": coverage, "confidence": confidence}, constraints)
    reference, rows, truth = unseen(model, answers, "A promise about label sets")
    posterior = reference.posterior_
    labelled = ~reference.unlabelled_
    top = np.maximum(label_codes(reference), 0)
    score = posterior[rows, truth].copy()
    score[top[rows] == truth] = 1.0  # the label is always in the set
    allowed = math.floor((1 - coverage) * int(labelled.sum()) + 1e-9)
    if confidence is None:
        threshold = conformal_threshold(score, coverage)
    else:
        threshold = pac_threshold(score, int(labelled.sum()), allowed, 1 - confidence)
    members = posterior >= threshold
    members[np.arange(len(members)), top] = True
    members[rows] = np.eye(posterior.shape[1], dtype=bool)[truth]  # an answered item is known
    members[~labelled] = False
    size = float(members[labelled].sum(axis=1).mean())
    return LabelSets(coverage, confidence, threshold, members, size, len(rows), reference.classes_)


def conformal_threshold(score: Array, coverage: float) -> float:
    """Threshold of split conformal prediction.

    Parameters
    ----------
    score : ndarray of shape (n_answers,)
        Posterior of the true class of each answered item.
    coverage : float
        Promised mean coverage.

    Returns
    -------
    float
        The largest threshold that at least ceil((n + 1) coverage) answers reach; 0 if there are too few answers.

    Examples
    --------
    >>> conformal_threshold(np.linspace(0.1, 0.9, 9), 0.9)
    0.1
    """
    needed = math.ceil((len(score) + 1) * coverage - 1e-9)
    return 0.0 if needed > len(score) else float(np.sort(score)[::-1][needed - 1])


def pac_threshold(score: Array, population: int, allowed: int, alpha: float) -> float:
    """The largest threshold at which the bound of missed items is at most the allowed number.

    Parameters
    ----------
    score : ndarray of shape (n_answers,)
        Posterior of the true class of each answered item.
    population : int
        Number of items.
    allowed : int
        Largest number of items whose set may miss the truth.
    alpha : float
        Probability with which the promise may be broken.

    Returns
    -------
    float
        The threshold; 0 if there are too few answers.
    """
    ordered = np.sort(score)
    n_misses = -1
    while n_misses + 1 < len(score) and largest_count(n_misses + 1, len(score), population, alpha) <= allowed:
        n_misses += 1
    # A threshold at the (n_misses + 1)-th lowest score is missed by at most n_misses answers.
    return 0.0 if n_misses < 0 else float(ordered[n_misses])
