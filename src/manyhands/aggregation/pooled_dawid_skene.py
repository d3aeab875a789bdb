"""Pooled Dawid-Skene: confusion matrices drawn toward what the crowd has in common, and a confidence that is checked.

    type_w ~ shares,  confusion_w ~ prior of type_w                        (coin, habit, full; see `noise.pooled`)
    p(k | labels of i)  ~  (prior[k] prod_w confusion[w, k, label_iw]) ^ power

Types and their priors are fitted to the data by variational EM. The power is chosen by held-out labels: workers err
together on hard items, so labels say less than independent ones would. A power never changes which class is best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.aggregation.base import PRIOR_ACCURACY, Aggregator, Gold, Inference
from manyhands.annotations import Annotations
from manyhands.em.collusion import CollusionGroups, collapse_groups, find_colluding_groups
from manyhands.em.confusion_em import ConfusionEMFit, doubts_the_vote, fit_confusion_em
from manyhands.em.exchangeable import kinds_of_workers, merge_workers
from manyhands.em.kernels import Array, check_tables, em_pass, pack, vote_share
from manyhands.em.priors import EstimatedPrior, FixedPrior, gold_offset
from manyhands.heldout import split_labels
from manyhands.noise import safe_log
from manyhands.noise.one_coin import OneCoinNoise
from manyhands.noise.pooled import PooledNoise
from manyhands.validation import Constraint, Number, OneOf

POWERS = np.array([0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
FOLD_PASSES = 25  # of EM in a fold: it has to place the workers, not to converge
FOLD_PASSES_THIN = 8
ENOUGH = 50_000  # held-out labels
FEWEST = 50
LARGEST_THIN = 20_000  # the same, where workers are many with few labels each: their tables are the work
LARGEST = 2_000_000  # labels; of a larger crowd a sample of the items is split
THIN = ((5_000, 5.0), (500, 1.5))  # at least so many workers, with at most so many labels each
FEW_LABELS = 10  # of a worker: too few to judge them by
MUCH = 0.3  # of all labels
MOST_DEPARTURE = 0.05  # of the items, from the vote
LEAST_RELIEF = 0.01  # by which the sum of squared class shares falls where an overused class is named less
TIE = 1e-9
HALF_INDEPENDENT = 0.5
PRIOR_ITEMS = 1.0  # items added to every class


class PooledDawidSkene(Aggregator):
    """Confusion matrices shrunk toward the crowd's, by worker type; the default method.

    A worker with many labels gets a confusion matrix of his own, one with few looks like the crowd, and those who
    guess or always say the same are recognised as such. Confidence is tempered until it foretells held-out labels.
    Workers who answer as one voice are counted as one. What the majority says is taken to be what the labels mean: a
    crowd that is wrong more often than right is followed into error, unless gold labels say otherwise.

    Parameters
    ----------
    pull : share of the workers counted in advance as differing in accuracy alone; more leans toward the vote
    one_voice : look for workers who answer as one (copies, a shared answer sheet) and count them as one
    calibrate : temper the confidence by held-out labels
    n_folds : parts into which the labels are split for that
    max_iter, tol : at most this many passes; stop within `tol` of the optimum, as a share of the objective

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes) expected confusion matrices
    class_prior_ : (n_classes,)
    types_ : the worker types in use: "coin", "habit" and, up to ten classes, "full"
    worker_types_ : (n_workers, n_types) p(type) of each worker
    one_voice_ : (n_workers,) bool, those who count as one
    power_ : how far labels count as independent, 1 for entirely

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
        "pull": Number(least=0),
        "collusion_group": OneOf((True, False)),
        "calibrate": OneOf((True, False)),
        "n_folds": Number(whole=True, least=2),
        "max_iter": Number(whole=True, least=1),
        "tol": Number(least=0),
    }

    collusion_group_: npt.NDArray[np.bool_]

    def __init__(
        self,
        pull: float = 0.03,
        collusion_group: bool = True,
        calibrate: bool = True,
        n_folds: int = 5,
        max_iter: int = 500,
        tol: float = 1e-5,
    ) -> None:
        self.pull = pull
        self.collusion_group = collusion_group
        self.calibrate = calibrate
        self.n_folds = n_folds
        self.max_iter = max_iter
        self.tol = tol

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        check_tables(annotations)
        voice = find_colluding_groups(annotations) if self.collusion_group else None
        members = np.zeros(annotations.n_workers, bool) if voice is None else voice.members
        heard = collapse_groups(annotations, members)
        fitting: Fitting = partial(_fit, pull=self.pull)
        fit = fitting(heard, gold, self.max_iter, self.tol)
        departure = _departure(heard, gold, fit)
        if departure.is_doubtful:
            fitting = _fit_vote
            fit = fitting(heard, gold, self.max_iter, self.tol)
        power = _choose_power(heard, gold, fitting, self.n_folds) if self.calibrate and not fit.alone else 1.0
        results = _worker_results(fit, members, np.bincount(heard.worker, minlength=heard.n_workers))
        results |= _tempered(fit, results["confusion_"], 1.0 if power is None else power)
        offset = gold_offset(gold, annotations.n_classes)
        table, log_prior = results["_log_table"][:-1], results["_log_prior"]
        final = em_pass(pack(heard), table, log_prior, offset, want_posterior=True)
        assert final.posterior is not None
        counts = final.counts if voice is None else None  # those of silent members are not there
        notes = _notes(annotations, power, voice, departure)
        em = fit.table
        return Inference(final.posterior, counts, em.n_iter, em.converged, em.history, results, notes)

    def _posterior(self, annotations: Annotations, gold: Gold) -> Array:
        return super()._posterior(collapse_groups(annotations, np.append(self.collusion_group_, False)), gold)


@dataclass(frozen=True)
class _Fit:
    """A fitted crowd."""

    table: ConfusionEMFit[Any]
    confusion: Array  # (n_workers, n_classes, n_classes)
    p_type: Array  # (n_workers, n_types)
    types: tuple[str, ...]
    newcomer: Array  # (n_classes, n_classes) of a worker of whom nothing is known

    @property
    def alone(self) -> bool:
        return self.table.alone

    @property
    def log_prior(self) -> Array:
        return self.table.params.log_prior


Fitting = Callable[
    [Annotations, Gold, int, float], _Fit
]  # of annotations and gold, with so many passes and a tolerance


def _fit(annotations: Annotations, gold: Gold, max_iter: int, tol: float, *, pull: float) -> _Fit:
    """Variational EM; workers whom nothing tells apart are fitted as one."""
    n_labels = np.bincount(annotations.worker, minlength=annotations.n_workers).astype(float)
    single_class = bool(annotations.label.min(initial=0) == annotations.label.max(initial=0))
    few_items = bool(np.count_nonzero(annotations.n_labels) < annotations.n_classes)  # tables are mostly prior
    leap = _is_thin(annotations) or single_class or few_items
    kind, size = kinds_of_workers(annotations, gold), None
    if kind is not None:
        annotations, size = merge_workers(annotations, kind), np.bincount(kind).astype(float)
        n_labels = np.bincount(kind, weights=n_labels) / size
    noise = PooledNoise(annotations.n_classes, n_labels, pull, size, leap)
    prior = EstimatedPrior(PRIOR_ITEMS)
    table = fit_confusion_em(annotations, noise, prior, gold=gold, max_iter=max_iter, tol=tol, stop_early=leap)
    params = table.params.noise
    confusion, p_type = noise.confusion(params), params.workers.p_type.copy()
    if kind is not None:
        confusion, p_type = confusion[kind], p_type[kind]
    return _Fit(table, confusion, p_type, noise.types, noise.newcomer(params))


def _fit_vote(annotations: Annotations, gold: Gold, max_iter: int, tol: float) -> _Fit:
    """One accuracy for all workers and no class prior: the labels are the vote's, and the confidence is a model's."""
    n_workers, n_classes = annotations.n_workers, annotations.n_classes
    merged = merge_workers(annotations, np.zeros(n_workers, np.int64))
    noise = OneCoinNoise(n_classes, 1.0, PRIOR_ACCURACY)
    prior = FixedPrior(np.full(n_classes, -elementary.log(n_classes)))
    table = fit_confusion_em(merged, noise, prior, gold=gold, max_iter=max_iter, tol=tol)
    one = elementary.exp(noise.log_table(table.params.noise))
    types = PooledNoise(n_classes, np.zeros(0)).types
    p_type = np.tile(np.eye(len(types))[0], (n_workers, 1))
    return _Fit(table, np.repeat(one, n_workers, axis=0), p_type, types, one[0])


def _is_thin(annotations: Annotations) -> bool:
    """Whether the workers are many, with few labels each: little can be known of any, and their tables are the work."""
    n_active = np.count_nonzero(np.bincount(annotations.worker))
    return any(n_active >= least and annotations.n_annotations <= most * n_active for least, most in THIN)


def _worker_results(fit: _Fit, members: npt.NDArray[np.bool_], n_labels: npt.NDArray[np.int64]) -> dict[str, Any]:
    """What is known of each worker; those who count as one share what is known of the one who speaks for them."""
    confusion, p_type = fit.confusion.copy(), fit.p_type.copy()
    if members.any():
        speaker = int(np.argmax(np.where(members, n_labels, -1)))
        confusion[members], p_type[members] = confusion[speaker], p_type[speaker]
    return {"confusion_": confusion, "worker_types_": p_type, "types_": fit.types, "collusion_group_": members}


def _tempered(fit: _Fit, confusion: Array, power: float) -> dict[str, Any]:
    """The power, and the table and class prior of the last E step, raised to it."""
    if fit.alone:
        one_vote = fit.table.used_table[:1]  # the same for everybody
        table = np.repeat(one_vote, len(confusion) + 1, axis=0)
    else:
        table = safe_log(np.concatenate([confusion, fit.newcomer[None]]))
    raised = {"_log_table": power * table, "_log_prior": power * fit.log_prior}
    return raised | {"tempering_exponent_": power, "class_prior_": elementary.exp(fit.log_prior)}


def _choose_power(annotations: Annotations, gold: Gold, fitting: Fitting, n_folds: int) -> float | None:
    """The largest power within one standard error of the best on held-out labels; None where there are too few."""
    sample, gold = _sample_of_items(annotations, gold)
    fold = split_labels(sample, n_folds)
    scores: list[Array] = []
    for k in range(n_folds):
        if sum(map(len, scores)) < ENOUGH:
            scores.append(_heldout_scores(sample, gold, fitting, fold == k))
    score = np.concatenate(scores)  # (n_held_out, n_powers)
    if len(score) < FEWEST:
        return None
    best = int(score.mean(axis=0).argmax())
    loss = score[:, [best]] - score
    near = loss.mean(axis=0) <= loss.std(axis=0) / np.sqrt(len(loss))
    return float(POWERS[np.flatnonzero(near).max()])


def _sample_of_items(annotations: Annotations, gold: Gold) -> tuple[Annotations, Gold]:
    """All items of a crowd of ordinary size, and evenly spaced ones of a huge crowd or one of very many workers."""
    step = annotations.n_annotations // (LARGEST_THIN if _is_thin(annotations) else LARGEST) + 1
    if step == 1:
        return annotations, gold
    sample = annotations[::step]
    has_label = np.bincount(sample.worker, minlength=sample.n_workers) > 0
    sample = merge_workers(
        sample, np.maximum(np.cumsum(has_label) - 1, 0)
    )  # those without a label cost, and add nothing
    return sample, None if gold is None else gold[::step]


def _heldout_scores(annotations: Annotations, gold: Gold, fitting: Fitting, out: npt.NDArray[np.bool_]) -> Array:
    """(n_held_out, n_powers) log p(label) of the labels in `out`, each item known by its other labels alone."""
    known = annotations.keep(~out)
    held = annotations.keep(out & (known.n_labels > 0)[annotations.item])
    if known.n_annotations == 0 or held.n_annotations == 0:
        return np.zeros((0, len(POWERS)))
    fit = fitting(known, gold, FOLD_PASSES_THIN if _is_thin(annotations) else FOLD_PASSES, 0.0)
    confusion, offset = fit.confusion, gold_offset(gold, known.n_classes)
    final = em_pass(pack(known), safe_log(confusion), fit.log_prior, offset, want_posterior=True)
    assert final.posterior is not None
    log_p = safe_log(final.posterior)[held.item]  # (n_held_out, n_classes)
    p_label = confusion[held.worker, :, held.label]
    scores = []
    for power in POWERS:
        p = elementary.exp(power * (log_p - log_p.max(axis=1, keepdims=True)))
        scores.append(safe_log((p * p_label).sum(axis=1) / p.sum(axis=1)))
    return np.stack(scores, axis=1)


@dataclass(frozen=True)
class _Departure:
    """How far a fit departs from the majority vote, on items on which the vote has one winner."""

    share: float  # of these items
    is_doubtful: bool  # it rests on ids of whom next to nothing is known, and nothing speaks for it


def _departure(annotations: Annotations, gold: Gold, fit: _Fit) -> _Departure:
    """Compare the labels of a fit with the vote's.

    Where much of the labels come from ids with a few labels each, a fit that departs from the vote follows what those
    ids have in common. That may be a class that some of them always name: then the fit names it less often than the
    vote does. It may as well be a shared error. Gold that contradicts the vote settles it; otherwise the vote is kept.
    """
    assert fit.table.final.posterior is not None
    ranked = np.sort(share := vote_share(annotations), axis=1)
    clear = np.flatnonzero((ranked[:, -1] - np.append(0.0 * ranked[:, :1], ranked, axis=1)[:, -2]) > TIE)
    vote, found = share[clear].argmax(axis=1), fit.table.final.posterior[clear].argmax(axis=1)
    departs = float(np.mean(vote != found)) if len(clear) else 0.0
    is_settled = departs <= MOST_DEPARTURE or doubts_the_vote(annotations, gold)
    if is_settled or _share_of_thin_ids(annotations) < MUCH:
        return _Departure(departs, False)
    before, after = (np.sum((np.bincount(x, minlength=share.shape[1]) / len(clear)) ** 2) for x in (vote, found))
    return _Departure(departs, bool(before - after < LEAST_RELIEF))


def _share_of_thin_ids(annotations: Annotations) -> float:
    """The share of the labels that come from workers with a few labels each."""
    n_labels = np.bincount(annotations.worker)
    return float(np.mean(n_labels[annotations.worker] <= FEW_LABELS))


def _notes(
    annotations: Annotations, power: float | None, voice: CollusionGroups | None, departure: _Departure
) -> dict[str, str]:
    """What limits the answer, for the user to know."""
    notes = {}
    vote = "the majority vote" if voice is None else "the majority vote in which these workers count as one"
    if voice is not None:
        who = f"{int(voice.members.sum())} workers"
        who += "" if voice.most_labels is None else f" with at most {voice.most_labels} labels each, taken together,"
        notes["collusion_group"] = (
            f"{who} agree with one another on {voice.agreement:.0%} of what they share, "
            f"where {voice.expected:.0%} were to be expected; they count as one."
        )
    busy = np.bincount(annotations.worker)
    if np.median(busy[busy > 0]) < 2 * annotations.n_classes:
        differs = 0.0 if departure.is_doubtful else departure.share
        notes["few_labels_per_worker"] = (
            f"Half of the workers gave fewer than {2 * annotations.n_classes} labels, and little is known of each; "
            f"the answer differs from {vote} on {differs:.1%} of the items on which the vote has one winner."
        )
    if departure.is_doubtful:
        notes["fell_back_to_vote"] = (
            f"At least {MUCH:.0%} of the labels come from workers with at most {FEW_LABELS} labels. A model of their "
            f"errors would change {departure.share:.0%} of the labels of {vote}, without naming an overused class less "
            f"often. Such a fit is not reliable, so the answer is that vote. Gold items would show which is right."
        )
    if power is not None and power < HALF_INDEPENDENT:
        notes["workers_err_together"] = (
            f"Held-out labels show that workers err on the same items; a label counts {power:g} of an independent one."
        )
    return notes
