"""What answers change: the map from the consensus to the truth, and the choice among methods.

The method that is expected to gain most over the default, by the answers, is followed, unless the evidence is thin.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from manyhands import registry
from manyhands._core.arrays import Array, Codes
from manyhands._core.progress import report
from manyhands.aggregation.base import Aggregator, Inference
from manyhands.aggregation.tempering import CROWD_POWER
from manyhands.annotations import Annotations
from manyhands.em.decisions import TIE, pick_classes
from manyhands.em.e_step import Gold
from manyhands.em.kernels import vote_share
from manyhands.exceptions import CrowdWarning, ParameterError
from manyhands.trust.answers import CONTESTED, Answers, as_answers
from manyhands.validation import Constraint, RandomState, check_annotations, check_parameters

# ----------------------------------------------------------------------------------------------------
# From the consensus of the crowd to the truth, by a few answers: scale, shift and a K x K table, all shrunk.
#
#     log q[k]  =  scale log(p[k] + .001) + shift [k is the label] + vote log(s[k] + .05) + class_shift[k]
#                  + sum_j s[j] table[j, k]  + constant
#
# p is the posterior of a method and s the shares of the votes. Three kinds use a growing part of it:
#
#     plain       scale, shift
#     classwise   scale, shift, class_shift
#     map         scale, shift, vote, table: the consensus may be shifted or merged, such as a panel that is one grade
#     too
#                 generous
#
# Parameters are fitted by maximum a posteriori: log scale ~ N(log of the scale learnt across crowds, .6^2), the others
# normal with mean 0, so that without answers nothing but the scale is left.

KINDS = ("plain", "classwise", "map")
FLOOR, SHARE_FLOOR = 1e-3, 0.05  # added to probabilities and to vote shares before the logarithm
SCALE_SD, SHIFT_SD, VOTE_SD, CLASS_SD, TABLE_SD = 0.6, 0.5, 0.5, 0.5, 1.0  # the first of log scale
MAX_ITER = 300  # of L-BFGS, as a bound; the objective is smooth and has few parameters


@dataclass(frozen=True, eq=False)
class Consensus:
    """What the crowd says of each item: the terms that the parameters multiply."""

    log_posterior: Array  # (n_items, n_classes)
    is_label: Array  # (n_items, n_classes); 1 for the label of each item, else 0
    log_share: Array  # (n_items, n_classes)
    share: Array  # (n_items, n_classes); shares of the votes

    @classmethod
    def of(cls, posterior: Array, share: Array) -> Consensus:
        """Build from a posterior and vote shares.

        Shapes: posterior (n_items, n_classes); share (n_items, n_classes).
        """
        label, _ = pick_classes(np.ascontiguousarray(posterior), np.zeros(len(posterior), bool))
        is_label = np.eye(posterior.shape[1])[label]
        return cls(np.log(posterior + FLOOR), is_label, np.log(share + SHARE_FLOOR), share)

    def __getitem__(self, rows: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Consensus:
        """Select items."""
        return Consensus(self.log_posterior[rows], self.is_label[rows], self.log_share[rows], self.share[rows])

    def __len__(self) -> int:
        return len(self.share)


@dataclass(frozen=True, eq=False)
class MapParameters:
    """Parameters of the map; those that a kind does not use are 0."""

    kind: str  # which parameters were fitted
    scale: float  # power of the posterior
    shift: float  # added to the logarithm of the label's probability
    vote: float  # power of the vote shares
    class_shift: Array  # (n_classes,); added to the logarithm of each class
    table: Array  # (n_classes, n_classes); added to the logarithm of class k for the votes for class j, [j, k]
    # (n_parameters, n_parameters); laplace approximation of the posterior of scale, shift, and the others in this
    # order
    covariance: Array

    def apply(self, consensus: Consensus) -> Array:
        """Return the mapped probabilities.

        Shapes: returns (n_items, n_classes).
        """
        score = self.scale * consensus.log_posterior + self.shift * consensus.is_label + self.class_shift
        score = score + self.vote * consensus.log_share + consensus.share @ self.table
        score = np.exp(score - score.max(axis=1, keepdims=True))
        return score / score.sum(axis=1, keepdims=True)


def tempered(n_classes: int, scale: float = CROWD_POWER) -> MapParameters:
    """Return the map that raises the posterior to a power and leaves everything else."""
    return MapParameters(
        "plain", scale, 0.0, 0.0, np.zeros(n_classes), np.zeros((n_classes, n_classes)), np.zeros((2, 2))
    )


def fit_map(
    consensus: Consensus,
    truth: Codes,
    kind: str = "plain",
    *,
    weight: Array | None = None,
    prior_scale: float = CROWD_POWER,
) -> MapParameters:
    """Fit the parameters of one kind to answers, by maximum a posteriori.

    Shapes: truth (n_answers,); weight (n_answers,).
    """
    from scipy.optimize import minimize

    n_classes = consensus.share.shape[1]
    weight = np.ones(len(truth)) if weight is None else weight
    sd = _prior_sd(kind, n_classes)
    centre = np.zeros(len(sd))
    centre[0] = np.log(prior_scale)

    def objective(x: Array) -> tuple[float, Array]:
        q = _unpack(x, kind, n_classes).apply(consensus)
        loss = -float(weight @ np.log(np.maximum(q[np.arange(len(q)), truth], 1e-300)))
        error = q.copy()
        error[np.arange(len(q)), truth] -= 1.0
        gradient = _against(consensus, error * weight[:, None], kind)
        gradient[0] *= np.exp(x[0])  # the scale enters by its logarithm
        pull = (x - centre) / sd
        return loss + 0.5 * float(pull @ pull), gradient + pull / sd

    optimum = minimize(objective, centre, jac=True, method="L-BFGS-B", options={"maxiter": MAX_ITER})
    fitted = _unpack(optimum.x, kind, n_classes)
    precision = _information(consensus, fitted, weight) + np.diag(1 / np.r_[sd[0] * fitted.scale, sd[1:]] ** 2)
    return _unpack(optimum.x, kind, n_classes, np.asarray(np.linalg.inv(precision), np.float64))


def _prior_sd(kind: str, n_classes: int) -> Array:
    """Standard deviations of the prior of log scale, shift and the other parameters of a kind."""
    more = {
        "plain": [],
        "classwise": [CLASS_SD] * n_classes,
        "map": [VOTE_SD] + [TABLE_SD] * n_classes**2,
    }
    return np.array([SCALE_SD, SHIFT_SD, *more[kind]])


def _unpack(x: Array, kind: str, n_classes: int, covariance: Array | None = None) -> MapParameters:
    """Parameters of a kind from one vector."""
    of_class, table, vote = np.zeros(n_classes), np.zeros((n_classes, n_classes)), 0.0
    if kind == "classwise":
        of_class = x[2:]
    elif kind == "map":
        vote, table = float(x[2]), x[3:].reshape(n_classes, n_classes)
    matrix = np.zeros((0, 0)) if covariance is None else covariance
    return MapParameters(kind, float(np.exp(x[0])), float(x[1]), vote, of_class, table, matrix)


def _against(consensus: Consensus, values: Array, kind: str) -> Array:
    """Sum of values[i, k] times the term of each parameter in the score of class k of item i."""
    parts = [np.sum(values * consensus.log_posterior), np.sum(values * consensus.is_label)]
    if kind == "classwise":
        parts.extend(values.sum(axis=0))
    elif kind == "map":
        parts.append(np.sum(values * consensus.log_share))
        parts.extend((consensus.share.T @ values).ravel())
    return np.array(parts, np.float64)


def _information(consensus: Consensus, fitted: MapParameters, weight: Array) -> Array:
    """Fisher information of the parameters, the scale itself in the place of its logarithm."""
    q = fitted.apply(consensus)
    n_classes = q.shape[1]
    total = None
    for i in range(len(q)):
        one = consensus[np.array([i])]
        terms = np.stack([_against(one, np.eye(n_classes)[[k]], fitted.kind) for k in range(n_classes)])
        centred = terms - q[i] @ terms
        added = weight[i] * (centred.T * q[i]) @ centred
        total = added if total is None else total + added
    assert total is not None
    return total


# ----------------------------------------------------------------------------------------------------
# A method whose posterior is mapped to the truth by answers.


@dataclass(frozen=True)
class _InstanceOf:
    """An object of a class."""

    type_text: str
    kinds: tuple[type, ...]

    def allows(self, value: Any) -> bool:
        """Whether the value is an object of the class."""
        return isinstance(value, self.kinds)

    def __str__(self) -> str:
        return f"an object of the type {self.type_text}"


class CalibratedAggregator(Aggregator):
    """A fitted method whose posterior was recalibrated; made by `manyhands.calibrate`.

    Fitting it fits the method and maps its posterior with the same parameters. All attributes of aggregators are those
    of the mapped posterior.

    Parameters
    ----------
    model : Aggregator
        The method.
    parameters : MapParameters or None, default=None
        The map from its posterior to the truth; None leaves the posterior as it is.
    hidden : collection of items, default=()
        Items whose gold makes the result certain but is not seen by the method: the answers that the map was fitted to.

    Attributes
    ----------
    posterior_ : ndarray of shape (n_items, n_classes)
        Calibrated p(truth | labels) of each item; rows sum to 1.
    model_ : Aggregator
        The fitted method.

    Examples
    --------
    >>> from manyhands import Annotations, DawidSkene
    >>> from manyhands.trust.selection import tempered
    >>> votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0]])
    >>> CalibratedAggregator(DawidSkene(), tempered(2)).fit(votes).labels_.tolist()
    [0, 1, 0]
    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        "model": _InstanceOf("Aggregator", (Aggregator,)),
        "parameters": _InstanceOf("MapParameters or None", (MapParameters, type(None))),
        "hidden": _InstanceOf("collection of items", (tuple, list, set, frozenset, dict)),
    }

    model_: Aggregator
    calibration_: Any
    selection_: Any

    def __init__(
        self, model: Aggregator, parameters: MapParameters | None = None, hidden: Collection[Any] = ()
    ) -> None:
        self.model = model
        self.parameters = parameters
        self.hidden = hidden

    def predict_proba(self, annotations: Annotations) -> Array:
        """Calibrated posterior of items given their labels and the worker parameters estimated by `fit`.

        Parameters
        ----------
        annotations : Annotations
            Labels of any items, by workers who need not have been in `fit`.

        Returns
        -------
        ndarray of shape (n_items, n_classes)
            Rows sum to 1. Items that had gold in `fit` are certain.
        """
        posterior = self.model_.predict_proba(annotations)
        share = vote_share(self._align(annotations))
        return self._map(posterior, share, annotations.n_labels == 0, self._known_gold(annotations))

    def save(self, folder: str | Path, *, force: bool = False) -> None:
        """Refused: save the method, and its labels as a table.

        Parameters
        ----------
        folder : str or Path
            Not written.
        force : bool, default=False
            Not used.

        Raises
        ------
        ParameterError
            Always.
        """
        raise ParameterError("A calibrated model cannot be saved: save its model_, and label_frame(model) as a table.")

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        model = type(self.model)(**self.model.get_params(deep=False))
        hidden = set(self.hidden)
        values = {} if gold is None else _values(annotations, gold)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CrowdWarning)  # the notes of this model are the same
            model.fit(annotations, {item: label for item, label in values.items() if item not in hidden} or None)
        posterior = self._map(model.posterior_, vote_share(annotations), annotations.n_labels == 0, gold)
        confusion = getattr(model, "confusion_", None)
        results = {"model_": model} | ({} if confusion is None else {"confusion_": confusion})
        return Inference(posterior, None, model.n_iter_, model.converged_, list(model.history_), results, model.notes_)

    def _map(self, posterior: Array, share: Array, unlabelled: Any, gold: Gold) -> Array:
        """Map the posterior of items with labels, and make gold certain."""
        mapped = np.array(posterior)
        if self.parameters is not None:
            share = np.where(unlabelled[:, None], 1.0 / posterior.shape[1], share)
            mapped = self.parameters.apply(Consensus.of(posterior, share))
            mapped[unlabelled] = posterior[unlabelled]
        if gold is not None:
            rows = np.flatnonzero(gold >= 0)
            mapped[rows] = np.eye(posterior.shape[1])[gold[rows]]
        return mapped


def _values(annotations: Annotations, gold: Any) -> dict[Any, Any]:
    """Gold codes as a mapping of item to class."""
    rows = np.flatnonzero(gold >= 0)
    return dict(zip(annotations.item_ids[rows].tolist(), annotations.classes[gold[rows]].tolist()))


# ----------------------------------------------------------------------------------------------------
# Candidates: the methods among which answers decide, fitted to the same annotations.

DEFAULT = registry.DEFAULT
VOTE = "majority-vote"
CANDIDATES = (  # all that need nothing but labels; more candidates would need more answers
    DEFAULT, VOTE, "dawid-skene", "glad", "ibcc", "kos", "mace", "one-coin", "vote-difficulty-em", "wawa",
)  # fmt: skip
ALWAYS, NEVER = f"{DEFAULT}-always", f"{DEFAULT}-never"
VARIANTS = {ALWAYS: {"overrule": "always"}, NEVER: {"overrule": "never"}}  # of the default: answers decide its rule
WITH_ANSWERS = f"{DEFAULT}-with-answers"  # the default fitted with the answers as gold
N_ANSWER_FOLDS = 4  # in which it is measured: each fit sees three quarters of the answers
_TWO_CLASSES = ("kos",)  # methods that are defined for two classes only


def candidate_names(annotations: Annotations, methods: Sequence[str] | None = None) -> list[str]:
    """Return the names of the candidates, the default first."""
    for name in methods or ():
        registry.check_name(name if name not in VARIANTS else DEFAULT, "aggregator")
    usable = [name for name in CANDIDATES if name not in _TWO_CLASSES or annotations.n_classes == 2]
    chosen = [*usable, *VARIANTS] if methods is None else list(methods)
    return list(dict.fromkeys([DEFAULT, VOTE, *sorted(chosen)]))


def create_candidate(name: str, random_state: int = 0) -> Aggregator:
    """Create a candidate."""
    model: Aggregator = registry.create_seeded(registry_name(name), random_state)
    return model.set_params(**VARIANTS.get(name, {}))


def registry_name(name: str) -> str:
    """Return the name under which a candidate is registered.

    Examples
    --------
    >>> registry_name("wawa"), registry_name("pooled-dawid-skene-never")
    ('wawa', 'pooled-dawid-skene')
    """
    return DEFAULT if name in VARIANTS or name == WITH_ANSWERS else name


def fit_candidates(
    annotations: Annotations,
    methods: Sequence[str] | None = None,
    random_state: int = 0,
    gold: Mapping[Any, Any] | None = None,
) -> dict[str, Aggregator]:
    """Fit every candidate to the annotations, without the answers."""
    names = candidate_names(annotations, methods)
    fitted: dict[str, Aggregator] = {}
    for done, name in enumerate(names):
        report(done, len(names), "Fitting the candidates")
        fitted[name] = fit_one(create_candidate(name, random_state), annotations, gold)
    report(len(names), len(names), "Fitting the candidates")
    return fitted


def fit_one(model: Aggregator, annotations: Annotations, gold: Mapping[Any, Any] | None = None) -> Aggregator:
    """Fit one method without its notes, which are about the labels and the same for every candidate."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        return model.fit(annotations, gold=dict(gold or {}) or None)


def label_codes(model: Aggregator) -> npt.NDArray[np.int64]:
    """Return the class code of each item's label.

    Shapes: returns (n_items,).
    """
    code = {label: k for k, label in enumerate(model.classes_.tolist())}
    return np.array([code.get(label, -1) for label in model.labels_.tolist()], np.int64)


def gold_of(model: Aggregator) -> dict[Any, Any]:
    """Return the gold that a fitted method was given."""
    model.annotations_  # noqa: B018  # raises an error if the model is not fitted
    return dict(model._gold)


def rows_by_name(items: Sequence[Any]) -> Codes:
    """Return the positions of items in the order of their names, which does not depend on the order of the rows.

    Shapes: returns (n_items,).
    """
    names = [str(item) for item in items]
    return np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)


def vote_counts(annotations: Annotations) -> npt.NDArray[np.int64]:
    """Return the number of votes of each item for each class.

    Shapes: returns (n_items, n_classes).
    """
    pair = annotations.item.astype(np.int64) * annotations.n_classes + annotations.label
    size = annotations.n_items * annotations.n_classes
    return np.bincount(pair, minlength=size).reshape(annotations.n_items, annotations.n_classes)


# ----------------------------------------------------------------------------------------------------
# Contested items: those on which a candidate differs from the default.

OVERRULED, DISPUTED, AGREED = "overruled", "disputed", "agreed"
STRATA = (OVERRULED, DISPUTED, AGREED)
MAX_DISTANCE = 1 / 3  # share of items on which a method that has not failed may differ from default and vote


def strata_of(annotations: Annotations, fitted: Mapping[str, Aggregator]) -> Codes:
    """Return the stratum of each item: a position in `STRATA`, -1 for an item without labels.

    Shapes: returns (n_items,).
    """
    counts = vote_counts(annotations)
    said = {name: label_codes(model) for name, model in fitted.items()}
    default = said[DEFAULT]
    has_most = counts[np.arange(len(counts)), np.maximum(default, 0)] == counts.max(axis=1)
    differs = np.any([labels != default for labels in not_failed(said)], axis=0)
    stratum = np.where(has_most, np.where(differs, 1, 2), 0)
    stratum[annotations.n_labels == 0] = -1
    return stratum


def not_failed(said: Mapping[str, Codes]) -> list[Codes]:
    """Return the labels of methods that are near the default or near the vote.

    A method that differs from both on more than a third of the items has most likely collapsed, and would make nearly
    all items contested. It stays a candidate.

    Shapes: said (n_items,).
    """
    anchors = [said[DEFAULT], said[VOTE]]
    return [one for one in said.values() if min(np.mean(one != anchor) for anchor in anchors) <= MAX_DISTANCE]


# ----------------------------------------------------------------------------------------------------
# The method that is expected to gain most over the default.
#
# Of the n answers on which a method differs from the default, it is right on b and the default on w (weighted). Among
# all items on which both differ, the method is then expected to be right on this share more than the default:
#
#     contested items    mean = (b - w + a d) / (n + a)        a answers before the first, net d a for the method
#     other items        elsewhere = (b' - w' + t (b" - w") + a' d') / (n' + t n" + a')
#
# where ' counts answers about other items, and " those about contested items on which default and vote agree. A method
# may be better where the default overrules the vote, and far worse where both agree.
#
#     gain   =  share of contested items on which both differ * mean   +  share of other items * elsewhere
#     least  =  gain - c * share of contested items on which both differ * standard deviation of the mean
#
# The method with the highest `least` is followed if that is positive.

CLOSE = (VOTE, NEVER)  # methods that go back towards the vote: no prior against them
# All constants were chosen on simulated panels and crowds (docs/results/notes/trust-tried.md).
PRIOR_ANSWERS, PRIOR_GAIN = 4.0, -0.2  # a; d of methods that depart further, 0 of those in `CLOSE`
ELSEWHERE_ANSWERS, ELSEWHERE_GAIN = 10.0, -0.3  # a'; d' of all methods
TRANSFER = 0.5  # t: what an answer about a contested item says about the others
CAUTION = 0.5  # c, standard deviations
_BISECTIONS = 40  # after which the power is known to 1e-12


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
        Answers on which `method`, or `best` if the default is kept, is right and the default wrong.
    worse : float
        Answers on which the default is right and that method wrong.
    gain : dict of str to float
        Share of all items that each method is expected to label right beyond those of the default.
    least : dict of str to float
        The same less half a standard deviation; the method with the highest is followed if that is positive.
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
    gain: dict[str, float]
    least: dict[str, float]
    n_answers: int
    n_contested: int

    @property
    def is_thin(self) -> bool:
        """Whether the default was kept because the evidence for another method is thin."""
        return self.best != self.method == self.default

    def __str__(self) -> str:
        if not self.n_contested:
            return f"{self.method} is kept: the methods agree on all {self.n_answers} answers."
        other = self.best if self.method == self.default else self.method
        share = f"right on {self.right[other]:.0%} of the answers, {self.default} on {self.right[self.default]:.0%}"
        if other == self.default:
            second = max((s, name) for name, s in self.right.items() if name != self.default)
            return (
                f"{self.method} is kept: no method is right more often; it is right on "
                f"{self.right[self.default]:.0%} of {self.n_answers} answers, {second[1]} on {second[0]:.0%}."
            )
        counts = f"{self.better:.3g} answers to {self.worse:.3g}"
        expected = f"an expected gain of {100 * self.gain[other]:+.1f} points on all labels"
        if self.is_thin:
            return (
                f"{self.method} is kept: {other} is {share}, but the evidence is thin ({counts}, {expected}, of which "
                f"half a standard deviation leaves {100 * self.least[other]:+.1f}). More answers would decide."
            )
        return f"{self.method} is followed: {share} ({counts}, {expected})."

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
            "gain": {name: round(value, 6) + 0.0 for name, value in self.gain.items()},
            "least": {name: round(value, 6) + 0.0 for name, value in self.least.items()},
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

    Every candidate is fitted without the answers and compared with them; answers of a stratified draw are weighted by
    stratum. Followed is the method that is expected to gain most over the default on all items, less half a standard
    deviation of this gain; the default is kept where that is not positive. Four answers are assumed before the first,
    of which methods that depart further from the vote than the default lose one fifth, net; the vote and
    ``overrule="never"`` lose none. On items that no candidate near the default or the vote contests, ten answers are
    assumed, of which every method loses three, net; contested answers on which default and vote agree count half there.

    The default fitted with the answers as gold is a candidate as well, measured on answers that it has not seen (four
    folds): on contested items the vote errs more often than elsewhere, from which a fit can conclude that the vote is
    wrong everywhere. All other methods do not see the answers, although they are certain in the result; the default
    does if none of them was drawn as contested.

    Contested answers are no evidence of calibration: the mean confidence of items that nobody answered does not rise
    above that of the default without answers.

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
        tempered by the power .64 that was learnt across crowds, or by a lower one that keeps the mean confidence at
        that of the default. Its attribute ``selection_`` is a `Selection`, which says as text what was chosen and how
        close it was.

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
    said = {name: label_codes(model) for name, model in fitted.items()}
    contested = np.isin(strata_of(annotations, fitted), [STRATA.index(OVERRULED), STRATA.index(DISPUTED)])
    fitted[WITH_ANSWERS] = _fit_default(annotations, given.values, random_state, gold)
    said[WITH_ANSWERS] = label_codes(fitted[WITH_ANSWERS])
    heldout = {WITH_ANSWERS: _heldout_labels(annotations, rows, given.values, random_state, gold)}
    selection = choose_method(said, rows, truth, weight, contested, heldout)
    sees_answers = selection.method == WITH_ANSWERS or (
        registry_name(selection.method) == DEFAULT and CONTESTED not in given.kinds
    )
    hidden = () if sees_answers else tuple(given.values)
    open_ = annotations.n_labels > 0
    open_[rows] = False
    followed = fitted[WITH_ANSWERS if selection.method == DEFAULT and sees_answers else selection.method]
    scale = _scale_within(followed, fitted[DEFAULT], open_)
    model = create_selected(selection.method, annotations.n_classes, random_state, hidden, scale)
    fit_one(model, annotations, {**(gold or {}), **given.values})
    model.selection_ = selection
    return model


def create_selected(
    method: str, n_classes: int, random_state: int = 0, hidden: tuple[Any, ...] = (), scale: float | None = None
) -> CalibratedAggregator:
    """Create a method; one other than the default is tempered by the power that was learnt across crowds.

    The default tempers its posterior itself. The posteriors of the others are too certain, since workers err on the
    same items. A lower power may be given.
    """
    parameters = None if registry_name(method) == DEFAULT else tempered(n_classes)
    if scale is not None:
        parameters = tempered(n_classes, scale)
    return CalibratedAggregator(create_candidate(method, random_state), parameters, hidden)


def _fit_default(
    annotations: Annotations, answers: Mapping[Any, Any], random_state: int, gold: Mapping[Any, Any] | None
) -> Aggregator:
    """Fit the default with answers as gold."""
    return fit_one(create_candidate(DEFAULT, random_state), annotations, {**(gold or {}), **answers})


def _heldout_labels(
    annotations: Annotations,
    rows: Codes,
    answers: Mapping[Any, Any],
    random_state: int,
    gold: Mapping[Any, Any] | None,
) -> Codes:
    """Label of each answered item by the default with the answers of the other folds as gold.

    Shapes: rows (n_answers,); returns (n_answers,).
    """
    items = annotations.item_ids[rows].tolist()
    rank = np.argsort(rows_by_name(items))  # position of each item in the order of names
    fold = rank % min(N_ANSWER_FOLDS, len(rows))
    labels_of_items = np.zeros(len(rows), np.int64)
    for k in range(int(fold.max()) + 1):
        report(k, N_ANSWER_FOLDS, "Checking the default with answers")
        answers_there = {item: answers[item] for item, one in zip(items, fold) if one != k}
        labels_of_items[fold == k] = label_codes(_fit_default(annotations, answers_there, random_state, gold))[
            rows[fold == k]
        ]
    report(N_ANSWER_FOLDS, N_ANSWER_FOLDS, "Checking the default with answers")
    return labels_of_items


def _scale_within(model: Aggregator, default: Aggregator, open_: npt.NDArray[np.bool_]) -> float | None:
    """Power of a posterior at which its mean confidence on open items is at most the default's; None for its own.

    Shapes: open_ (n_items,).
    """
    usual = 1.0 if isinstance(model, type(default)) else CROWD_POWER
    log_posterior = np.log(model.posterior_[open_] + FLOOR)
    bound = float(default.posterior_[open_].max(axis=1).mean()) if open_.any() else 1.0

    def mean_confidence(scale: float) -> float:
        score = np.exp(scale * (log_posterior - log_posterior.max(axis=1, keepdims=True)))
        return float((1.0 / score.sum(axis=1)).mean())

    if not open_.any() or mean_confidence(usual) <= bound + TIE:
        return None
    low, high = 0.0, usual
    for _ in range(_BISECTIONS):  # the mean confidence grows with the power
        middle = (low + high) / 2
        low, high = (middle, high) if mean_confidence(middle) <= bound else (low, middle)
    return low


def choose_method(
    said: Mapping[str, Codes],
    rows: Codes,
    truth: Codes,
    weight: Array | None = None,
    contested: npt.NDArray[np.bool_] | None = None,
    heldout: Mapping[str, Codes] | None = None,
    default: str = DEFAULT,
) -> Selection:
    """Choose among methods by their labels of all items and the classes of the answered ones.

    `heldout` has the labels of the answered items for methods that see answers. Without `contested`, all items are.

    Shapes: said (n_items,); rows (n_answers,); truth (n_answers,); weight (n_answers,); contested (n_items,); heldout
    (n_answers,).
    """
    weight = np.ones(len(truth)) if weight is None else weight
    contested = np.ones(len(said[default]), bool) if contested is None else contested
    names = [default, *(name for name in said if name != default)]
    answered = np.stack([(heldout or {}).get(name, said[name][rows]) for name in names])  # (n_methods, n_answers)
    differs = np.stack([said[name] != said[default] for name in names])  # (n_methods, n_items)
    right = answered == truth
    score = np.sum(right * weight, axis=1)
    prior = np.array([0.0 if name in CLOSE else PRIOR_GAIN for name in names])
    agreed = np.asarray(said.get(VOTE, said[default])[rows] == said[default][rows])
    net, differ = (right.astype(float) - right[0]) * weight, (answered != answered[0]) * weight
    gain, least = _expected_gain(
        net,
        differ,
        contested[rows],
        agreed,
        (differs & contested).mean(axis=1),
        (differs & ~contested).mean(axis=1),
        prior,
    )
    chosen = int(np.flatnonzero(least >= least.max() - TIE)[0])  # the default wins ties, then the earlier name
    best = _best(answered, score)
    shown = chosen or best
    return Selection(
        method=names[chosen],
        best=names[best],
        default=default,
        right=dict(zip(names, (score / weight.sum()).tolist())),
        better=float(weight[right[shown] & ~right[0]].sum()),
        worse=float(weight[right[0] & ~right[shown]].sum()),
        gain=dict(zip(names, gain.tolist())),
        least=dict(zip(names, least.tolist())),
        n_answers=len(truth),
        n_contested=int(np.any(answered != answered[0], axis=0).sum()),
    )


def _expected_gain(
    net: Array,
    differ: Array,
    on_contested: npt.NDArray[np.bool_],
    agreed: npt.NDArray[np.bool_],
    contested: Array,
    elsewhere: Array,
    prior: Array,
) -> tuple[Array, Array]:
    """Expected gain of each method over the default (the first), and the same less a part of its standard deviation.

    `net` has the weight of each answer that decides for the method, negative if for the default; `differ` that of each
    answer on which they differ. `contested` and `elsewhere` are the shares of such items; on `agreed` answers default
    and vote agree.

    Shapes: net (n_methods, n_answers); differ (n_methods, n_answers); on_contested (n_answers,); agreed (n_answers,);
    contested (n_methods,); elsewhere (n_methods,); prior (n_methods,); returns (n_methods,).
    """
    n = np.sum(differ * on_contested, axis=1) + PRIOR_ANSWERS
    mean = (np.sum(net * on_contested, axis=1) + PRIOR_ANSWERS * prior) / n
    square = (np.sum(np.abs(net) * on_contested, axis=1) + PRIOR_ANSWERS * np.abs(prior)) / n
    deviation = np.sqrt(np.maximum(square - mean**2, 0.0) / n)
    weight = np.where(on_contested, TRANSFER * agreed, 1.0)  # of an answer as evidence about other items
    there = np.sum(net * weight, axis=1) + ELSEWHERE_ANSWERS * ELSEWHERE_GAIN
    there /= np.sum(differ * weight, axis=1) + ELSEWHERE_ANSWERS
    gain = contested * mean + elsewhere * there
    return gain, gain - CAUTION * contested * deviation


def _best(said: Codes, score: Array) -> int:
    """Position of the highest score; the default (0) wins ties, then the method that agrees most with the others."""
    tied = np.flatnonzero(score >= score.max() - TIE)
    if tied[0] == 0 or len(tied) == 1:
        return int(tied[0])
    agreement = [(said[k] == said).mean() for k in tied]
    return int(tied[int(np.argmax(agreement))])
