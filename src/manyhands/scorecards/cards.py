"""`score_workers` and the quality reports that it returns, with columns for tables and a sentence for each alert."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array, Mask
from manyhands._core.progress import report, showing
from manyhands._core.system import check_memory
from manyhands.annotations import Annotations
from manyhands.em.collusion import CollusionGroups
from manyhands.em.copies import Copies
from manyhands.em.firing import firings_of, is_one_class_crowd
from manyhands.em.priors import gold_codes
from manyhands.estimator import BaseEstimator, panels_of
from manyhands.exceptions import AlignmentError, AnnotationError, ParameterError
from manyhands.frames import make_frame
from manyhands.metrics.position_bias import PositionBias, columns_of
from manyhands.scorecards.accuracy import (
    AccuracyEstimate,
    Bias,
    LeaveOneOut,
    derive_tables,
    estimate_accuracy,
    estimate_precision,
    estimate_recall,
    expected_counts,
    find_bias,
    find_confusions,
    labels_of_others,
    leave_one_out_posterior,
    posterior_of_tables,
    without_own_labels,
)
from manyhands.scorecards.alerts import (
    FEW_LABELS,
    MIN_CHECKED,
    CrowdSkill,
    Informativeness,
    WorkingTime,
    assess_informativeness,
    disagrees_with_group,
    find_groups,
    summarise_time,
)
from manyhands.validation import Number, check_annotations, check_parameters

# ----------------------------------------------------------------------------------------------------
# Scorecards as columns of a table.


def card_columns(cards: Scorecards) -> dict[str, Any]:
    """Return the scorecards as columns, with classes as text and lists joined by semicolons."""
    every = list(cards)
    return {
        "worker": [card.worker for card in every],
        "n_labels": cards.n_labels,
        "n_checked": cards.n_checked,
        "accuracy": cards.accuracy,
        "accuracy_low": cards.accuracy_low,
        "accuracy_high": cards.accuracy_high,
        "agreement": cards.agreement,
        "bias_class": [None if card.bias_class is None else str(card.bias_class) for card in every],
        "bias": np.where(cards.bias_class < 0, np.nan, cards.bias),
        "confusions": [confusions_text(card) for card in every],
        **_seconds_columns(cards),
        **_position_columns(cards),
        **_firing_columns(cards),
        "alerts": [";".join(card.alerts) or None for card in every],
        "reasons": ["; ".join(card.reasons) or None for card in every],
        **_recall_columns(cards),
    }


def _seconds_columns(cards: Scorecards) -> dict[str, Any]:
    """Return the columns of working times, if there are any."""
    if not cards.n_timed.any():
        return {}
    crowd = np.full(len(cards), cards.crowd_median_seconds)
    return {"median_seconds": cards.median_seconds, "crowd_median_seconds": crowd}


def _position_columns(cards: Scorecards) -> dict[str, Any]:
    """Return the columns of flip rates and first-position shares, if labels are verdicts with their order."""
    if not cards.position_bias:
        return {}
    columns: dict[str, Any] = columns_of(cards.position_bias, cards.worker_ids.tolist())
    return columns


def _firing_columns(cards: Scorecards) -> dict[str, Any]:
    """Return the columns of workers who use one class each, if this is such a crowd."""
    if cards.coverage is None:
        return {}
    return {"coverage": cards.coverage, "overlap": cards.overlap, "conflict": cards.conflict}


def _recall_columns(cards: Scorecards) -> dict[str, Any]:
    """Return the recall of each class, and the expected number of items behind it; NaN without any."""
    columns: dict[str, Any] = {}
    for k, name in enumerate(map(str, cards.classes.tolist())):
        n_items = cards.recall_items[:, k]
        columns[f"recall_{name}"] = np.where(n_items > 0, cards.recall[:, k], np.nan)
        columns[f"items_{name}"] = np.round(n_items, 1)
    return columns


def confusions_text(card: WorkerCard) -> str | None:
    """Return the most frequent confusions of a worker as text."""
    made = (f"{k} labelled as {c}, about {n:.0f} ({rate:.0%})" for k, c, n, rate in card.top_confusions)
    return "; ".join(made) or None


# ----------------------------------------------------------------------------------------------------
# The report of one worker, and of all workers.

Codes = npt.NDArray[np.intp]


@dataclass(frozen=True)
class WorkerCard:
    """Quality report of one worker, in plain Python values.

    `dataclasses.asdict` of it can be written as JSON if the ids can. The attributes are those of :class:`Scorecards`
    for one worker, with ids and classes in place of codes; None stands where a value is undefined.

    Attributes
    ----------
    worker : object
        Id of the worker.
    n_labels : int
        Number of labels given.
    n_checked : int
        Number of these on items that another worker or gold labels too.
    accuracy : float
        Posterior mean of the share of right labels.
    accuracy_low : float
        Lower end of its 95% interval.
    accuracy_high : float
        Upper end of its 95% interval.
    agreement : float or None
        Share of the other workers' labels on the same items that equal this worker's.
    agreement_by_chance : float or None
        Chance agreement: the same with this worker's labels shuffled among their items.
    bias_class : object
        The class that is over-used significantly; None if there is none.
    bias : float or None
        Share of labels of this class minus its expected share among the items.
    top_confusions : tuple of (truth, label, expected count, rate)
        Up to three most frequent confusions; the rate is relative to the worker's items of this truth.
    recall : dict of object to tuple of (mean, low, high, expected number of items)
        Class -> share of the worker's items of this class that they label right, with its 95% interval.
    n_timed : int
        Number of labels whose working time is known.
    median_seconds : float or None
        Median working time of these, in seconds.
    position_bias : PositionBias or None
        How their verdicts on pairs depend on the order of presentation: flip rate and first-position share; None
        unless it is known.
    alerts : tuple of str
        Alerts, of `ALERTS`.
    reasons : tuple of str
        One sentence for each alert.
    partners : tuple of object
        Ids of the workers they copy from or are copied by, at most twenty.
    coverage : float or None, default=None
        Share of all items that the worker labels; None in an ordinary crowd, as the next two are.
    overlap : float or None, default=None
        Share of these that another worker labels too.
    conflict : float or None, default=None
        Share of these that another worker labels otherwise.
    """

    worker: Any
    n_labels: int
    n_checked: int
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    agreement: float | None
    agreement_by_chance: float | None
    bias_class: Any
    bias: float | None
    top_confusions: tuple[tuple[Any, Any, float, float], ...]
    recall: dict[Any, tuple[float, float, float, float]]
    n_timed: int
    median_seconds: float | None
    position_bias: PositionBias | None
    alerts: tuple[str, ...]
    reasons: tuple[str, ...]
    partners: tuple[Any, ...]
    coverage: float | None = None
    overlap: float | None = None
    conflict: float | None = None


@dataclass(frozen=True, eq=False)
class Scorecards:
    """Quality reports of all workers, as columns.

    ``cards[w]`` and iteration give one :class:`WorkerCard` per worker.

    Attributes
    ----------
    worker_ids : ndarray of shape (n_workers,)
        Ids of the workers, as in the annotations.
    classes : ndarray of shape (n_classes,)
        Classes, as in the annotations.
    n_labels : ndarray of int of shape (n_workers,)
        Number of labels given.
    n_checked : ndarray of int of shape (n_workers,)
        Number of labels on items that another worker or gold labels too.
    accuracy : ndarray of shape (n_workers,)
        Posterior mean of the share of right labels.
    accuracy_low : ndarray of shape (n_workers,)
        Lower end of its 95% interval.
    accuracy_high : ndarray of shape (n_workers,)
        Upper end of its 95% interval.
    agreement : ndarray of shape (n_workers,)
        Share of the other workers' labels on the same items that equal the worker's; NaN where there are none.
    agreement_by_chance : ndarray of shape (n_workers,)
        Chance agreement: the same with the worker's labels shuffled among their items.
    bias_class : ndarray of int of shape (n_workers,)
        Code of the class that is over-used significantly; -1 for none.
    bias : ndarray of shape (n_workers,)
        Share of labels of this class minus its expected share among the items; 0 for none.
    confused_truth : ndarray of int of shape (n_workers, 3)
        True class of the most frequent confusions; -1 for none.
    confused_label : ndarray of int of shape (n_workers, 3)
        Label given in its place; -1 for none.
    confused_count : ndarray of shape (n_workers, 3)
        Expected number of these labels.
    confused_rate : ndarray of shape (n_workers, 3)
        Their share among the worker's items of this truth.
    recall : ndarray of shape (n_workers, n_classes)
        Share of the worker's items of each class that they label right, posterior mean.
    recall_low : ndarray of shape (n_workers, n_classes)
        Lower end of its 95% interval.
    recall_high : ndarray of shape (n_workers, n_classes)
        Upper end of its 95% interval.
    recall_items : ndarray of shape (n_workers, n_classes)
        Expected number of the worker's checked items that are of each class: the evidence behind the recall.
    n_timed : ndarray of int of shape (n_workers,)
        Number of labels whose working time is known.
    median_seconds : ndarray of shape (n_workers,)
        Median working time per label in seconds; NaN where unknown.
    crowd_median_seconds : float
        Median of the workers' medians; NaN where unknown.
    alerts : tuple of tuple of str
        Alerts of each worker.
    reasons : tuple of tuple of str
        One sentence for each alert.
    partners : tuple of tuple of int
        Codes of the workers that each worker copies from or is copied by, at most twenty.
    frame_library : {"pandas", "polars", "pyarrow"} or None, default=None
        Library of the data frame that the annotations came from, which `to_frame` returns.
    annotations : Annotations or None, default=None
        The labels that the reports are about, for a notebook's cards of workers.
    posterior : ndarray of shape (n_items, n_classes) or None, default=None
        Posterior of their items.
    position_bias : dict of object to PositionBias, default={}
        Worker id -> how their verdicts on pairs depend on the order of presentation; empty unless it is known.
    coverage : ndarray of shape (n_workers,) or None, default=None
        Share of all items that the worker labels, where workers use one class each (labelling functions); None in an
        ordinary crowd, as the next two are. The accuracy of such a worker is their precision.
    overlap : ndarray of shape (n_workers,) or None, default=None
        Share of these that another worker labels too; NaN for a worker without labels.
    conflict : ndarray of shape (n_workers,) or None, default=None
        Share of these that another worker labels otherwise; NaN for a worker without labels.
    """

    worker_ids: npt.NDArray[Any]
    classes: npt.NDArray[Any]
    n_labels: npt.NDArray[np.int64]
    n_checked: npt.NDArray[np.int64]
    accuracy: Array
    accuracy_low: Array
    accuracy_high: Array
    agreement: Array
    agreement_by_chance: Array
    bias_class: Codes
    bias: Array
    confused_truth: Codes
    confused_label: Codes
    confused_count: Array
    confused_rate: Array
    recall: Array
    recall_low: Array
    recall_high: Array
    recall_items: Array
    n_timed: npt.NDArray[np.int64]
    median_seconds: Array
    crowd_median_seconds: float
    alerts: tuple[tuple[str, ...], ...]
    reasons: tuple[tuple[str, ...], ...]
    partners: tuple[tuple[int, ...], ...]
    frame_library: str | None = None
    annotations: Annotations | None = field(default=None, repr=False)
    posterior: Array | None = field(default=None, repr=False)
    position_bias: Mapping[Any, PositionBias] = field(default_factory=dict, repr=False)
    coverage: Array | None = None
    overlap: Array | None = None
    conflict: Array | None = None

    def __len__(self) -> int:
        return len(self.worker_ids)

    def __iter__(self) -> Iterator[WorkerCard]:
        return (self[w] for w in range(len(self)))

    def __getitem__(self, w: int) -> WorkerCard:
        classes = self.classes.tolist()
        confused = zip(self.confused_truth[w], self.confused_label[w], self.confused_count[w], self.confused_rate[w])
        bias_class = int(self.bias_class[w])
        worker = self.worker_ids[[w]].tolist()[0]
        return WorkerCard(
            worker=worker,
            n_labels=int(self.n_labels[w]),
            n_checked=int(self.n_checked[w]),
            accuracy=float(self.accuracy[w]),
            accuracy_low=float(self.accuracy_low[w]),
            accuracy_high=float(self.accuracy_high[w]),
            agreement=_known(self.agreement[w]),
            agreement_by_chance=_known(self.agreement_by_chance[w]),
            bias_class=None if bias_class < 0 else classes[bias_class],
            bias=None if bias_class < 0 else float(self.bias[w]),
            top_confusions=tuple((classes[k], classes[c], float(n), float(r)) for k, c, n, r in confused if k >= 0),
            recall=dict(zip(classes, zip(*(values[w].tolist() for values in self._recalls)))),
            n_timed=int(self.n_timed[w]),
            median_seconds=_known(self.median_seconds[w]),
            position_bias=self.position_bias.get(worker),
            alerts=self.alerts[w],
            reasons=self.reasons[w],
            partners=tuple(self.worker_ids[list(self.partners[w])].tolist() if self.partners[w] else ()),
            coverage=None if self.coverage is None else _known(self.coverage[w]),
            overlap=None if self.overlap is None else _known(self.overlap[w]),
            conflict=None if self.conflict is None else _known(self.conflict[w]),
        )

    def to_frame(self, library: str | None = None) -> Any:
        """Return the reports as a data frame, one row per worker.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"} or None, default=None
            Kind of data frame; None for that of the frame which the annotations came from, and polars otherwise.

        Returns
        -------
        polars.DataFrame, pandas.DataFrame or pyarrow.Table
            ``worker`` and the columns of the scorecard (docs/scorecards.md); with pandas the workers are the index.
        """
        return make_frame(card_columns(self), library or self.frame_library, "worker")

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the map of workers and their cards, as in the HTML report."""
        return panels_of("scorecards", self)

    @property
    def _recalls(self) -> tuple[Array, Array, Array, Array]:
        return self.recall, self.recall_low, self.recall_high, self.recall_items

    def flagged(self, alert: str) -> Mask:
        """Select the workers with an alert.

        Parameters
        ----------
        alert : str
            One of `ALERTS`.

        Returns
        -------
        ndarray of bool of shape (n_workers,)
            True for workers with this alert.
        """
        return np.array([alert in alerts for alerts in self.alerts], bool)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


# ----------------------------------------------------------------------------------------------------
# One sentence for each alert: what was observed, and what was expected.

ACCUSATIONS = ("random", "one-class", "inverted", "copying", "weak")  # alerts that say that something is wrong
ALERTS = (*ACCUSATIONS, "fast", "undecided", "too-few-labels")
DROP = 0.25  # of the share of right labels between the halves of a worker's labels, from which a sentence names both
MAX_PARTNERS = 20  # of one worker; all members of a large group for each member would be quadratic
_MAX_CHARACTERS = 40  # of a name
_MAX_NAMES = 3  # of workers or classes in a sentence
Flagged = list[dict[str, str]]  # for each worker, {alert: sentence}


def explain(
    loo: LeaveOneOut,
    n_checked: Array,
    informativeness: Informativeness,
    crowd: CrowdSkill,
    groups: Sequence[CollusionGroups],
    copies: Copies,
) -> tuple[Flagged, list[tuple[int, ...]]]:
    """Collect the alerts of each worker, with one sentence for each.

    Shapes: n_checked (n_workers,).
    """
    annotations = loo.annotations
    flagged: Flagged = [{} for _ in range(annotations.n_workers)]
    enough = loo.used.sum(axis=1) >= MIN_CHECKED
    _explain_informativeness(flagged, loo, informativeness, crowd)
    partners = _explain_copying(flagged, annotations, enough, groups, copies)
    has_alert = np.array([bool(reasons) for reasons in flagged])
    n_labels = np.bincount(annotations.worker, minlength=annotations.n_workers)
    n_items = loo.used.sum(axis=1)  # repeated labels of an item, as of a judge in both orders, are one
    for w in np.flatnonzero(~has_alert & ~informativeness.is_informative).tolist():
        if n_checked[w] < FEW_LABELS:
            flagged[w]["too-few-labels"] = _too_few(int(n_labels[w]), int(n_checked[w]))
        else:
            flagged[w]["undecided"] = _undecided(informativeness, w, n_items[w])
    return flagged, partners


def explain_time(flagged: Flagged, time: WorkingTime) -> None:
    """Add the alert of workers far faster than the crowd."""
    for w in np.flatnonzero(time.is_fast).tolist():
        flagged[w]["fast"] = (
            f"a median of {time.median[w]:.2g} seconds per label on {time.n_timed[w]} labels; "
            f"the median of the crowd is {time.crowd_median:.2g}"
        )


def _explain_informativeness(flagged: Flagged, loo: LeaveOneOut, tests: Informativeness, crowd: CrowdSkill) -> None:
    """Add the sentences of random, weak, inverted and one-class workers."""
    n_checked = loo.used.sum(axis=1)
    classes = loo.annotations.classes.tolist()
    for w in np.flatnonzero(tests.is_random).tolist():
        flagged[w]["random"] = f"{_right(tests, w, n_checked[w])}{_typical(crowd, w)}"
    for w in np.flatnonzero(tests.is_weak).tolist():
        flagged[w]["weak"] = _weak(tests, crowd, w, n_checked[w])
    for w in np.flatnonzero(tests.is_inverted).tolist():
        flagged[w]["inverted"] = (
            f"right on about {tests.right[w]:.0f} of {n_checked[w]:.0f} items by the leave-one-out posterior, "
            f"below chance agreement, which is {tests.right_by_chance[w]:.0f}"
        )
    for w in np.flatnonzero(tests.is_one_class).tolist():
        k = tests.favourite[w]
        name, used, met = shown(classes[k]), loo.used[w, k], loo.met[w, k]
        flagged[w]["one-class"] = (
            f"label {name} on {used:.0f} of {n_checked[w]:.0f} items; the expected number of {name} is {met:.0f}"
        )


def _right(tests: Informativeness, w: int, n_checked: float) -> str:
    return (
        f"right on about {tests.right[w]:.0f} of {n_checked:.0f} items by the leave-one-out posterior; "
        f"chance agreement is {tests.right_by_chance[w]:.0f}"
    )


def _weak(tests: Informativeness, crowd: CrowdSkill, w: int, n_checked: float) -> str:
    early, late = n_checked - crowd.late_checked[w], crowd.late_checked[w]
    late_share, share = crowd.late_right[w] / max(late, 1.0), tests.right[w] / n_checked
    if crowd.is_late_below[w] or (crowd.is_known and share - late_share > DROP / 2):
        return (
            f"right on about {crowd.late_right[w]:.0f} of the last {late:.0f} items by the leave-one-out posterior, "
            f"a typical worker of this crowd is right on {crowd.late_typical_right[w]:.0f}; "
            f"of the first {early:.0f} they are right on about {tests.right[w] - crowd.late_right[w]:.0f}"
        )
    return (
        f"right on about {tests.right[w]:.0f} of {n_checked:.0f} items by the leave-one-out posterior"
        f"{_typical(crowd, w)}; chance agreement is {tests.right_by_chance[w]:.0f}"
    )


def _typical(crowd: CrowdSkill, w: int) -> str:
    """What a worker of this crowd achieves on the same items; nothing if the crowd is too small to say."""
    return f", a typical worker of this crowd is right on {crowd.typical_right[w]:.0f}" if crowd.is_known else ""


def _undecided(tests: Informativeness, w: int, n_items: float) -> str:
    return f"{_right(tests, w, n_items)}: neither random labelling nor a weak honest worker can be ruled out"


def _explain_copying(
    flagged: Flagged, annotations: Annotations, enough: Mask, groups: Sequence[CollusionGroups], copies: Copies
) -> list[tuple[int, ...]]:
    """Add the sentences of workers who copy or are copied, and return the partners of each worker."""
    names = annotations.worker_ids.tolist()
    partners: list[set[int]] = [set() for _ in names]
    for group in groups:
        cleared = disagrees_with_group(annotations, group) & (group.max_labels is None)
        members = np.flatnonzero(group.members & ~cleared).tolist()
        for w in (w for w in members if enough[w] or group.max_labels is not None):
            others = [other for other in members[: MAX_PARTNERS + 1] if other != w][:MAX_PARTNERS]
            partners[w].update(others)
            flagged[w]["copying"] = _group_sentence(group, _names([names[w] for w in others], len(members) - 1))
    for c in np.argsort(copies.n_expected - copies.n_equal, kind="stable"):  # the strongest evidence is reported
        pair = int(copies.x[c]), int(copies.y[c])
        for w, other in (pair, pair[::-1]):
            if len(partners[w]) < MAX_PARTNERS:
                partners[w].add(other)
                flagged[w].setdefault(
                    "copying",
                    f"same label as {shown(names[other])} on {copies.n_equal[c]} of {copies.n_common[c]} shared items; "
                    f"{copies.n_expected[c]:.0f} are expected of independent workers, so they count as one vote",
                )
    return [tuple(sorted(p)[:MAX_PARTNERS]) for p in partners]


def _group_sentence(group: CollusionGroups, others: str) -> str:
    agreement = (
        f"agreement {group.agreement:.0%} on shared items; {group.expected:.0%} is expected of independent workers"
    )
    if group.max_labels is None:
        return f"colluding group with {others}: {agreement}"
    return f"one of the ids with at most {group.max_labels} labels, tested together ({others}): {agreement}"


def _too_few(n_labels: int, n_checked: int) -> str:
    if n_checked == 0:
        return "no labels" if n_labels == 0 else f"no other labels on any of the {n_labels} items they labelled"
    return f"{n_checked} labels on items that others labelled too are too few to judge the worker"


def _names(values: Sequence[Any], n_all: int) -> str:
    """The first few of these names, and how many more there are of `n_all`."""
    listed = [shown(value) for value in values[:_MAX_NAMES]]
    rest = n_all - len(listed)
    return ", ".join(listed) + (f" and {rest} more" if rest else "")


def shown(value: Any) -> str:
    """Format a name for a sentence in one line."""
    text = repr(value)
    return text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1] + "…"


# ----------------------------------------------------------------------------------------------------
# From labels and a posterior to the quality reports of all workers.

_STEPS = 4  # that progress is reported of
_ARRAYS = 6  # arrays of annotations x classes held at a time


def score_workers(
    model: Any,
    posterior: Array | None = None,
    *,
    annotations: Annotations | Any = None,
    confusion: Array | None = None,
    tempering_exponent: float | None = None,
    collusion_group: Mask | None = None,
    gold: Mapping[Any, Any] | None = None,
    working_time: Mapping[Any, Any] | None = None,
    position_bias: Mapping[Any, PositionBias] | None = None,
    verbose: int = 1,
) -> Scorecards:
    """Make a quality report for each worker: accuracy with a 95% interval, class bias, confusions and alerts.

    Every worker is evaluated by the leave-one-out posterior, in which their own labels have no part. Errors that most
    of the crowd makes together cannot be found in this way; only gold shows them.

    Parameters
    ----------
    model : estimator, Annotations or data frame
        A fitted aggregator, whose labels, gold and posterior count, and what is behind it; a fitted classifier together
        with `annotations`; or the crowd's labels together with `posterior`. Of labels with weights, the strongest one
        of each worker and item counts.
    posterior : ndarray of shape (n_items, n_classes), default=None
        Posterior of the truth of each item, of any method (``posterior_``); that of the model by default.
    annotations : Annotations or data frame, default=None
        The labels that a classifier was fitted to, which it does not keep.
    confusion : ndarray of shape (n_workers, n_classes, n_classes), default=None
        Confusion matrices [worker, truth, label] behind the posterior (``confusion_``), from which a worker's own
        labels are removed. Without them, confusion matrices and a new posterior are derived from `posterior`.
    tempering_exponent : float, default=None
        Exponent of the labels' likelihood in the posterior (``tempering_exponent_`` of ``PooledDawidSkene``); below 1
        if labels are not independent given the truth. None is that of the model, or 1. Not used without `confusion`.
    collusion_group : ndarray of bool of shape (n_workers,), default=None
        Workers whose labels count once in the posterior (``collusion_group_``). Not used without `confusion`.
    gold : dict, default=None
        ``{item: class}`` where the truth is known; takes precedence over all labels.
    working_time : mapping of object to sequence of float, default=None
        ``{worker: seconds of their labels}``, where known (``Reading.working_time``).
    position_bias : mapping of object to PositionBias, default=None
        ``{worker: flip rate and first-position share}`` of verdicts on pairs (``Reading.position_bias``, or
        `manyhands.metrics.position_bias`).
    verbose : {0, 1}, default=1
        1 shows a progress bar in a terminal or notebook after two seconds, 0 does not.

    Returns
    -------
    Scorecards
        One report for each worker, also for workers without labels.

    Raises
    ------
    AnnotationError
        If there are no labels: those of a classifier were not given.
    AlignmentError
        If an array does not have the shape that the annotations require.
    ParameterError
        If the posterior holds no probabilities, or a working time is not a number of at least 0.
    LimitError
        If the arrays would not fit into memory.

    Examples
    --------
    >>> from manyhands import PooledDawidSkene
    >>> from manyhands.simulate import make_crowd
    >>> crowd = make_crowd(bad="constant", bad_share=0.1, target=1, random_state=0)
    >>> model = PooledDawidSkene().fit(crowd.annotations)
    >>> cards = score_workers(model)
    >>> cards[int(crowd.is_bad.argmax())].alerts
    ('one-class',)
    """
    fit = _Fit.of(model, annotations) if isinstance(model, BaseEstimator) else _Fit(model)
    annotations = check_annotations(fit.annotations, takes_weights=True)
    has_weights = annotations.weight is not None
    annotations = annotations.strongest_labels()
    gold = fit.gold if gold is None else gold
    if posterior is None:  # the rest belongs to the posterior of the model
        posterior = fit.posterior
        confusion = fit.confusion if confusion is None else confusion
        collusion_group = fit.collusion_group if collusion_group is None else collusion_group
        tempering_exponent = fit.tempering_exponent if tempering_exponent is None else tempering_exponent
    tempering_exponent = 1.0 if tempering_exponent is None else tempering_exponent
    check_parameters(
        "score_workers", {"tempering_exponent": tempering_exponent}, {"tempering_exponent": Number(above=0)}
    )
    posterior, confusion = _check_shapes(annotations, posterior, confusion)
    given = annotations, posterior
    if annotations.sorting_order is not None:  # the same bits in every order of the items
        posterior, annotations = posterior[annotations.sorting_order], annotations.with_sorted_items()
    no_worker = np.zeros(annotations.n_workers, bool)
    members = no_worker if collusion_group is None else _check_mask(annotations, collusion_group)
    codes = gold_codes(gold, annotations.item_ids, annotations.classes)
    time = summarise_time(working_time, annotations.worker_ids)
    if not has_weights and is_one_class_crowd(annotations):
        cards = _cards_of_functions(annotations, posterior, codes, time)
        return replace(cards, annotations=given[0], posterior=given[1], position_bias=dict(position_bias or {}))
    with showing(verbose):
        report(0, _STEPS, "scorecards")
        groups, copies = find_groups(annotations)
        members = members & ~copies.members  # of a small group that is one of copies
        report(1, _STEPS, "scorecards")
        counted = copies.without(annotations)
        if confusion is None:
            members, tempering_exponent = groups[0].members if groups else no_worker, 1.0
            confusion, posterior = derive_tables(counted, posterior, members, codes)
        else:
            posterior = posterior_of_tables(counted, posterior, confusion, tempering_exponent, members)
        loo = leave_one_out_posterior(annotations, posterior, confusion, tempering_exponent, members, codes, copies)
        report(2, _STEPS, "scorecards")
        cards = _make_cards(loo, tempering_exponent, groups, copies, time)
        report(3, _STEPS, "scorecards")
    return replace(cards, annotations=given[0], posterior=given[1], position_bias=dict(position_bias or {}))


@dataclass(frozen=True)
class _Fit:
    """What a fitted model says about its labels; all but the labels is None where only these were given."""

    annotations: Any
    posterior: Array | None = None
    confusion: Array | None = None
    tempering_exponent: float | None = None
    collusion_group: Mask | None = None
    gold: Mapping[Any, Any] | None = None

    @classmethod
    def of(cls, model: Any, annotations: Any) -> _Fit:
        """Read a fitted aggregator; of a classifier, whose posterior rests on more than the labels, the posterior."""
        model._check_fitted()
        votes = getattr(model, "annotations_", None) if annotations is None else annotations
        if votes is None or len(votes) == 0:
            raise AnnotationError(
                f"{type(model).__name__} does not keep the labels that it was fitted to: pass them as `annotations=`."
            )
        if not hasattr(model, "annotations_"):
            return cls(votes, model.posterior_)
        return cls(
            votes,
            model.posterior_,
            getattr(model, "confusion_", None),
            getattr(model, "tempering_exponent_", None),
            getattr(model, "collusion_group_", None),
            model._gold or None,
        )


def _make_cards(
    loo: LeaveOneOut,
    tempering_exponent: float,
    groups: list[CollusionGroups],
    copies: Copies,
    time: WorkingTime,
) -> Scorecards:
    """All columns of the reports, from the leave-one-out posterior."""
    n_checked = loo.by_worker((loo.weight > 0).astype(float))
    estimate, bias = estimate_accuracy(loo, tempering_exponent), find_bias(loo)
    copied = copies.members.copy()
    for group in groups:
        copied |= group.members
    tests, crowd = assess_informativeness(loo, estimate.high, tempering_exponent, copied)
    flagged, partners = explain(loo, n_checked, tests, crowd, groups, copies)
    explain_time(flagged, time)
    return _assemble(loo, n_checked, estimate, bias, time, flagged, partners)


def _cards_of_functions(
    annotations: Annotations, posterior: Array, gold: npt.NDArray[np.int32] | None, time: WorkingTime
) -> Scorecards:
    """The reports of workers who use one class each: labelling functions, or people who mark what they see.

    Their labels do not depend on the truth by any test of labels, and none is an alert. Their precision is the mean
    posterior of their labels.

    Shapes: posterior (n_items, n_classes); gold (n_items,).
    """
    n_workers, n_classes = annotations.n_workers, annotations.n_classes
    no_own = np.zeros((n_workers, n_classes, n_classes))  # nothing is removed from the posterior
    loo = without_own_labels(annotations, posterior, no_own, 1.0, np.zeros(n_workers, bool), gold)
    n_checked = loo.by_worker((loo.weight > 0).astype(float))
    flagged: Flagged = [{} for _ in range(n_workers)]
    n_labels = np.bincount(annotations.worker, minlength=n_workers)
    for w in np.flatnonzero(n_labels < FEW_LABELS).tolist():
        flagged[w]["too-few-labels"] = _too_few(int(n_labels[w]), int(n_checked[w]))
    explain_time(flagged, time)
    estimate, no_bias = estimate_precision(annotations, posterior), Bias(*np.zeros((3, n_workers)))
    no_bias = no_bias._replace(code=np.full(n_workers, -1))
    cards = _assemble(loo, n_checked, estimate, no_bias, time, flagged, [() for _ in range(n_workers)])
    firings = firings_of(annotations)
    return replace(cards, coverage=firings.coverage, overlap=firings.overlap, conflict=firings.conflict)


def _assemble(
    loo: LeaveOneOut,
    n_checked: Array,
    estimate: AccuracyEstimate,
    bias: Bias,
    time: WorkingTime,
    flagged: Flagged,
    partners: list[tuple[int, ...]],
) -> Scorecards:
    """The columns of the reports from what was estimated.

    Shapes: n_checked (n_workers,).
    """
    annotations = loo.annotations
    counts = expected_counts(loo, estimate.mean)
    confused, recall = find_confusions(counts), estimate_recall(counts, estimate.mean)
    agreement, by_chance = _agreement(loo)
    return Scorecards(
        worker_ids=annotations.worker_ids,
        classes=annotations.classes,
        n_labels=np.bincount(annotations.worker, minlength=annotations.n_workers),
        n_checked=n_checked.astype(np.int64),
        accuracy=estimate.mean,
        accuracy_low=estimate.low,
        accuracy_high=estimate.high,
        agreement=agreement,
        agreement_by_chance=by_chance,
        bias_class=bias.code,
        bias=bias.excess,
        confused_truth=confused.truth,
        confused_label=confused.label,
        confused_count=confused.n_labels,
        confused_rate=confused.rate,
        recall=recall.mean,
        recall_low=recall.low,
        recall_high=recall.high,
        recall_items=recall.n_items,
        n_timed=time.n_timed,
        median_seconds=time.median,
        crowd_median_seconds=time.crowd_median,
        alerts=tuple(tuple(reasons) for reasons in flagged),
        reasons=tuple(tuple(reasons.values()) for reasons in flagged),
        partners=tuple(partners),
        frame_library=annotations.frame_library,
    )


def _check_shapes(
    annotations: Annotations, posterior: Array | None, confusion: Array | None
) -> tuple[Array, Array | None]:
    n_items, n_workers, n_classes = annotations.n_items, annotations.n_workers, annotations.n_classes
    if posterior is None:
        raise ParameterError("Scorecards of annotations need a `posterior=` of their items; a fitted model has one.")
    posterior = np.asarray(posterior, float)
    if posterior.shape != (n_items, n_classes):
        raise AlignmentError(
            f"The posterior must have shape (items, classes) = {(n_items, n_classes)} like the annotations. "
            f"Got {posterior.shape}."
        )
    if not (np.all(posterior >= 0) and np.all(np.isfinite(posterior))):
        raise ParameterError(
            "The posterior must hold probabilities; some of its numbers are negative, infinite or NaN."
        )
    if confusion is not None and np.shape(confusion) != (n_workers, n_classes, n_classes):
        raise AlignmentError(
            f"Confusion matrices must have shape (workers, truth, label) = {(n_workers, n_classes, n_classes)} like "
            f"the annotations. Got {np.shape(confusion)}."
        )
    check_memory(
        8.0 * (_ARRAYS * annotations.n_annotations * n_classes + 5 * n_workers * n_classes**2),
        f"Scorecards of {annotations.n_annotations} labels and {n_classes} classes",
        "Score a part of the items at a time.",
    )
    return posterior, None if confusion is None else np.asarray(confusion, float)


def _check_mask(annotations: Annotations, collusion_group: Mask) -> Mask:
    mask = np.asarray(collusion_group, bool)
    if mask.shape != (annotations.n_workers,):
        raise AlignmentError(
            f"collusion_group must hold one boolean for each of the {annotations.n_workers} workers. "
            f"Got shape {mask.shape}."
        )
    return mask


def _agreement(loo: LeaveOneOut) -> tuple[Array, Array]:
    """Share of others' labels that equal a worker's, and the same with labels shuffled among the worker's items."""
    n_met = loo.by_worker(loo.n_others)
    label_share = loo.by_label(np.ones(len(loo.weight)))
    label_share /= np.maximum(label_share.sum(axis=1, keepdims=True), 1.0)
    with np.errstate(invalid="ignore"):
        agreement = loo.by_worker(loo.n_equal) / n_met
        return agreement, np.sum(label_share * labels_of_others(loo), axis=1) / n_met
