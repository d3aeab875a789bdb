"""Pooled Dawid-Skene: confusion matrices drawn toward what the crowd has in common, and a confidence that is checked.

    type_w ~ shares,  confusion_w ~ prior of type_w                        (coin, habit, full; see `noise.pooled`)
    p(k | labels of i)  ~  (prior[k] prod_w confusion[w, k, label_iw]) ^ power

Types and their priors are fitted to the data by variational EM. The power is chosen by held-out labels: workers err
together on hard items, so labels say less than independent ones would. A power never changes which class is best.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.aggregation.base import Aggregator, Gold, Inference
from manyhands.aggregation.pooled_fit import Fitter, PooledFit, fit_one_accuracy, fit_pooled
from manyhands.aggregation.tempering import choose_exponent
from manyhands.aggregation.vote_departure import FEW_LABELS, MIN_LOW_VOLUME_SHARE, Departure, departure_from_vote
from manyhands.annotations import Annotations
from manyhands.em.collusion import CollusionGroups, collapse_groups, find_colluding_groups
from manyhands.em.e_step import posterior_given
from manyhands.em.kernels import Array, check_tables
from manyhands.noise import safe_log
from manyhands.validation import Constraint, Number, OneOf

CORRELATED_ERRORS_BELOW = 0.5  # exponent below which a note reports that workers err on the same items


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
        "prior_strength": Number(least=0),
        "detect_collusion": OneOf((True, False)),
        "calibrate": OneOf((True, False)),
        "n_folds": Number(whole=True, least=2),
        "max_iter": Number(whole=True, least=1),
        "tol": Number(least=0),
    }

    collusion_group_: npt.NDArray[np.bool_]

    def __init__(
        self,
        prior_strength: float = 0.03,
        detect_collusion: bool = True,
        calibrate: bool = True,
        n_folds: int = 5,
        max_iter: int = 500,
        tol: float = 1e-5,
    ) -> None:
        self.prior_strength = prior_strength
        self.detect_collusion = detect_collusion
        self.calibrate = calibrate
        self.n_folds = n_folds
        self.max_iter = max_iter
        self.tol = tol

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        check_tables(annotations)
        group = find_colluding_groups(annotations) if self.detect_collusion else None
        members = np.zeros(annotations.n_workers, bool) if group is None else group.members
        collapsed = collapse_groups(annotations, members)
        fitter: Fitter = partial(fit_pooled, prior_strength=self.prior_strength)
        fit = fitter(collapsed, gold, self.max_iter, self.tol)
        departure = departure_from_vote(collapsed, gold, fit.posterior)
        if departure.is_doubtful:
            fitter = fit_one_accuracy
            fit = fitter(collapsed, gold, self.max_iter, self.tol)
        exponent: float | None = 1.0
        if self.calibrate and not fit.no_redundancy:
            exponent = choose_exponent(collapsed, gold, fitter, self.n_folds)
        results = _worker_results(fit, members, np.bincount(collapsed.worker, minlength=collapsed.n_workers))
        results |= _tempered(fit, results["confusion_"], 1.0 if exponent is None else exponent)
        posterior, final = posterior_given(collapsed, results["_log_table"][:-1], results["_log_prior"], gold)
        counts = final.counts if group is None else None  # collapsed members have no counts of their own
        notes = _notes(annotations, exponent, group, departure)
        em = fit.table
        return Inference(posterior, counts, em.n_iter, em.converged, em.history, results, notes)

    def _posterior(self, annotations: Annotations, gold: Gold) -> Array:
        return super()._posterior(collapse_groups(annotations, np.append(self.collusion_group_, False)), gold)


def _worker_results(fit: PooledFit, members: npt.NDArray[np.bool_], n_labels: npt.NDArray[np.int64]) -> dict[str, Any]:
    """What is known of each worker; those who count as one share what is known of the one who speaks for them."""
    confusion, p_type = fit.confusion.copy(), fit.p_type.copy()
    if members.any():
        representative = int(np.argmax(np.where(members, n_labels, -1)))
        confusion[members], p_type[members] = confusion[representative], p_type[representative]
    return {"confusion_": confusion, "worker_types_": p_type, "types_": fit.types, "collusion_group_": members}


def _tempered(fit: PooledFit, confusion: Array, exponent: float) -> dict[str, Any]:
    """The power, and the table and class prior of the last E step, raised to it."""
    if fit.no_redundancy:
        one_vote = fit.table.used_log_confusion[:1]  # the same for everybody
        table = np.repeat(one_vote, len(confusion) + 1, axis=0)
    else:
        table = safe_log(np.concatenate([confusion, fit.unseen_worker[None]]))
    raised = {"_log_table": exponent * table, "_log_prior": exponent * fit.log_prior}
    return raised | {"tempering_exponent_": exponent, "class_prior_": elementary.exp(fit.log_prior)}


def _notes(
    annotations: Annotations, exponent: float | None, group: CollusionGroups | None, departure: Departure
) -> dict[str, str]:
    """What limits the answer, for the user to know."""
    notes = {}
    vote = "the majority vote" if group is None else "the majority vote in which these workers count as one"
    if group is not None:
        who = f"{int(group.members.sum())} workers"
        who += "" if group.most_labels is None else f" with at most {group.most_labels} labels each, taken together,"
        notes["collusion_group"] = (
            f"{who} agree with one another on {group.agreement:.0%} of what they share, "
            f"where {group.expected:.0%} were to be expected; they count as one."
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
            f"At least {MIN_LOW_VOLUME_SHARE:.0%} of the labels come from workers with at most {FEW_LABELS} labels. A model of their "
            f"errors would change {departure.share:.0%} of the labels of {vote}, without naming an overused class less "
            f"often. Such a fit is not reliable, so the answer is that vote. Gold items would show which is right."
        )
    if exponent is not None and exponent < CORRELATED_ERRORS_BELOW:
        notes["workers_err_together"] = (
            f"Held-out labels show that workers err on the same items; a label counts {exponent:g} of an independent one."
        )
    return notes
