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

from manyhands.aggregation.base import Aggregator, Gold
from manyhands.aggregation.em_fit import EM_CONSTRAINTS, Inference, infer_by_em
from manyhands.annotations import Annotations
from manyhands.em.confusion_em import ConfusionEMFit
from manyhands.em.priors import ClassPrior, class_prior
from manyhands.noise import NoiseModel
from manyhands.noise.confusion import ConfusionNoise
from manyhands.randomness import Seed
from manyhands.validation import Constraint, Number


class DawidSkene(Aggregator):
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

    Attributes
    ----------
    confusion_ : ndarray of shape (n_workers, n_classes, n_classes)
        Confusion matrices p(label | truth), indexed [worker, truth, label]; rows (over the label) sum to 1.
    class_prior_ : ndarray of shape (n_classes,)
        Class frequencies.
    restarts_ : list of float
        Final objective of each start; one more than `n_init` where a start from gold was tried.
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

    def _infer(self, annotations: Annotations, gold: Gold) -> Inference:
        return infer_by_em(self, annotations, gold)

    def _em_model(self, n_classes: int) -> tuple[NoiseModel[Any], ClassPrior]:
        noise = ConfusionNoise(self.smoothing)
        return noise, class_prior(self.prior, n_classes, self.smoothing)

    def _em_results(self, fit: ConfusionEMFit[Any]) -> dict[str, Any]:
        return {}
