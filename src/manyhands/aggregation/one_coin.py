"""One-coin Dawid-Skene: one accuracy for every worker, estimated by EM.

p(l | k, w) = accuracy[w] if l = k else (1 - accuracy[w]) / (n_classes - 1)
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy.typing as npt

from manyhands._core.arrays import Array
from manyhands._core.randomness import Seed
from manyhands.aggregation.base import EM_CONSTRAINTS, EMAggregator
from manyhands.em.confusion_em import ConfusionEMFit
from manyhands.em.noise import NoiseModel, OneCoinNoise
from manyhands.em.priors import CLASS_SMOOTHING, PRIOR_ACCURACY, ClassPrior, class_prior
from manyhands.validation import Constraint, Number


class OneCoin(EMAggregator):
    """One-coin Dawid-Skene: each worker is right with one probability, whatever the truth.

        p(l | k, w) = accuracy[w] if l = k else (1 - accuracy[w]) / (n_classes - 1)

    Use it where workers have few labels and differ in accuracy alone. Workers who prefer one class mislead it: a crowd
    with many of those can invert its result. Use `MACE` or `PooledDawidSkene` there.

    Parameters
    ----------
    smoothing : float, default=1.0
        Pseudo-count of the prior: labels that it is worth for each worker.
    prior_accuracy : float, default=0.7
        Share of these pseudo-counts that are right.
    prior : {"estimated", "uniform"} or array-like of shape (n_classes,), default="estimated"
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
    accuracy_ : ndarray of shape (n_workers,)
        Estimated accuracy of each worker.

    References
    ----------
    A. P. Dawid and A. M. Skene (1979), Maximum likelihood estimation of observer error-rates using the EM algorithm,
    Applied Statistics 28.

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

    _takes_weights: ClassVar[bool] = True

    accuracy_: Array

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

    def _em_model(self, n_classes: int) -> tuple[NoiseModel[Any], ClassPrior]:
        noise = OneCoinNoise(n_classes, self.smoothing, self.prior_accuracy)
        return noise, class_prior(self.prior, n_classes, smoothing=CLASS_SMOOTHING)

    def _em_results(self, fit: ConfusionEMFit[Any]) -> dict[str, Any]:
        return {"accuracy_": fit.params.noise}
