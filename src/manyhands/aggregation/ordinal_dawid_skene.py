"""Ordinal Dawid-Skene: ordered classes, and workers with a bias and a spread; estimated by EM.

    p(label = l | truth = t, worker = w)  =  (1 - spam_share[w]) ordinal[w, t, l] + spam_share[w] spam[w, l]
    log ordinal[w, t, l]  =  base[t, l] + tilt[w] . (x_t x_l, x_l, -x_l^2 / 2, [l = t] / 4) + const
    p(t | labels of i)  ~  (prior[t] prod_w p(label_iw | t, w)) ^ exponent

x are the positions of the grades from -1 to 1. Dawid-Skene with an ordinal model of the confusion matrices (see
`noise.ordinal`) and with spam as in MACE. The exponent is chosen by the held-out log-likelihood (`tempering`).

References
----------
A. P. Dawid and A. M. Skene (1979), Maximum likelihood estimation of observer error-rates using the EM algorithm,
Applied Statistics 28.
A. Agresti (1988), A model for agreement between ratings on an ordinal scale, Biometrics 44.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.aggregation.base import Aggregator, Gold, Inference
from manyhands.aggregation.ordinal_fit import OrdinalFit, fit_ordinal
from manyhands.aggregation.safeguards import RULES, TEMPER, chosen_power, release
from manyhands.aggregation.tempering import Tempering, choose_exponent
from manyhands.annotations import Annotations
from manyhands.class_order import grade_values, order_codes
from manyhands.em.e_step import posterior_given
from manyhands.em.grades import bias_and_spread, expected_grades, median_grades
from manyhands.em.kernels import Array
from manyhands.em.starts import gold_contradicts_vote
from manyhands.em.table_sizes import check_tables
from manyhands.noise.ordinal import OrdinalParams, mixed
from manyhands.validation import Constraint, NoneOr, Number, OneOf, ValueList


class OrdinalDawidSkene(Aggregator):
    """Dawid-Skene for ordered classes: every worker has a bias and a spread on the scale.

        p(label = l | truth = t, worker = w)  =  (1 - spam_share[w]) ordinal[w, t, l] + spam_share[w] spam[w, l]
        log ordinal[w, t, l]  =  base[t, l] + tilt[w] . (x_t x_l, x_l, -x_l^2 / 2, [l = t] / 4) + const
        p(t | labels of i)  ~  (prior[t] prod_w p(label_iw | t, w)) ^ exponent

    x are the positions of the grades from -1 to 1, and `base` is the confusion matrix of the crowd. A worker has four
    tilts: how strongly their labels follow the truth, their bias toward high grades, how much they avoid the ends of
    the scale, and how often they are exactly right. They are shrunk to 0, the crowd. A part of a worker's labels may
    not depend on the truth at all (spam). Estimated by EM; the posterior is tempered by held-out labels, because
    workers err on the same items.

    Use it for ratings, stars, grades of relevance or severity and answers from "strongly disagree" to "strongly agree",
    where an error of one grade is better than an error of three; `median_` has the smallest expected absolute error.
    For classes without an order use `PooledDawidSkene`.

    Parameters
    ----------
    order : sequence or None, default=None
        The classes from low to high. None takes the order of their numbers ("2" before "10", "grade 2" before
        "grade 10"), or of a known scale of words ("disagree" before "agree"); other classes need an order, unless there
        are two.
    prior_sd : float, default=2.0
        Standard deviation of the prior of the tilts; small values keep workers close to the crowd.
    smoothing : float, default=100.0
        Pseudo-labels of each grade, near the true grade, for the confusion matrix of the crowd.
    overrule : {"never", "supported", "always"}, default="always"
        When a label other than the plurality of an item's labels may be named, as in `PooledDawidSkene`. The default
        lets biases be corrected; "supported" is safer where all workers may share an error.
    temper : {"crowds", "none"} or float, default="crowds"
        Power to which the posterior is raised, as in `PooledDawidSkene`.
    calibrate : bool, default=True
        Temper the posterior by held-out labels.
    n_folds : int, default=5
        Number of folds into which the labels are split for that.
    max_iter : int, default=1000
        Maximum number of EM iterations (passes over the data).
    tol : float, default=1e-5
        Stop when the estimated distance to the optimum is below `tol` times the objective.

    Attributes
    ----------
    expected_ : ndarray of shape (n_items,)
        Expected value of the grade under the posterior: of the numbers that the classes are, otherwise of their ranks
        from 1. NaN for an item without labels.
    median_ : ndarray of shape (n_items,)
        Median class under the posterior, in the caller's own values; None for an item without labels.
    order_ : ndarray of shape (n_classes,)
        The classes from low to high.
    grade_values_ : ndarray of shape (n_classes,)
        The number of each class of `order_`.
    bias_ : ndarray of shape (n_workers,)
        Expected label minus truth of each worker, in steps of the scale; above 0 they grade too high.
    spread_ : ndarray of shape (n_workers,)
        Standard deviation of label minus truth of each worker, in steps of the scale.
    spam_share_ : ndarray of shape (n_workers,)
        Share of each worker's labels that do not depend on the truth; a tenth a priori.
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices p(label | truth), indexed [worker, truth, label]; rows (over the label) sum to 1.
    class_prior_ : ndarray of shape (n_classes,)
        Class frequencies.
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
        Inferred class of each item (the mode), in the caller's own values; None for an item without labels.
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
    A. Agresti (1988), A model for agreement between ratings on an ordinal scale, Biometrics 44.
    D. Hovy, T. Berg-Kirkpatrick, A. Vaswani and E. Hovy (2013), Learning whom to trust with MACE, NAACL.
    D. Zhou, Q. Liu, J. Platt and C. Meek (2014), Aggregating ordinal labels from crowds by minimax conditional entropy,
    ICML.

    Examples
    --------
    >>> from manyhands import Annotations, OrdinalDawidSkene
    >>> votes = Annotations.from_matrix([[1, 1, 2], [2, 2, 3], [3, 3, 3], [1, 1, 1], [2, 2, 3], [3, 3, 3]])
    >>> model = OrdinalDawidSkene().fit(votes)
    >>> model.labels_.tolist(), model.median_.tolist()
    ([1, 2, 3, 1, 2, 3], [1, 2, 3, 1, 2, 3])
    >>> bool(model.bias_[2] > model.bias_[0])  # the third worker grades too high
    True
    """

    _of_items: ClassVar[tuple[str, ...]] = (
        *Aggregator._of_items,
        "expected_",
        "median_",
        "withheld_",
        "_model_posterior",
    )
    _constraints: ClassVar[dict[str, Constraint]] = {
        "order": NoneOr(ValueList()),
        "prior_sd": Number(above=0),
        "smoothing": Number(above=0),
        "overrule": OneOf(RULES),
        "temper": TEMPER,
        "calibrate": OneOf((True, False)),
        "n_folds": Number(whole=True, least=2),
        "max_iter": Number(whole=True, least=1),
        "tol": Number(least=0),
    }

    _model_posterior: Array  # before overruling and the power of the crowds
    confusion_: Array
    tempering_exponent_: float
    expected_: Array
    median_: npt.NDArray[Any]
    bias_: Array
    spread_: Array
    spam_share_: Array
    class_prior_: Array

    def __init__(
        self,
        order: Sequence[Any] | None = None,
        prior_sd: float = 2.0,
        smoothing: float = 100.0,
        overrule: str = "always",
        temper: str | float = "crowds",
        calibrate: bool = True,
        n_folds: int = 5,
        max_iter: int = 1000,
        tol: float = 1e-5,
    ) -> None:
        self.order = order
        self.prior_sd = prior_sd
        self.smoothing = smoothing
        self.overrule = overrule
        self.temper = temper
        self.calibrate = calibrate
        self.n_folds = n_folds
        self.max_iter = max_iter
        self.tol = tol

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        check_tables(annotations)
        order = self._order(annotations)
        rank = np.argsort(order).astype(float)
        fitter = partial(fit_ordinal, rank=rank, prior_sd=self.prior_sd, smoothing=self.smoothing)
        fit = fitter(annotations, gold, self.max_iter, self.tol)
        tempering = Tempering(1.0)
        if self.calibrate and not fit.em.no_redundancy:
            tempering = choose_exponent(annotations, gold, fitter, self.n_folds)
        results = _tempered(fit, 1.0 if tempering.exponent is None else tempering.exponent)
        table, log_prior = results["_log_confusion"], results["_log_prior"]
        posterior, final = posterior_given(annotations, table[:-1], log_prior, gold)
        unlabelled = _without_evidence(annotations, gold)
        posterior[unlabelled] = results["class_prior_"]
        is_vote = fit.em.no_redundancy or gold_contradicts_vote(annotations, gold)
        results["_used_rule"] = "always" if is_vote else self.overrule
        results["crowd_power_"] = 1.0 if fit.em.no_redundancy else chosen_power(self.temper, tempering)
        results["_model_posterior"] = posterior
        posterior, results["withheld_"] = _released(annotations, posterior, gold, results)
        results |= _grades(annotations.classes, posterior, order, unlabelled)
        results["bias_"], results["spread_"] = bias_and_spread(fit.confusion, results["class_prior_"], rank)
        em = fit.em
        return Inference(posterior, final.counts, em.n_iter, em.converged, em.history, results)

    def _posterior(self, annotations: Annotations, gold: Gold) -> Array:
        """An E step; an item without labels has the class prior, which is not tempered."""
        posterior = super()._posterior(annotations, gold)
        posterior[_without_evidence(annotations, gold)] = self.class_prior_
        unseen = elementary.exp(self._log_confusion[-1:] / self.tempering_exponent_)
        confusion = {"confusion_": np.concatenate([self.confusion_, unseen])}
        return _released(annotations, posterior, gold, vars(self) | confusion)[0]

    def _scoring_posterior(self) -> Array:
        """The posterior of the model itself: the power of the crowds is no part of the likelihood of labels."""
        return self._model_posterior

    def _order(self, annotations: Annotations) -> npt.NDArray[np.int64]:
        """Codes of the classes from low to high; two classes need no order, because it does not change the result."""
        classes = annotations.classes.tolist()
        if self.order is None and (annotations.is_ordered or len(classes) <= 2):
            return np.arange(len(classes))
        return order_codes(classes, self.order)


def _released(
    annotations: Annotations, posterior: Array, gold: Gold, results: dict[str, Any]
) -> tuple[Array, npt.NDArray[np.bool_]]:
    """`release` without a colluding group, which the model does not search for."""
    no_group = {"collusion_group_": np.zeros(annotations.n_workers, bool), "_is_sybil_group": False}
    return release(annotations, posterior, gold, results | no_group)


def _without_evidence(annotations: Annotations, gold: Gold) -> npt.NDArray[np.bool_]:
    """Whether each item has neither a label nor gold, shape (n_items,)."""
    unlabelled = annotations.n_labels == 0
    return unlabelled if gold is None else unlabelled & (gold < 0)


def _tempered(fit: OrdinalFit, exponent: float) -> dict[str, Any]:
    """Confusion matrices and class prior, and their logarithms multiplied by the exponent, with an unseen worker."""
    em = fit.em
    workers = em.params.noise
    unseen = em.used_log_confusion[:1] if em.no_redundancy else _unseen_worker(workers)
    return {
        "confusion_": fit.confusion,
        "spam_share_": workers.spam_share,
        "class_prior_": elementary.exp(fit.log_prior),
        "tempering_exponent_": exponent,
        "_log_confusion": exponent * np.concatenate([em.used_log_confusion, unseen]),
        "_log_prior": exponent * fit.log_prior,
    }


def _unseen_worker(workers: OrdinalParams) -> Array:
    """Log confusion matrix of a worker without tilt, with the mean share and distribution of spam."""
    share = workers.spam_share.mean(keepdims=True)
    spam = (workers.spam_share[:, None] * workers.spam).sum(axis=0, keepdims=True)
    return mixed(workers.base[None], share, spam / spam.sum())


def _grades(
    classes: npt.NDArray[Any], posterior: Array, order: npt.NDArray[np.int64], unlabelled: npt.NDArray[np.bool_]
) -> dict[str, Any]:
    """Expected value and median of each item, and the scale."""
    ordered = classes[order]
    values = grade_values(ordered.tolist())
    expected = expected_grades(posterior[:, order], values)
    expected[unlabelled] = np.nan
    median = classes[median_grades(posterior, order)]
    if unlabelled.any():
        median = median.astype(object)
        median[unlabelled] = None
    return {"expected_": expected, "median_": median, "order_": ordered, "grade_values_": values}
