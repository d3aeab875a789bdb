"""Pooled Dawid-Skene, the default method: a hierarchical prior of confusion matrices, and a calibrated posterior.

    type_w ~ shares,  confusion_w ~ prior of type_w       (one-coin, spammer, confusion; `em.pooled_noise`)
    p(k | labels of i)  ~  (prior[k] prod_w confusion[w, k, label_iw]) ^ exponent

Types and their priors are fitted to the data by variational EM. Colluding groups are collapsed first (`em.collusion`),
and a doubtful fit is replaced by the vote. `tempering` has the rest: the exponent is chosen by the held-out
log-likelihood, a label other than the plurality needs support, and the posterior is raised to a power learnt across
crowds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from manyhands._core import elementary
from manyhands._core.arrays import Array
from manyhands.aggregation.base import Aggregator, Inference, infer_without_copies
from manyhands.aggregation.tempering import (
    MIN_LOG_ODDS,
    RULES,
    TEMPER,
    Tempering,
    choose_exponent,
    chosen_power,
    is_low_volume,
    log_odds,
    release,
    ties_by_vote,
)
from manyhands.annotations import Annotations
from manyhands.em.collusion import (
    CollusionGroups,
    collapse_groups,
    exchangeable_workers,
    merge_workers,
    without_copies,
)
from manyhands.em.confusion_em import ConfusionEM, ConfusionEMFit, fit_confusion_em, fit_from_starts
from manyhands.em.copies import find_group_and_copies, no_copies
from manyhands.em.decisions import TIE
from manyhands.em.e_step import Gold, gold_contradicts_vote, has_no_redundancy, posterior_given
from manyhands.em.firing import ONE_CLASS, FiringModel, fit_firing, is_one_class_crowd, one_class_note
from manyhands.em.kernels import PackedLabels, PassResult, check_tables, pack, vote_share
from manyhands.em.noise import OneCoinNoise, safe_log
from manyhands.em.pooled_noise import PooledNoise
from manyhands.em.priors import PRIOR_ACCURACY, EstimatedPrior, FixedPrior, gold_offset
from manyhands.heldout import worker_confusions
from manyhands.validation import Constraint, Number, OneOf

# ----------------------------------------------------------------------------------------------------
# The two fits of Pooled Dawid-Skene: worker types by variational EM, and one accuracy for all workers.

PRIOR_ITEMS = 1.0  # pseudo-count of every class
# Share of all labels by which an exchange of classes must raise agreement. Ours: a turned fit with 45 % inverted
# workers and four classes gains .04; two small classes with a shared confusion gain less than .02.
MIN_TURNED_GAIN = 0.02
# Share of the labels that come from workers who exchange classes, from which on a note says so. Ours: in simulated
# crowds 30 % inverted workers give no note and 40 % nearly always; of 35 real sets, two of verdicts are above it (.40).
MAX_EXCHANGED_SHARE = 0.35


@dataclass(frozen=True)
class PooledFit:
    """A fitted crowd."""

    table: ConfusionEMFit[Any]
    confusion: Array  # (n_workers, n_classes, n_classes)
    p_type: Array  # (n_workers, n_types); posterior p(type) of each worker
    types: tuple[str, ...]  # names of the worker types
    unseen_worker: Array  # (n_classes, n_classes); expected confusion matrix of a worker without labels

    @property
    def no_redundancy(self) -> bool:
        """Whether no item has two labels, or a label and gold."""
        return self.table.no_redundancy

    @property
    def posterior(self) -> Array:
        """p(truth | labels), shape (n_items, n_classes)."""
        assert self.table.final.posterior is not None
        return self.table.final.posterior

    @property
    def log_prior(self) -> Array:
        """Log class prior log p(truth), shape (n_classes,)."""
        return self.table.params.log_prior


Fitter = Callable[[Annotations, Gold, int, float], PooledFit]  # (annotations, gold, max_iter, tol) -> fit


def fit_pooled(annotations: Annotations, gold: Gold, max_iter: int, tol: float, *, prior_strength: float) -> PooledFit:
    """Variational EM with worker types; exchangeable workers are fitted as one.

    Shapes: gold (n_items,).
    """
    worker_volume = annotations.worker_volume
    single_class = bool(annotations.label.min(initial=0) == annotations.label.max(initial=0))
    few_items = bool(
        np.count_nonzero(annotations.n_labels) < annotations.n_classes
    )  # confusion matrices are dominated by the prior
    use_newton = is_low_volume(annotations) or single_class or few_items
    group = exchangeable_workers(annotations, gold)
    if group is not None:
        annotations = merge_workers(annotations, group)
    noise = pooled_noise(annotations.n_classes, worker_volume, group, prior_strength, use_newton)
    prior = EstimatedPrior(PRIOR_ITEMS)
    settings: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "stop_early": use_newton}
    table = fit_confusion_em(annotations, noise, prior, gold=gold, **settings)
    order = turned_classes(table.final.counts)
    if order is not None and not table.no_redundancy and not gold_contradicts_vote(annotations, gold):
        labels = PackedLabels(pack(annotations), gold_offset(gold, annotations.n_classes))
        start = PassResult(table.final.counts[:, order], table.final.totals[order], 0.0, None)
        table = fit_from_starts(ConfusionEM(labels, noise, prior), [start], **settings)
    return fit_of_pooled_em(table, noise, group)


def turned_classes(counts: Array) -> npt.NDArray[np.intp] | None:
    """The order of the classes of a fit in which most labels agree with it; None if that is the order they have.

    A fit and the same fit with its classes exchanged explain the labels about equally well. Where almost half of the
    labels come from workers who exchange classes, EM may end in the turned one; without known answers, the one in
    which more labels are right is the more probable.

    Shapes: counts (n_workers, n_classes, n_classes); returns (n_classes,): class k of the turned fit is order[k] here.
    """
    pairs = counts.sum(axis=0)  # (n_classes, n_classes): expected number of labels of each class and truth
    if np.all(np.diagonal(pairs) >= pairs.max(axis=1)):
        return None  # no other order can have more labels that agree
    from scipy.optimize import linear_sum_assignment

    label = linear_sum_assignment(-pairs)[1]
    gain = pairs[np.arange(len(pairs)), label].sum() - np.trace(pairs)
    # Rounding errors decide nothing, and a class that nobody names is not exchanged for its own sake.
    return None if gain <= MIN_TURNED_GAIN * pairs.sum() else np.argsort(label)


def pooled_noise(
    n_classes: int,
    worker_volume: npt.NDArray[Any],
    group: npt.NDArray[np.int64] | None,
    prior_strength: float,
    use_newton: bool,
) -> PooledNoise:
    """The noise model of a crowd, in which exchangeable workers are one.

    Shapes: worker_volume (n_workers,); group (n_workers,).
    """
    n_labels, size = worker_volume.astype(float), None
    if group is not None:
        size = np.bincount(group).astype(float)
        n_labels = np.bincount(group, weights=n_labels) / size
    return PooledNoise(n_classes, n_labels, prior_strength, size, use_newton)


def fit_of_pooled_em(table: ConfusionEMFit[Any], noise: PooledNoise, group: npt.NDArray[np.int64] | None) -> PooledFit:
    """The fitted crowd from the outcome of EM with worker types.

    Shapes: group (n_workers,).
    """
    params = table.params.noise
    confusion, p_type = noise.confusion(params), params.workers.p_type.copy()
    if group is not None:
        confusion, p_type = confusion[group], p_type[group]
    return PooledFit(table, confusion, p_type, noise.types, noise.unseen_worker(params))


def fit_one_accuracy(annotations: Annotations, gold: Gold, max_iter: int, tol: float) -> PooledFit:
    """EM with one accuracy for all workers and a uniform class prior: the labels are those of the majority vote.

    Shapes: gold (n_items,).
    """
    merged = merge_workers(annotations, np.zeros(annotations.n_workers, np.int64))
    noise, prior = one_accuracy_model(annotations.n_classes)
    table = fit_confusion_em(merged, noise, prior, gold=gold, max_iter=max_iter, tol=tol)
    return fit_of_one_accuracy(table, noise, annotations.n_workers)


def one_accuracy_model(n_classes: int) -> tuple[OneCoinNoise, FixedPrior]:
    """Noise model and class prior of `fit_one_accuracy`, for a crowd merged into one worker."""
    uniform = FixedPrior(np.full(n_classes, -elementary.log(n_classes)))
    return OneCoinNoise(n_classes, 1.0, PRIOR_ACCURACY), uniform


def fit_of_one_accuracy(table: ConfusionEMFit[Any], noise: OneCoinNoise, n_workers: int) -> PooledFit:
    """The fitted crowd from the outcome of EM with one accuracy."""
    one = elementary.exp(noise.log_confusion(table.params.noise))
    types = PooledNoise(noise.n_classes, np.zeros(0)).types
    p_type = np.tile(np.eye(len(types))[0], (n_workers, 1))
    return PooledFit(table, np.repeat(one, n_workers, axis=0), p_type, types, one[0])


# ----------------------------------------------------------------------------------------------------
# How far a fit departs from the majority vote, and whether the departure can be relied on.

# These thresholds are ours; how they were chosen is not recorded.
FEW_LABELS = 10  # of a worker; too few to estimate their parameters
MIN_LOW_VOLUME_SHARE = 0.3  # of all labels, from workers with few
MAX_DEPARTURE = 0.05  # share of items on which a fit may differ from the vote without further tests
MIN_CONCENTRATION_DROP = 0.01  # of the sum of squared class shares, at least, when a fit names an overused class less


@dataclass(frozen=True)
class Departure:
    """Difference between a fit and the majority vote, on items on which the vote has one winner."""

    share: float  # share of these items with another class
    is_doubtful: bool  # whether the fit rests on workers with very few labels, and nothing confirms it


def departure_from_vote(
    annotations: Annotations, gold: Gold, posterior: Array, worker_volume: npt.NDArray[Any] | None = None
) -> Departure:
    """Compare the most probable classes of a fit with those of the majority vote.

    Where a large share of the labels comes from workers with a few labels each, a fit that departs from the vote
    follows what those workers have in common. That may be one class that some of them always name: then the fit names
    it less often than the vote does. It may as well be a shared error. Gold that contradicts the vote decides;
    otherwise the fit is doubtful.

    Shapes: gold (n_items,); posterior (n_items, n_classes); worker_volume (n_workers,).
    """
    ranked = np.sort(share := vote_share(annotations), axis=1)
    clear = np.flatnonzero((ranked[:, -1] - np.append(0.0 * ranked[:, :1], ranked, axis=1)[:, -2]) > TIE)
    vote, choice = share[clear].argmax(axis=1), posterior[clear].argmax(axis=1)
    departs = float(np.mean(vote != choice)) if len(clear) else 0.0
    is_settled = departs <= MAX_DEPARTURE or gold_contradicts_vote(annotations, gold)
    if is_settled or low_volume_share(annotations, worker_volume) < MIN_LOW_VOLUME_SHARE:
        return Departure(departs, False)
    before, after = (np.sum((np.bincount(x, minlength=share.shape[1]) / len(clear)) ** 2) for x in (vote, choice))
    return Departure(departs, bool(before - after < MIN_CONCENTRATION_DROP))


def low_volume_share(annotations: Annotations, worker_volume: npt.NDArray[Any] | None = None) -> float:
    """Share of the labels that come from workers with at most `FEW_LABELS` labels.

    Shapes: worker_volume (n_workers,).
    """
    if worker_volume is not None:
        return float(worker_volume[worker_volume <= FEW_LABELS].sum() / max(worker_volume.sum(), 1))
    is_low_volume = annotations.worker_volume[annotations.worker] <= FEW_LABELS
    if annotations.weight is not None:
        return float(np.average(is_low_volume, weights=annotations.weight))
    return float(np.mean(is_low_volume))


# ----------------------------------------------------------------------------------------------------
# From a fitted crowd to the attributes and notes of Pooled Dawid-Skene.

CORRELATED_ERRORS_BELOW = 0.5  # exponent below which a note reports that workers err on the same items


def worker_results(fit: PooledFit, members: npt.NDArray[np.bool_], n_labels: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Estimates for each worker; members of a colluding group share those of its representative.

    Shapes: members (n_workers,); n_labels (n_workers,).
    """
    confusion, p_type = fit.confusion.copy(), fit.p_type.copy()
    if members.any():
        representative = int(np.argmax(np.where(members, n_labels, -1)))
        confusion[members], p_type[members] = confusion[representative], p_type[representative]
    return {"confusion_": confusion, "worker_types_": p_type, "types_": fit.types, "collusion_group_": members}


def tempered_results(fit: PooledFit, confusion: Array, exponent: float) -> dict[str, Any]:
    """The exponent, and the log confusion matrices and class prior multiplied by it.

    Shapes: confusion (n_workers, n_classes, n_classes).
    """
    if fit.no_redundancy:
        one_vote = fit.table.used_log_confusion[:1]  # the same for all workers
        table = np.repeat(one_vote, len(confusion) + 1, axis=0)
    else:
        table = safe_log(np.concatenate([confusion, fit.unseen_worker[None]]))
    raised = {"_log_confusion": exponent * table, "_log_prior": exponent * fit.log_prior}
    return raised | {"tempering_exponent_": exponent, "class_prior_": elementary.exp(fit.log_prior)}


def pooled_notes(
    worker_volume: npt.NDArray[Any],
    n_classes: int,
    exponent: float | None,
    group: CollusionGroups | None,
    departure: Departure,
) -> dict[str, str]:
    """Limitations of the result, by code.

    Shapes: worker_volume (n_workers,).
    """
    notes = {}
    vote = "the majority vote" if group is None else "the majority vote in which these workers count as one"
    if group is not None:
        who = f"{int(group.members.sum())} workers"
        who += "" if group.max_labels is None else f" with at most {group.max_labels} labels each, taken together,"
        notes["collusion_group"] = (
            f"{who} agree with one another on {group.agreement:.0%} of their common items, where {group.expected:.0%} "
            f"is expected of independent workers; they count as one."
        )
    if np.median(worker_volume[worker_volume > 0]) < 2 * n_classes:
        differs = 0.0 if departure.is_doubtful else departure.share
        notes["few_labels_per_worker"] = (
            f"Half of the workers gave fewer than {2 * n_classes} labels, so estimates are uncertain; "
            f"the result differs from {vote} on {differs:.1%} of the items on which the vote has one winner."
        )
    if departure.is_doubtful:
        notes["fell_back_to_vote"] = (
            f"At least {MIN_LOW_VOLUME_SHARE:.0%} of the labels come from workers with at most {FEW_LABELS} labels. "
            f"A model of their errors would change {departure.share:.0%} of the labels of {vote}, without naming an "
            f"overused class less often. Such a fit is not reliable, so the result is that vote. Gold items would show "
            f"which is right."
        )
    if exponent is not None and exponent < CORRELATED_ERRORS_BELOW:
        notes["correlated_errors"] = (
            f"Held-out labels show that workers err on the same items; the posterior is tempered by the exponent "
            f"{exponent:g}, where 1 means independent errors."
        )
    return notes


def orientation_note(annotations: Annotations, confusion: Array) -> dict[str, str]:
    """A note where so many labels come from workers who exchange classes that the opposite may be true.

    Shapes: confusion (n_workers, n_classes, n_classes).
    """
    weight = log_odds(confusion)
    n_labels = np.bincount(annotations.worker, weights=annotations.weight, minlength=annotations.n_workers)
    exchanged, usual = n_labels[weight < -MIN_LOG_ODDS].sum(), n_labels[weight > MIN_LOG_ODDS].sum()
    share = exchanged / max(exchanged + usual, 1.0)
    if share < MAX_EXCHANGED_SHARE:
        return {}
    return {
        "orientation": (
            f"By this result {share:.0%} of the labels of workers who are not random come from workers who exchange "
            f"classes. With a few more of them the opposite result would be as probable: the labels alone cannot tell "
            f"which of the two groups is right. A few items whose class is known (`gold`) can."
        )
    }


def flat_note(annotations: Annotations, gold: Gold, posterior: Array) -> dict[str, str]:
    """The note on items on which the fit says nothing, and the vote decides.

    Shapes: gold (n_items,); posterior (n_items, n_classes).
    """
    fixed = annotations.n_labels == 0
    n_decided = int(ties_by_vote(annotations, posterior, fixed if gold is None else fixed | (gold >= 0))[1].sum())
    if not n_decided:
        return {}
    return {
        "vote_decides": (
            f"On {n_decided} of {annotations.n_items} items the fit gives several classes the same probability; "
            f"the vote decides between them."
        )
    }


# ----------------------------------------------------------------------------------------------------
# A crowd of workers who use one class only: labelling functions, and moderators who mark what they see.


def _infer_firing(annotations: Annotations, gold: Gold, overrule: str, power: float) -> Inference:
    """The result of the firing model, with the attributes of Pooled Dawid-Skene.

    Shapes: gold (n_items,).
    """
    model, firing = fit_firing(annotations, gold)
    posterior = model.posterior(annotations, gold)
    no_worker = np.zeros(annotations.n_workers, bool)
    confusion = worker_confusions(annotations, posterior)  # of the labels that are given
    results = {
        "firing_": firing,
        "_log_confusion": model.log_odds,
        "_log_silence": model.log_silence,
        "_vote_weight": model.vote_weight,
        "class_prior_": model.class_prior,
        "_log_prior": safe_log(model.class_prior),
        "confusion_": confusion[:-1],
        "_unseen_worker": confusion[-1],
        "types_": (ONE_CLASS,),
        "worker_types_": np.ones((annotations.n_workers, 1)),
        "collusion_group_": no_worker,
        "tempering_exponent_": 1.0,
        "crowd_power_": power,
        "_model_posterior": posterior,
        "_used_rule": "never" if overrule == "never" else "always",  # the vote is part of the model
        "_is_sybil_group": False,
    }
    released, results["withheld_"] = release(annotations, posterior, gold, results)
    notes = {"one_class_workers": one_class_note(annotations)} | flat_note(annotations, gold, posterior)
    return Inference(released, results=results, notes=notes)


# ----------------------------------------------------------------------------------------------------
# The estimator.


class PooledDawidSkene(Aggregator):
    """Dawid-Skene with confusion matrices shrunk toward those of the crowd, by worker type; the default method.

        type_w ~ shares,   confusion_w ~ prior of type_w                   (one-coin, spammer or confusion)
        p(k | labels of i)  ~  (prior[k] prod_w confusion[w, k, label_iw]) ^ exponent

    A worker with many labels gets a confusion matrix of their own, one with few labels gets that of the crowd, and
    workers who answer at random or always give the same label are recognised as spammers. Type shares and priors are
    fitted by variational EM. The posterior is tempered by the exponent with the best held-out log-likelihood
    (cross-validation over labels), because workers err on the same items, and raised to a power learnt across crowds,
    because a whole crowd can share an error. Colluding groups are collapsed into one vote. A label other than the
    plurality of an item's labels is named only where it wins or ties once random and inverted workers are discounted
    and all others have one vote each; elsewhere it would rest on class-specific confusions alone. Where most labels
    come from workers who use one class only although they labelled enough (labelling functions, moderators who mark
    what they see), the model is that of `FiringNaiveBayes`, and the note `one_class_workers` says so.

    Use it as the default for crowds of any size. The majority is assumed to understand the classes: a crowd that is
    wrong more often than right inverts the result, unless gold labels show it. Where all workers have hundreds of
    labels `DawidSkene` does the same with less work.

    Parameters
    ----------
    prior_strength : float, default=0.03
        Pseudo-count of the one-coin type, as a share of the workers; larger values keep the result closer to the vote.
    detect_collusion : bool, default=True
        Search for a group of workers who share their answers, and collapse it into one voter; and for pairs and groups
        of workers who copy one another, of whom one counts on each item.
    overrule : {"never", "supported", "always"}, default="supported"
        When a label other than the plurality of an item's labels may be named: never (only ties are decided by the
        model), where it has support, or always where the model finds it more probable.
    temper : {"crowds", "none"} or float, default="crowds"
        Power to which the posterior is raised: 0.64, learnt across crowds and blended with 1 where held-out labels show
        independent errors; 1; or the given power. Labels stay the same.
    calibrate : bool, default=True
        Temper the posterior by held-out labels.
    n_folds : int, default=5
        Number of folds into which the labels are split for that.
    max_iter : int, default=500
        Maximum number of EM iterations (passes over the data).
    tol : float, default=1e-5
        Stop when the estimated distance to the optimum is below `tol` times the objective.

    Attributes
    ----------
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        Expected confusion matrices, indexed [worker, truth, label]; rows (over the label) sum to 1.
    class_prior_ : ndarray of shape (n_classes,)
        Class frequencies.
    types_ : tuple of str
        The worker types in use: "one-coin", "spammer" and, up to ten classes, "confusion"; "one-class" alone in a crowd
        of workers who use one class each.
    worker_types_ : ndarray of shape (n_workers, n_types)
        Posterior p(type) of each worker.
    collusion_group_ : ndarray of shape (n_workers,) of bool
        Workers of the colluding group, which was collapsed into one voter.
    copy_groups_ : ndarray of shape (n_workers,)
        Number of the group of each worker whose labels are copied from another, or copied by another; -1 for workers in
        none. On each item, one label of a group counts.
    tempering_exponent_ : float
        Exponent of the posterior: 1 where labels are independent given the truth, less where errors are correlated.
    crowd_power_ : float
        Power to which the posterior was raised after that (`temper`).
    withheld_ : ndarray of shape (n_items,) of bool
        Items on which the label of the model had no support, and the plurality is named instead.
    firing_ : ndarray of shape (n_workers, n_classes, n_classes)
        Only in a crowd of workers who use one class each: their rates of labels, as `FiringNaiveBayes` has them.

    References
    ----------
    A. P. Dawid and A. M. Skene (1979), Maximum likelihood estimation of observer error-rates using the EM algorithm,
    Applied Statistics 28.
    D. Hovy, T. Berg-Kirkpatrick, A. Vaswani and E. Hovy (2013), Learning whom to trust with MACE, NAACL.

    Examples
    --------
    >>> from manyhands import PooledDawidSkene
    >>> from manyhands.simulate import make_crowd
    >>> crowd = make_crowd(n_items=200, n_workers=20, labels_per_item=5, bad="constant", bad_share=0.3, random_state=0)
    >>> model = PooledDawidSkene().fit(crowd.annotations)
    >>> bool((model.labels_ == crowd.truth).mean() > 0.8)
    True
    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        "prior_strength": Number(least=0),
        "detect_collusion": OneOf((True, False)),
        "overrule": OneOf(RULES),
        "temper": TEMPER,
        "calibrate": OneOf((True, False)),
        "n_folds": Number(whole=True, least=2),
        "max_iter": Number(whole=True, least=1),
        "tol": Number(least=0),
    }

    _of_items: ClassVar[tuple[str, ...]] = (*Aggregator._of_items, "withheld_", "_model_posterior")

    _takes_weights: ClassVar[bool] = True

    collusion_group_: npt.NDArray[np.bool_]
    copy_groups_: npt.NDArray[np.int64]
    _copy_rank: npt.NDArray[np.int64]  # of the members of a group, the one with the lowest rank counts
    crowd_power_: float
    confusion_: Array
    _unseen_worker: Array  # (n_classes, n_classes) expected confusion matrix of a worker without labels
    _model_posterior: Array  # before overruling and the power of the crowds
    class_prior_: Array
    firing_: Array  # these three in a crowd of workers who use one class each
    _log_silence: Array  # (n_workers + 1, n_classes)
    _vote_weight: Array  # (n_workers + 1,)
    types_: tuple[str, ...]
    worker_types_: Array
    tempering_exponent_: float
    withheld_: npt.NDArray[np.bool_]

    def __init__(
        self,
        prior_strength: float = 0.03,
        detect_collusion: bool = True,
        overrule: str = "supported",
        temper: str | float = "crowds",
        calibrate: bool = True,
        n_folds: int = 5,
        max_iter: int = 500,
        tol: float = 1e-5,
    ) -> None:
        self.prior_strength = prior_strength
        self.detect_collusion = detect_collusion
        self.overrule = overrule
        self.temper = temper
        self.calibrate = calibrate
        self.n_folds = n_folds
        self.max_iter = max_iter
        self.tol = tol

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        check_tables(annotations)
        group, copies = None, no_copies(annotations.n_workers)
        if is_one_class_crowd(annotations) and not has_no_redundancy(annotations, gold):
            power = chosen_power(self.temper, Tempering())
            firing = partial(_infer_firing, overrule=self.overrule, power=power)
            return infer_without_copies(firing, annotations, gold, copies, ())
        if self.detect_collusion:
            group, copies = find_group_and_copies(annotations)
        infer = partial(self._infer_collapsed, group=group)
        of_workers = ("confusion_", "worker_types_", "_log_confusion")
        return infer_without_copies(infer, annotations, gold, copies, of_workers)

    def _infer_collapsed(self, annotations: Annotations, gold: Gold, *, group: CollusionGroups | None) -> Inference:
        """Fit the labels that count, with the colluding group as one voter."""
        members = np.zeros(annotations.n_workers, bool) if group is None else group.members
        collapsed = collapse_groups(annotations, members)
        fitter: Fitter = partial(fit_pooled, prior_strength=self.prior_strength)
        fit = fitter(collapsed, gold, self.max_iter, self.tol)
        departure = departure_from_vote(collapsed, gold, fit.posterior)
        if departure.is_doubtful:
            fitter = fit_one_accuracy
            fit = fitter(collapsed, gold, self.max_iter, self.tol)
        tempering = Tempering(1.0)
        if self.calibrate and not fit.no_redundancy:
            tempering = choose_exponent(collapsed, gold, fitter, self.n_folds)
        results = worker_results(fit, members, np.bincount(collapsed.worker, minlength=collapsed.n_workers))
        exponent = 1.0 if tempering.exponent is None else tempering.exponent
        results |= tempered_results(fit, results["confusion_"], exponent)
        posterior, final = posterior_given(collapsed, results["_log_confusion"][:-1], results["_log_prior"], gold)
        results["_unseen_worker"] = fit.unseen_worker
        results["_model_posterior"] = posterior
        results["_used_rule"] = self._rule(fit, departure, gold_contradicts_vote(annotations, gold))
        results["crowd_power_"] = 1.0 if fit.no_redundancy else chosen_power(self.temper, tempering)
        results["_is_sybil_group"] = group is not None and group.max_labels is not None
        posterior, results["withheld_"] = release(annotations, posterior, gold, results)
        counts = final.counts if group is None else None  # collapsed members have no counts of their own
        notes = pooled_notes(annotations.worker_volume, annotations.n_classes, tempering.exponent, group, departure)
        if gold is None or np.all(gold < 0):
            notes |= orientation_note(collapsed, results["confusion_"])
        notes |= flat_note(annotations, gold, results["_model_posterior"])
        em = fit.table
        return Inference(posterior, counts, em.n_iter, em.converged, em.history, results, notes)

    def _rule(self, fit: PooledFit, departure: Departure, vote_is_wrong: bool) -> str:
        """`overrule`, but "always" where the result is the vote already, or where gold shows that the vote is wrong."""
        is_vote = fit.no_redundancy or departure.is_doubtful
        return "always" if is_vote or vote_is_wrong else self.overrule

    def _posterior(self, annotations: Annotations, gold: Gold) -> Array:
        """An E step after collapsing the colluding group and the copies of `fit`; overruling and power as in `fit`."""
        annotations = without_copies(annotations, self.copy_groups_, self._copy_rank)
        posterior = self._model_posterior_of(annotations, gold)
        results = {
            "confusion_": np.concatenate([self.confusion_, self._unseen_worker[None]]),
            "collusion_group_": np.append(self.collusion_group_, False),
        }
        return release(annotations, posterior, gold, vars(self) | results)[0]

    def _scoring_posterior(self) -> Array:
        """The posterior of the model itself: the power of the crowds is no part of the likelihood of labels."""
        return self._model_posterior

    def _model_posterior_of(self, annotations: Annotations, gold: Gold) -> Array:
        if getattr(self, "firing_", None) is not None:
            tables = self._log_confusion, self._log_silence, self._vote_weight, self.class_prior_
            return FiringModel(*tables).posterior(annotations, gold)
        return super()._posterior(collapse_groups(annotations, np.append(self.collusion_group_, False)), gold)
