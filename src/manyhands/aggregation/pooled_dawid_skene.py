"""Pooled Dawid-Skene, the default method: a hierarchical prior of confusion matrices, and a calibrated posterior.

    type_w ~ shares,  confusion_w ~ prior of type_w                   (one-coin, spammer, confusion; see `noise.pooled`)
    p(k | labels of i)  ~  (prior[k] prod_w confusion[w, k, label_iw]) ^ exponent

Types and their priors are fitted to the data by variational EM (`pooled_fit`). The exponent is chosen by the held-out
log-likelihood (`tempering`). Colluding groups are collapsed first (`em.collusion`), and a doubtful fit is replaced by
the vote (`vote_departure`). A label other than the plurality needs support (`overruling`), and the posterior is raised
to a power learnt across crowds (`crowd_power`).
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.base import Aggregator, Gold, Inference
from manyhands.aggregation.pooled_fit import Fitter, PooledFit, fit_one_accuracy, fit_pooled
from manyhands.aggregation.pooled_results import pooled_notes, tempered_results, worker_results
from manyhands.aggregation.safeguards import RULES, TEMPER, chosen_power, release
from manyhands.aggregation.tempering import Tempering, choose_exponent
from manyhands.aggregation.vote_departure import Departure, departure_from_vote
from manyhands.annotations import Annotations
from manyhands.em.collusion import collapse_groups, find_colluding_groups
from manyhands.em.e_step import posterior_given
from manyhands.em.kernels import Array
from manyhands.em.starts import gold_contradicts_vote
from manyhands.em.table_sizes import check_tables
from manyhands.validation import Constraint, Number, OneOf


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
    and all others have one vote each; elsewhere it would rest on class-specific confusions alone.

    Use it as the default for crowds of any size. The majority is assumed to understand the classes: a crowd that is
    wrong more often than right inverts the result, unless gold labels show it. Where all workers have hundreds of
    labels `DawidSkene` does the same with less work.

    Parameters
    ----------
    prior_strength : float, default=0.03
        Pseudo-count of the one-coin type, as a share of the workers; larger values keep the result closer to the vote.
    detect_collusion : bool, default=True
        Search for a group of workers who share their answers, and collapse it into one voter.
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
        The worker types in use: "one-coin", "spammer" and, up to ten classes, "confusion".
    worker_types_ : ndarray of shape (n_workers, n_types)
        Posterior p(type) of each worker.
    collusion_group_ : ndarray of shape (n_workers,) of bool
        Workers of the colluding group, which was collapsed into one voter.
    tempering_exponent_ : float
        Exponent of the posterior: 1 where labels are independent given the truth, less where errors are correlated.
    crowd_power_ : float
        Power to which the posterior was raised after that (`temper`).
    withheld_ : ndarray of shape (n_items,) of bool
        Items on which the label of the model had no support, and the plurality is named instead.
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of the columns of `posterior_`.
    item_ids_ : ndarray of shape (n_items,)
        The items, in the order of the rows of `posterior_`.
    worker_ids_ : ndarray of shape (n_workers,)
        The workers.
    posterior_ : ndarray of shape (n_items, n_classes)
        p(truth | labels) of each item; rows sum to 1.
    labels_ : ndarray of shape (n_items,)
        Inferred class of each item, in the caller's own values; None for an item without labels.
    worker_accuracy_ : ndarray of shape (n_workers,)
        Expected share of right labels under `posterior_`, with one pseudo-count of accuracy 0.7.
    tied_ : ndarray of shape (n_items,) of bool
        Items on which several classes have the largest probability.
    unlabelled_ : ndarray of shape (n_items,) of bool
        Items without a label and without gold.
    n_iter_ : int
        Number of passes over the data.
    converged_ : bool
        Whether the method converged within `max_iter`.
    history_ : list of float
        Objective after each iteration; empty for methods without one.
    notes_ : dict of str to str
        Limitations of the result, by code, such as "no_redundancy"; each was also issued as a CrowdWarning.
    annotations_ : Annotations
        The annotations that were passed to `fit`.

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
    crowd_power_: float
    confusion_: Array
    _unseen_worker: Array  # (n_classes, n_classes) expected confusion matrix of a worker without labels
    _model_posterior: Array  # before overruling and the power of the crowds

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
        group = find_colluding_groups(annotations) if self.detect_collusion else None
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
        em = fit.table
        return Inference(posterior, counts, em.n_iter, em.converged, em.history, results, notes)

    def _rule(self, fit: PooledFit, departure: Departure, vote_is_wrong: bool) -> str:
        """`overrule`, but "always" where the result is the vote already, or where gold shows that the vote is wrong."""
        is_vote = fit.no_redundancy or departure.is_doubtful
        return "always" if is_vote or vote_is_wrong else self.overrule

    def _posterior(self, annotations: Annotations, gold: Gold) -> Array:
        """An E step after collapsing the colluding group of `fit`; overruling and power as in `fit`."""
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
        return super()._posterior(collapse_groups(annotations, np.append(self.collusion_group_, False)), gold)
