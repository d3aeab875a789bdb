"""MACE: every worker either knows the truth or draws a label from a spam distribution; estimated by EM.

    p(label = l | truth = k, worker = w) = competence[w] [l = k] + (1 - competence[w]) spam_distribution[w, l]
    p(k | labels of i)  ~  prior[k] prod_w p(label_iw | k, w)

References
----------
D. Hovy, T. Berg-Kirkpatrick, A. Vaswani and E. Hovy (2013), Learning whom to trust with MACE, NAACL.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array
from manyhands._core.randomness import Seed
from manyhands.aggregation.base import EM_CONSTRAINTS, EMAggregator
from manyhands.em.confusion_em import ConfusionEMFit
from manyhands.em.noise import NoiseModel, SpammerNoise
from manyhands.em.priors import CLASS_SMOOTHING, ClassPrior, class_prior
from manyhands.validation import Constraint, Number


class MACE(EMAggregator):
    """MACE: competence of every worker, and the distribution of their labels where they spam.

        p(label = l | truth = k, worker = w) = competence[w] [l = k] + (1 - competence[w]) spam_distribution[w, l]

    Use it for crowds with spammers: a worker who always gives the same label, or random labels, gets a competence near
    0, and their labels are ignored. It needs about n_classes labels per worker. It does not model workers who confuse
    two particular classes; use `DawidSkene` or `PooledDawidSkene` for those.

    Parameters
    ----------
    smoothing : float, default=1.0
        Pseudo-count of the prior: labels that it is worth for each worker.
    prior_competence : float, default=0.5
        Share of these pseudo-counts in which the truth is known; the others are spread evenly over the classes.
    prior : {"estimated", "uniform"} or array-like of shape (n_classes,), default="uniform"
        Class prior: frequencies estimated from the data, a uniform class prior, or a given frequency for each class.
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
    competence_ : ndarray of shape (n_workers,)
        Probability that the worker knows the truth of an item.
    spam_distribution_ : ndarray of shape (n_workers, n_classes)
        Distribution of the worker's labels otherwise; rows sum to 1.

    References
    ----------
    D. Hovy, T. Berg-Kirkpatrick, A. Vaswani and E. Hovy (2013), Learning whom to trust with MACE, NAACL.

    Examples
    --------
    >>> from manyhands import Annotations, MACE
    >>> votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, 1], [0, 0, 1]])
    >>> model = MACE().fit(votes)
    >>> model.labels_.tolist()
    [0, 1, 0, 1, 0]
    >>> bool(model.competence_[2] < model.competence_[0])
    True
    """

    _constraints: ClassVar[dict[str, Constraint]] = EM_CONSTRAINTS | {
        "smoothing": Number(least=0),
        "prior_competence": Number(least=0, most=1),
    }

    competence_: Array
    spam_distribution_: Array

    def __init__(
        self,
        smoothing: float = 1.0,
        prior_competence: float = 0.5,
        prior: str | npt.ArrayLike = "uniform",
        max_iter: int = 1000,
        tol: float = 1e-6,
        n_init: int = 1,
        random_state: Seed = None,
    ) -> None:
        self.smoothing = smoothing
        self.prior_competence = prior_competence
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state

    def _em_model(self, n_classes: int) -> tuple[NoiseModel[Any], ClassPrior]:
        noise = SpammerNoise(n_classes, self.smoothing, self.prior_competence)
        return noise, class_prior(self.prior, n_classes, smoothing=CLASS_SMOOTHING)

    def _em_results(self, fit: ConfusionEMFit[Any]) -> dict[str, Any]:
        competence, spam = fit.params.noise[0], _spam_distribution(fit.params.noise[1:].T)
        return {"competence_": competence, "spam_distribution_": spam}


def _spam_distribution(spam: Array) -> Array:
    """Normalised spam distributions; uniform for a worker who never spams."""
    total = spam.sum(axis=1, keepdims=True)
    return np.divide(spam, total, out=np.full(spam.shape, 1 / spam.shape[1]), where=total > 0)
