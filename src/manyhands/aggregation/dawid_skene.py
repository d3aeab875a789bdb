"""Dawid-Skene: a confusion matrix for every worker, estimated by EM.

    p(label = l | truth = k, worker = w) = confusion[w, k, l]
    p(k | labels of i)  ~  prior[k] prod_w confusion[w, k, label_iw]

References
----------
A. P. Dawid and A. M. Skene (1979), Maximum likelihood estimation of observer error-rates using the EM algorithm,
Applied Statistics 28.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy.typing as npt

from manyhands._core.randomness import Seed
from manyhands.aggregation.base import EM_CONSTRAINTS, EMAggregator
from manyhands.em.noise import ConfusionNoise, NoiseModel
from manyhands.em.priors import ClassPrior, class_prior
from manyhands.validation import Constraint, Number


class DawidSkene(EMAggregator):
    """Dawid-Skene model: one confusion matrix per worker, by exact EM from the vote shares.

    Given the truth k, worker w gives label l with probability confusion[w, k, l], independently of other workers. EM
    alternates between the posterior of the items,

        p(k | labels of i)  ~  prior[k] prod_w confusion[w, k, label_iw]

    and confusion matrices from expected counts, each cell with `smoothing` as pseudo-count.

    Use it where every worker has many labels (some n_classes^2 or more) and workers confuse particular classes. With
    few labels per worker it is overconfident: use `PooledDawidSkene`, `OneCoin` or `MACE` there.

    Parameters
    ----------
    smoothing : float, default=0.01
        Pseudo-count added to every cell of every confusion matrix, and to every class of the class prior.
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

    References
    ----------
    A. P. Dawid and A. M. Skene (1979), Maximum likelihood estimation of observer error-rates using the EM algorithm,
    Applied Statistics 28.

    Examples
    --------
    >>> from manyhands import Annotations, DawidSkene
    >>> votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0]])
    >>> DawidSkene().fit_predict(votes).tolist()
    [0, 1, 0, 1]
    """

    _constraints: ClassVar[dict[str, Constraint]] = EM_CONSTRAINTS | {
        "smoothing": Number(least=0),
    }

    _takes_weights: ClassVar[bool] = True

    def __init__(
        self,
        smoothing: float = 0.01,
        prior: str | npt.ArrayLike = "estimated",
        max_iter: int = 1000,
        tol: float = 1e-6,
        n_init: int = 1,
        random_state: Seed = None,
    ) -> None:
        self.smoothing = smoothing
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state

    def _em_model(self, n_classes: int) -> tuple[NoiseModel[Any], ClassPrior]:
        noise = ConfusionNoise(self.smoothing)
        return noise, class_prior(self.prior, n_classes, self.smoothing)
