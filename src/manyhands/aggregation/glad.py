"""GLAD: an ability for every worker and a difficulty for every item, estimated by EM.

    p(label_iw = truth_i) = sigmoid(ability[w] exp(ease[i])),   errors are spread evenly over the other classes
    ability ~ N(1, 1),   ease ~ N(1, 1),   difficulty[i] = exp(-ease[i])

References
----------
J. Whitehill, P. Ruvolo, T. Wu, J. Bergsma and J. Movellan (2009), Whose vote should count more: optimal integration of
labels from labelers of unknown expertise, NeurIPS.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.aggregation.base import Aggregator, Gold, Inference
from manyhands.aggregation.glad_steps import PRIOR_MEAN, GLADParams, GLADSteps
from manyhands.annotations import Annotations
from manyhands.em.driver import run_em
from manyhands.em.kernels import Array
from manyhands.em.priors import FixedPrior, class_prior
from manyhands.noise.label_scores import right_or_wrong
from manyhands.validation import Constraint, Number, Probabilities


class GLAD(Aggregator):
    """GLAD: ability of workers times ease of items; a wrong label on a hard item lowers an ability less.

        p(label_iw = truth_i) = sigmoid(ability[w] exp(ease[i])),   ability ~ N(1, 1),   ease ~ N(1, 1)

    Wrong labels are spread evenly over the other classes. EM maximises the penalised likelihood of abilities and eases.

    Use it where items differ in difficulty and workers have few labels each. Not where workers prefer particular
    classes: like `OneCoin` it has no bias of workers, and such workers mislead it; use `MACE` or `PooledDawidSkene`
    there.

    Parameters
    ----------
    prior : {"estimated", "uniform"} or array-like of shape (n_classes,), default="uniform"
        Class prior: frequencies estimated from the data, a uniform class prior, or a given frequency for each class.
    max_iter : int, default=1000
        Maximum number of EM iterations (passes over the data).
    tol : float, default=1e-6
        Stop when the estimated distance to the optimum is below `tol` times the objective.

    Attributes
    ----------
    ability_ : ndarray of shape (n_workers,)
        Abilities: 1 is the prior mean, 0 is chance, negative is wrong more often than right.
    difficulty_ : ndarray of shape (n_items,)
        Difficulties exp(-ease), positive; exp(-1) is the prior mean, and the value of items without labels.
    item_accuracy_ : ndarray of shape (n_items,)
        Expected share of right labels of each item; that of an average worker if it has none.
    class_prior_ : ndarray of shape (n_classes,)
        Class frequencies.
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
    J. Whitehill, P. Ruvolo, T. Wu, J. Bergsma and J. Movellan (2009), Whose vote should count more: optimal integration
    of labels from labelers of unknown expertise, NeurIPS.

    Examples
    --------
    >>> from manyhands import GLAD, Annotations
    >>> votes = Annotations.from_matrix([[0, 0, 0, 1], [1, 1, 1, 1], [0, 0, 0, 1], [1, 1, 0, 0]])
    >>> model = GLAD().fit(votes)
    >>> model.labels_.tolist()
    [0, 1, 0, 1]
    >>> bool(model.ability_[3] < model.ability_[0]), bool(model.difficulty_[3] > model.difficulty_[1])
    (True, True)
    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        "prior": Probabilities(("estimated", "uniform")),
        "max_iter": Number(whole=True, least=1),
        "tol": Number(least=0),
    }

    _of_items: ClassVar[tuple[str, ...]] = (*Aggregator._of_items, "difficulty_", "item_accuracy_", "_ease")

    ability_: Array
    difficulty_: Array
    item_accuracy_: Array
    _ability: Array  # (n_workers + 1,) the last worker is an unseen one
    _ease: Array  # (n_items,)

    def __init__(self, prior: str | npt.ArrayLike = "uniform", max_iter: int = 1000, tol: float = 1e-6) -> None:
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        prior = class_prior(self.prior, annotations.n_classes, smoothing=0.01)
        steps = GLADSteps.of(annotations, prior, gold)
        found = run_em(steps, steps.start(), max_iter=self.max_iter, tol=self.tol, what="GLAD")
        params = found.params
        active = np.bincount(annotations.worker, minlength=annotations.n_workers) > 0
        results = {
            "ability_": params.ability,
            "difficulty_": elementary.exp(-params.ease),
            "item_accuracy_": steps.item_accuracy(params),
            "class_prior_": elementary.exp(params.log_prior),
            "_ability": np.append(params.ability, params.ability[active].mean()),
            "_ease": params.ease,
            "_log_prior": params.log_prior,
        }
        posterior, _ = steps.e_step(steps.logit(params), params.log_prior)
        return Inference(posterior.T.copy(), None, found.n_iter, found.converged, found.history, results)

    def _posterior(self, annotations: Annotations, gold: Gold) -> Array:
        """An E step; items of `fit` keep their difficulty, others have the prior mean."""
        params = GLADParams(self._ability, self._ease_of(annotations), self._log_prior)
        steps = GLADSteps.of(annotations, FixedPrior(self._log_prior), gold)
        return steps.e_step(steps.logit(params), self._log_prior)[0].T.copy()

    def _label_given_truth(self, annotations: Annotations) -> Array:
        """Log p(label | truth, ability, ease); the ease is that of the training labels, or the prior mean."""
        logit = self._ability[annotations.worker] * elementary.exp(self._ease_of(annotations))[annotations.item]
        return right_or_wrong(annotations, np.repeat(logit[:, None], annotations.n_classes, axis=1))

    def _ease_of(self, annotations: Annotations) -> Array:
        """Ease of these items as estimated by `fit`; the prior mean of others."""
        row_of = {item: i for i, item in enumerate(self.item_ids_.tolist())}
        row = np.array([row_of.get(item, -1) for item in annotations.item_ids.tolist()])
        return np.where(row >= 0, self._ease[row], PRIOR_MEAN)
