"""IBCC: Dawid-Skene's model with a belief about every confusion matrix in place of a best one; variational Bayes.

    confusion[w, k, :]  ~  Dirichlet(prior, heavy on the diagonal),   class frequencies ~ Dirichlet
    p(k | labels of i)  ~  exp(E log frequency[k] + sum_w E log confusion[w, k, label_iw])

References: H.-C. Kim and Z. Ghahramani (2012), Bayesian classifier combination, AISTATS; E. Simpson, S. Roberts,
I. Psorakis and A. Smith (2013), Dynamic Bayesian combination of multiple imperfect classifiers.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from manyhands.aggregation.base import EM_CONSTRAINTS, PRIOR_ACCURACY, Aggregator, Gold, Inference, fit_by_em
from manyhands.annotations import Annotations
from manyhands.em.priors import ClassPrior, class_prior
from manyhands.noise.variational import VariationalConfusion, VariationalPrior
from manyhands.randomness import Seed
from manyhands.validation import Constraint, Number


class IBCC(Aggregator):
    """One confusion matrix per worker, of which a whole belief is kept: few labels make few claims.

    Milder than `DawidSkene` where workers have few labels, the same where they have many. `history_` is the lower
    bound on the log evidence (ELBO) after each pass.

    Parameters
    ----------
    smoothing : labels that the belief before any label is worth, in each row of a confusion matrix
    prior_accuracy : the share of these on the diagonal
    prior : "estimated" class frequencies (a belief of one item per class), "uniform", or one for each class
    max_iter, tol, n_init, random_state : as in `DawidSkene`

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes), the mean of the belief; rows sum to 1
    concentration_ : (n_workers, n_classes, n_classes), the belief: Dirichlet rows
    class_prior_ : (n_classes,), the mean of the belief
    restarts_ : the bound at which each start ended

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
        fit = fit_by_em(self, annotations, gold, noise, prior)
        concentration = fit.params.noise
        confusion = concentration / concentration.sum(axis=2, keepdims=True)
        found = Inference.from_table(fit, confusion=confusion, concentration_=concentration)
        if isinstance(prior, VariationalPrior):
            share = prior.concentration(fit.params.log_prior)
            found.results["class_prior_"] = share / share.sum()
        return found


def _variational_class_prior(prior: str | npt.ArrayLike, annotations: Annotations) -> ClassPrior:
    if isinstance(prior, str) and prior == "estimated":
        return VariationalPrior(int(np.count_nonzero(annotations.n_labels)), smoothing=1.0)
    return class_prior(prior, annotations.n_classes, smoothing=0.0)
