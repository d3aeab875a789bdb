"""One-coin Dawid-Skene: one accuracy for every worker, found by EM.

p(l | k, w) = accuracy[w] if l = k else (1 - accuracy[w]) / (n_classes - 1)
"""

from __future__ import annotations

from typing import ClassVar

import numpy.typing as npt

from manyhands import elementary
from manyhands.aggregation.base import EM_CONSTRAINTS, PRIOR_ACCURACY, Aggregator, Gold, Inference, fit_by_em
from manyhands.annotations import Annotations
from manyhands.em.priors import class_prior
from manyhands.noise.one_coin import OneCoinNoise
from manyhands.randomness import Seed
from manyhands.validation import Constraint, Number


class OneCoin(Aggregator):
    """Each worker is right with one probability, whatever the truth; errors fall on the other classes alike.

    Needs few labels per worker, but workers who prefer one class mislead it: a crowd with many of those can turn
    its answer around altogether.

    Parameters
    ----------
    smoothing : labels that the belief about an unknown worker is worth
    prior_accuracy : that belief
    prior, max_iter, tol, n_init, random_state : as in `DawidSkene`

    Attributes
    ----------
    accuracy_ : (n_workers,) the model's own estimate
    confusion_, class_prior_, restarts_ : as in `DawidSkene`

    Examples
    --------
    >>> from manyhands import Annotations, OneCoin
    >>> votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0]])
    >>> OneCoin().fit_predict(votes).tolist()
    [0, 1, 0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = EM_CONSTRAINTS | {
        "smoothing": Number(least=0),
        "prior_accuracy": Number(above=0, most=1),
    }

    def __init__(
        self,
        smoothing: float = 1.0,
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
        noise = OneCoinNoise(annotations.n_classes, self.smoothing, self.prior_accuracy)
        prior = class_prior(self.prior, annotations.n_classes, smoothing=0.01)
        fit = fit_by_em(self, annotations, gold, noise, prior)
        return Inference.from_table(fit, confusion=elementary.exp(fit.log_table), accuracy_=fit.params.noise)
