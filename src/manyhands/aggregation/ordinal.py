"""Ordinal Dawid-Skene: ordered classes, and workers with a bias and a spread; estimated by EM.

    p(label = l | truth = t, worker = w)  =  (1 - spam_share[w]) ordinal[w, t, l] + spam_share[w] spam[w, l]
    log ordinal[w, t, l]  =  base[t, l] + tilt[w] . (x_t x_l, x_l, -x_l^2 / 2, [l = t] / 4) + const
    p(t | labels of i)  ~  (prior[t] prod_w p(label_iw | t, w)) ^ exponent

x are the positions of the grades from -1 to 1. Dawid-Skene with an ordinal model of the confusion matrices (see
`em.ordinal_noise`) and with spam as in MACE. The exponent is chosen by the held-out log-likelihood (`tempering`).

References
----------
A. P. Dawid and A. M. Skene (1979), Maximum likelihood estimation of observer error-rates using the EM algorithm,
Applied Statistics 28.
A. Agresti (1988), A model for agreement between ratings on an ordinal scale, Biometrics 44.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from manyhands._core import elementary
from manyhands._core.arrays import Array
from manyhands.aggregation.base import Aggregator, Inference, infer_without_copies, without_label
from manyhands.aggregation.tempering import RULES, TEMPER, Tempering, choose_exponent, chosen_power, release
from manyhands.annotations import Annotations
from manyhands.classes import grade_values, order_codes
from manyhands.em.collusion import without_copies
from manyhands.em.confusion_em import ConfusionEMFit, fit_confusion_em
from manyhands.em.copies import find_copies, no_copies
from manyhands.em.decisions import bias_and_spread, expected_grades, median_grades
from manyhands.em.e_step import Gold, gold_contradicts_vote, posterior_given
from manyhands.em.kernels import check_tables
from manyhands.em.ordinal_noise import OrdinalNoise, OrdinalParams, mixed
from manyhands.em.priors import EstimatedPrior
from manyhands.validation import Constraint, NoneOr, Number, OneOf, ValueList

# ----------------------------------------------------------------------------------------------------
# The fit of Ordinal Dawid-Skene: EM with the ordinal noise model.

PRIOR_ITEMS = 1.0  # pseudo-count of every class


@dataclass(frozen=True)
class OrdinalFit:
    """A fitted crowd."""

    em: ConfusionEMFit[OrdinalParams]

    @property
    def confusion(self) -> Array:
        """Confusion matrices, shape (n_workers, n_classes, n_classes)."""
        confusion: Array = elementary.exp(self.em.log_confusion)
        return confusion

    @property
    def log_prior(self) -> Array:
        """Log class prior, shape (n_classes,)."""
        return self.em.params.log_prior


def fit_ordinal(
    annotations: Annotations,
    gold: Gold,
    max_iter: int,
    tol: float,
    *,
    rank: Array,
    prior_sd: float,
    smoothing: float,
) -> OrdinalFit:
    """EM with the ordinal noise model.

    Shapes: gold (n_items,); rank (n_classes,).
    """
    n_labels = np.bincount(annotations.label, minlength=annotations.n_classes) + 1.0
    noise = OrdinalNoise(rank, n_labels / n_labels.sum(), prior_sd, smoothing)
    prior = EstimatedPrior(PRIOR_ITEMS)
    return OrdinalFit(fit_confusion_em(annotations, noise, prior, gold=gold, max_iter=max_iter, tol=tol))


# ----------------------------------------------------------------------------------------------------
# The estimator.


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
    detect_collusion : bool, default=True
        Search for pairs and groups of workers who copy one another, of whom one counts on each item.

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
    copy_groups_ : ndarray of shape (n_workers,)
        Number of the group of each worker whose labels are copied from another, or copied by another; -1 for workers in
        none. On each item, one label of a group counts.
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
    labels_ : ndarray of shape (n_items,)
        Inferred class of each item (the mode), in the caller's own values; None for an item without labels.

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
        "detect_collusion": OneOf((True, False)),
    }

    _model_posterior: Array  # before overruling and the power of the crowds
    copy_groups_: npt.NDArray[np.int64]
    _copy_rank: npt.NDArray[np.int64]  # of the members of a group, the one with the lowest rank counts
    confusion_: Array
    tempering_exponent_: float
    expected_: Array
    median_: npt.NDArray[Any]
    bias_: Array
    spread_: Array
    spam_share_: Array
    class_prior_: Array
    order_: npt.NDArray[Any]
    grade_values_: Array
    crowd_power_: float
    withheld_: npt.NDArray[np.bool_]

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
        detect_collusion: bool = True,
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
        self.detect_collusion = detect_collusion

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        check_tables(annotations)
        copies = find_copies(annotations) if self.detect_collusion else no_copies(annotations.n_workers)
        of_workers = ("confusion_", "spam_share_", "bias_", "spread_", "_log_confusion")
        return infer_without_copies(self._infer_counted, annotations, gold, copies, of_workers)

    def _infer_counted(self, annotations: Annotations, gold: Gold) -> Inference:
        """Fit the labels that count."""
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
        unlabelled = without_label(annotations, gold)
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
        annotations = without_copies(annotations, self.copy_groups_, self._copy_rank)
        posterior = super()._posterior(annotations, gold)
        posterior[without_label(annotations, gold)] = self.class_prior_
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
