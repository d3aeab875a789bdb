"""Dawid-Skene: a confusion matrix for every worker, found by EM.

    p(label = l | truth = k, worker = w) = confusion[w, k, l]
    p(k | labels of i)  ~  prior[k] prod_w confusion[w, k, label_iw]

Reference: A. P. Dawid and A. M. Skene (1979), Maximum likelihood estimation of observer error-rates using the EM
algorithm, Applied Statistics 28.
"""

from __future__ import annotations

from typing import ClassVar

import numpy.typing as npt

from manyhands import elementary
from manyhands.aggregation.base import EM_CONSTRAINTS, Aggregator, Gold, Inference, fit_by_em
from manyhands.annotations import Annotations
from manyhands.em.priors import class_prior
from manyhands.noise.confusion import ConfusionNoise
from manyhands.randomness import Seed
from manyhands.validation import Constraint, Number


class DawidSkene(Aggregator):
    """One confusion matrix per worker, by exact EM from the vote shares.

    Strong where every worker has many labels (some n_classes^2); where they have few, it becomes sure of itself
    on thin evidence: use `PooledDawidSkene` there.

    Parameters
    ----------
    smoothing : labels added to every cell of every confusion matrix, and items added to every class
    prior : "estimated" class frequencies, "uniform", or a frequency for each class
    max_iter, tol : at most this many passes; stop within `tol` of the optimum, as a share of the objective
    n_init : starts; the first is from the vote shares, the others are random
    random_state : seed of the random starts

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes), rows (over the label) sum to 1
    class_prior_ : (n_classes,)
    restarts_ : the objective at which each start ended; one more where gold overrules the vote

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

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        noise = ConfusionNoise(self.smoothing)
        prior = class_prior(self.prior, annotations.n_classes, self.smoothing)
        fit = fit_by_em(self, annotations, gold, noise, prior)
        return Inference.from_table(fit, confusion=elementary.exp(fit.log_table))
