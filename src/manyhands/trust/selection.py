"""Selection: follow the method that is right most often on the answers, unless the evidence is thin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.trust.answer_map import tempered
from manyhands.trust.answers import CONTESTED, Answers, as_answers
from manyhands.trust.calibrated_model import CalibratedAggregator
from manyhands.trust.candidates import (
    DEFAULT,
    create_candidate,
    fit_candidates,
    fit_one,
    label_codes,
    registry_name,
)
from manyhands.validation import RandomState, check_annotations, check_parameters

MIN_PROBABILITY = 0.8  # chosen on simulated crowds (docs/results/notes/trust-tried.md)

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Selection:
    """Which method the answers select, and how close it was.

    Attributes
    ----------
    method : str
        The method that is followed.
    best : str
        The method that is right most often on the answers; the default wins ties.
    default : str
        The default method.
    right : dict of str to float
        Share of the answers on which each method is right without having seen them, weighted by stratum.
    better : float
        Answers on which `best` is right and the default wrong.
    worse : float
        Answers on which the default is right and `best` wrong.
    probability : float
        Probability that `best` is right more often than the default where exactly one of them is right.
    n_answers : int
        Number of answers.
    n_contested : int
        Answers on which the methods differ; only these decide.
    """

    method: str
    best: str
    default: str
    right: dict[str, float]
    better: float
    worse: float
    probability: float
    n_answers: int
    n_contested: int

    @property
    def is_thin(self) -> bool:
        """Whether the default was kept because the evidence for another method is thin."""
        return self.best != self.method

    def __str__(self) -> str:
        if not self.n_contested:
            return f"{self.method} is kept: the methods agree on all {self.n_answers} answers."
        share = f"right on {self.right[self.best]:.0%} of the answers, {self.default} on {self.right[self.default]:.0%}"
        if self.best == self.default:
            second = max((s, name) for name, s in self.right.items() if name != self.default)
            return (
                f"{self.method} is kept: no method is right more often; it is right on "
                f"{self.right[self.default]:.0%} of {self.n_answers} answers, {second[1]} on {second[0]:.0%}."
            )
        counts = f"{self.better:.3g} answers to {self.worse:.3g}"
        if self.is_thin:
            return (
                f"{self.method} is kept: {self.best} is {share}, but the evidence is thin ({counts}, probability "
                f"{self.probability:.2f} of being better; {MIN_PROBABILITY:g} is needed). More answers would decide."
            )
        return f"{self.method} is followed: {share} ({counts}, probability {self.probability:.2f} of being better)."

    def as_dict(self) -> dict[str, Any]:
        """Return all values for a summary.

        Returns
        -------
        dict
            Values that JSON can hold.
        """
        return {
            "method": self.method,
            "best": self.best,
            "default": self.default,
            "right": {name: round(share, 6) for name, share in self.right.items()},
            "better": round(self.better, 6),
            "worse": round(self.worse, 6),
            "probability": round(self.probability, 6),
            "needed": MIN_PROBABILITY,
            "n_contested": self.n_contested,
            "sentence": str(self),
        }


def select_by_answers(
    annotations: Annotations | Any,
    answers: Answers | Mapping[Any, Any],
    *,
    methods: Sequence[str] | None = None,
    gold: Mapping[Any, Any] | None = None,
    random_state: int = 0,
) -> CalibratedAggregator:
    """Fit the method that is right most often on the answers; the default where the evidence is thin.

    Every candidate is fitted without the answers and compared with them. Answers of a stratified draw are weighted by
    stratum. The evidence for the best candidate is thin if the probability that it is right more often than the
    default is below 0.8: with b answers on which only the candidate is right and w on which only the default is, that
    is P(p > 1/2) for p ~ Beta(1 + b, 1 + w). Two answers to none are enough, one is not, nor are three to two.

    The default is then fitted with the answers as gold. Other methods do not see them, although they are certain in
    the result: on contested items the vote errs more often than elsewhere, from which Dawid-Skene can conclude that
    all workers invert the classes. They see answers that were not drawn as contested if no candidate is right on more
    than half of them, as in a crowd that is inverted as a whole.

    Parameters
    ----------
    annotations : Annotations or data frame
        The crowd's labels.
    answers : Answers or mapping of item to class
        Known classes; those of `contested` items decide most per answer.
    methods : sequence of str or None, default=None
        Registry names of the methods to compare with the default; None takes ten (`manyhands.trust.CANDIDATES`).
    gold : mapping of item to class or None, default=None
        Known classes that are no answers; they enter every fit.
    random_state : int, default=0
        Seed of the methods that use random numbers.

    Returns
    -------
    CalibratedAggregator
        The chosen method, fitted, in whose posterior the answers are certain; a method other than the default is
        tempered by the power .64 that was learnt across crowds. Its attribute ``selection_`` is a `Selection`, which
        says as text what was chosen and how close it was.

    Raises
    ------
    AnnotationError
        If the answers belong to other annotations, or name unknown items or classes.

    Examples
    --------
    >>> from manyhands.simulate import make_crowd
    >>> crowd = make_crowd(n_items=100, n_workers=10, random_state=0)
    >>> from manyhands.trust import contested
    >>> questions = contested(crowd.annotations, n=10)
    >>> truth = dict(zip(crowd.annotations.item_ids.tolist(), crowd.truth.tolist()))
    >>> model = select_by_answers(crowd.annotations, questions.answer({item: truth[item] for item in questions}))
    >>> model.selection_.n_answers == len(questions)
    True
    """
    check_parameters("select_by_answers", {"random_state": random_state}, {"random_state": RandomState()})
    annotations = check_annotations(annotations)
    given = as_answers(answers)
    rows, truth = given.codes(annotations)
    fitted = fit_candidates(annotations, methods, random_state, gold)
    weights = given.weights()
    weight = np.array([weights[item] for item in annotations.item_ids[rows].tolist()])
    said = {name: label_codes(model)[rows] for name, model in fitted.items()}
    selection = choose_method(said, truth, weight)
    is_inverted = CONTESTED not in given.kinds and max(selection.right.values()) <= 0.5
    shown = is_inverted or registry_name(selection.method) == DEFAULT
    hidden = () if shown else tuple(given.values)
    model = create_selected(selection.method, annotations.n_classes, random_state, hidden)
    fit_one(model, annotations, {**(gold or {}), **given.values})
    model.selection_ = selection
    return model


def create_selected(
    method: str, n_classes: int, random_state: int = 0, hidden: tuple[Any, ...] = ()
) -> CalibratedAggregator:
    """Create a method; one other than the default is tempered by the power that was learnt across crowds.

    The default tempers its posterior itself. The posteriors of the others are too certain, since workers err on the
    same items.

    Parameters
    ----------
    method : str
        Name of a candidate.
    n_classes : int
        Number of classes.
    random_state : int, default=0
        Seed.
    hidden : tuple of items, default=()
        Items whose gold is certain in the result and not shown to the method.

    Returns
    -------
    CalibratedAggregator
        The method, not fitted; tempering changes no label.
    """
    parameters = None if registry_name(method) == DEFAULT else tempered(n_classes)
    return CalibratedAggregator(create_candidate(method, random_state), parameters, hidden)


def choose_method(
    said: Mapping[str, npt.NDArray[np.int64]],
    truth: npt.NDArray[np.int64],
    weight: Array | None = None,
    default: str = DEFAULT,
) -> Selection:
    """Choose among methods by their labels of the answered items.

    Parameters
    ----------
    said : mapping of str to ndarray of shape (n_answers,)
        Class codes that each method gives, without having seen the answers.
    truth : ndarray of shape (n_answers,)
        Class codes of the answers.
    weight : ndarray of shape (n_answers,) or None, default=None
        Number of items that each answer stands for, mean 1; None counts all equally.
    default : str, default="pooled-dawid-skene"
        The method that is kept where the evidence is thin.

    Returns
    -------
    Selection
        The choice.
    """
    weight = np.ones(len(truth)) if weight is None else weight
    names = [default, *(name for name in said if name != default)]
    right = np.stack([said[name] == truth for name in names])  # (n_methods, n_answers)
    score = right @ weight
    differ = np.any(np.stack([said[name] != said[default] for name in names]), axis=0)
    best = _best(np.stack([said[name] for name in names]), score)
    better = float(weight[right[best] & ~right[0]].sum())
    worse = float(weight[right[0] & ~right[best]].sum())
    probability = probability_of_better(better, worse)
    return Selection(
        method=names[best] if probability >= MIN_PROBABILITY else default,
        best=names[best],
        default=default,
        right=dict(zip(names, (score / weight.sum()).tolist())),
        better=better,
        worse=worse,
        probability=probability,
        n_answers=len(truth),
        n_contested=int(differ.sum()),
    )


def _best(said: npt.NDArray[np.int64], score: Array) -> int:
    """Position of the highest score; the default (0) wins ties, then the method that agrees most with the others."""
    tied = np.flatnonzero(score >= score.max() - 1e-9)
    if tied[0] == 0 or len(tied) == 1:
        return int(tied[0])
    agreement = [(said[k] == said).mean() for k in tied]
    return int(tied[int(np.argmax(agreement))])


def probability_of_better(better: float, worse: float) -> float:
    """P(p > 1/2) for p ~ Beta(1 + better, 1 + worse): a uniform prior of the share, updated by the counts.

    Parameters
    ----------
    better : float
        Answers on which only the candidate is right.
    worse : float
        Answers on which only the default is right.

    Returns
    -------
    float
        The probability.

    Examples
    --------
    >>> round(probability_of_better(2, 0), 3), round(probability_of_better(1, 0), 3)
    (0.875, 0.75)
    """
    from scipy.special import betainc

    return float(betainc(1.0 + worse, 1.0 + better, 0.5))
