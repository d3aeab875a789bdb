"""MACE: every worker either says the truth or guesses from a habit; found by EM.

    p(label = l | truth = k, worker = w) = trust[w] [l = k] + (1 - trust[w]) guess[w, l]
    p(k | labels of i)  ~  prior[k] prod_w p(label_iw | k, w)

Reference: D. Hovy, T. Berg-Kirkpatrick, A. Vaswani and E. Hovy (2013), Learning whom to trust with MACE, NAACL.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.aggregation.base import EM_CONSTRAINTS, Aggregator, Gold, Inference, fit_by_em
from manyhands.annotations import Annotations
from manyhands.em.kernels import Array
from manyhands.em.priors import class_prior
from manyhands.noise.spammer import SpammerNoise
from manyhands.randomness import Seed
from manyhands.validation import Constraint, Number


class MACE(Aggregator):
    """Each worker is honest with one probability, and otherwise guesses, with a taste for some classes.

    Made for crowds with spammers: one who always says the same, or anything, gets a trust near 0 and is not heard.
    Needs about n_classes labels per worker. Honest workers who confuse two classes are outside the model.

    Parameters
    ----------
    smoothing : labels that the belief about an unknown worker is worth
    prior_trust : the share of these that are honest; the others are guesses, alike for all classes
    prior : "uniform" class frequencies as in the paper, "estimated", or a frequency for each class
    max_iter, tol, n_init, random_state : as in `DawidSkene`

    Attributes
    ----------
    trust_ : (n_workers,) the probability that a label of this worker is honest
    guess_ : (n_workers, n_classes) what the worker says otherwise; rows sum to 1
    confusion_, class_prior_, restarts_ : as in `DawidSkene`

    Examples
    --------
    >>> from manyhands import Annotations, MACE
    >>> votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, 1], [0, 0, 1]])
    >>> model = MACE().fit(votes)
    >>> model.labels_.tolist()
    [0, 1, 0, 1, 0]
    >>> bool(model.trust_[2] < model.trust_[0])
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

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        noise = SpammerNoise(annotations.n_classes, self.smoothing, self.prior_competence)
        prior = class_prior(self.prior, annotations.n_classes, smoothing=0.01)
        fit = fit_by_em(self, annotations, gold, noise, prior)
        competence, spam = fit.params.noise[0], _spam_distribution(fit.params.noise[1:].T)
        return Inference.from_table(
            fit, confusion=elementary.exp(fit.log_table), competence_=competence, spam_distribution_=spam
        )


def _spam_distribution(spam: Array) -> Array:
    """What a worker says when they guess; anything alike for one who never does."""
    total = spam.sum(axis=1, keepdims=True)
    return np.divide(spam, total, out=np.full(spam.shape, 1 / spam.shape[1]), where=total > 0)
