"""IBCC: the Dawid-Skene model with a Dirichlet posterior of every confusion matrix, by variational Bayes.

    confusion[w, k, :]  ~  Dirichlet(prior, larger on the diagonal),   class frequencies ~ Dirichlet
    p(k | labels of i)  ~  exp(E log frequency[k] + sum_w E log confusion[w, k, label_iw])

References
----------
H.-C. Kim and Z. Ghahramani (2012), Bayesian classifier combination, AISTATS.
E. Simpson, S. Roberts, I. Psorakis and A. Smith (2013), Dynamic Bayesian combination of multiple imperfect classifiers.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array
from manyhands._core.randomness import Seed
from manyhands.aggregation.base import EM_CONSTRAINTS, EMAggregator, Inference
from manyhands.annotations import Annotations
from manyhands.em.e_step import Gold
from manyhands.em.noise import VariationalConfusion, VariationalPrior
from manyhands.em.priors import PRIOR_ACCURACY, ClassPrior, class_prior
from manyhands.validation import Constraint, Number


class IBCC(EMAggregator):
    """Independent Bayesian classifier combination: confusion matrices with Dirichlet posteriors, by variational Bayes.

    Rows of the confusion matrices and the class frequencies have Dirichlet priors. The posterior of the items uses
    expected logarithms under the posteriors of the parameters,

        p(k | labels of i)  ~  exp(E log frequency[k] + sum_w E log confusion[w, k, label_iw])

    `history_` is the lower bound on the log evidence (ELBO) after each iteration.

    Use it in the place of `DawidSkene` where workers have few labels: it is less confident there, and nearly the same
    where they have many. Unlike `PooledDawidSkene` it does not learn from the crowd what workers are like.

    Parameters
    ----------
    smoothing : float, default=2.0
        Pseudo-count of the prior in each row of a confusion matrix.
    prior_accuracy : float, default=0.7
        Share of these pseudo-counts on the diagonal.
    prior : {"estimated", "uniform"} or array-like of shape (n_classes,), default="estimated"
        Class prior: frequencies with a Dirichlet prior of one item per class, a uniform class prior, or a given
        frequency for each class.
    max_iter : int, default=1000
        Maximum number of EM iterations (passes over the data).
    tol : float, default=1e-6
        Stop when the estimated distance to the optimum is below `tol` times the objective.
    n_init : int, default=1
        Number of starts; the first is from the vote shares, the others are random. The best one is kept.
    random_state : int, numpy.random.Generator, numpy.random.SeedSequence or None, default=None
        Seed of the random starts.

    Attributes
    ----------
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        Posterior mean of the confusion matrices, indexed [worker, truth, label]; rows sum to 1.
    concentration_ : ndarray of shape (n_workers, n_classes, n_classes)
        Dirichlet parameters of the posterior of each row.
    class_prior_ : ndarray of shape (n_classes,)
        Posterior mean of the class frequencies.
    restarts_ : list of float
        Final lower bound of each start; one more than `n_init` where a start from gold was tried.

    References
    ----------
    H.-C. Kim and Z. Ghahramani (2012), Bayesian classifier combination, AISTATS.
    E. Simpson, S. Roberts, I. Psorakis and A. Smith (2013), Dynamic Bayesian combination of multiple imperfect
    classifiers.

    Examples
    --------
    >>> from manyhands import IBCC, Annotations
    >>> votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0]])
    >>> IBCC().fit_predict(votes).tolist()
    [0, 1, 0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = EM_CONSTRAINTS | {
        "smoothing": Number(above=0),
        "prior_accuracy": Number(above=0, most=0.999),
    }

    confusion_: Array
    concentration_: Array
    class_prior_: Array
    restarts_: list[float]

    def __init__(
        self,
        smoothing: float = 2.0,
        prior_accuracy: float = PRIOR_ACCURACY,
        prior: str | npt.ArrayLike = "estimated",
        max_iter: int = 1000,
        tol: float = 1e-6,
        n_init: int = 1,
        random_state: Seed = None,
    ) -> None:
        self.smoothing = smoothing
        self.prior_accuracy = prior_accuracy
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        prior = _variational_class_prior(self.prior, annotations)
        noise = VariationalConfusion(annotations.n_classes, self.smoothing, self.prior_accuracy)
        fit = self._fit_by_em(annotations, gold, noise, prior)
        concentration = fit.params.noise
        confusion = concentration / concentration.sum(axis=2, keepdims=True)
        inference = Inference.from_confusion_em(fit, confusion=confusion, concentration_=concentration)
        if isinstance(prior, VariationalPrior):
            share = prior.concentration(fit.params.log_prior)
            inference.results["class_prior_"] = share / share.sum()
        return inference


def _variational_class_prior(prior: str | npt.ArrayLike, annotations: Annotations) -> ClassPrior:
    """Class prior with a Dirichlet posterior where frequencies are estimated, else a fixed one."""
    if isinstance(prior, str) and prior == "estimated":
        return VariationalPrior(int(np.count_nonzero(annotations.n_labels)), smoothing=1.0)
    return class_prior(prior, annotations.n_classes, smoothing=0.0)
