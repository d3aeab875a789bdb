"""Noise models: how a worker errs; one file per model.

Every model here but `difficulty` is given by *confusion matrices*: the probability of a label depends on (worker,
truth, label) alone. Such a model is a frozen dataclass with three methods:

    solve(counts, previous)   the M step: parameters from the expected counts[worker, truth, label]
    log_confusion(params)     log p(label | truth) for each worker, indexed [worker, truth, label]
    log_penalty(params)       log prior density of the parameters, up to a constant (or minus a divergence)

`previous` are the parameters of the last iteration, or None in the first; models with a closed form ignore them.
`solve` never lowers  sum(counts * log_confusion) + log_penalty  below its value at `previous`, as exact EM requires.

confusion      a full confusion matrix per worker (Dawid and Skene)
one_coin       one accuracy per worker
spammer        competence and spam distribution per worker (MACE)
variational    a Dirichlet posterior of each confusion matrix (IBCC, variational Bayes)
ordinal        bias and spread per worker on an ordered scale
pooled         a mixture of worker types with fitted priors; worker_types, dirichlet and beta are its parts
difficulty     abilities of workers against difficulties of items
"""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from manyhands import elementary

Array = npt.NDArray[np.float64]
P = TypeVar("P")


class NoiseModel(Protocol[P]):
    """Interface of a noise model that `fit_confusion_em` can fit."""

    def solve(self, counts: Array, previous: P | None) -> P:
        """The M step: parameters from expected counts, shape (n_workers, n_classes, n_classes)."""

    def log_confusion(self, params: P) -> Array:
        """Log confusion matrices, shape (n_workers, n_classes, n_classes), indexed [worker, truth, label]."""

    def log_penalty(self, params: P) -> float:
        """What the prior of the parameters adds to the objective."""


@runtime_checkable
class HasHyperparameters(Protocol[P]):
    """A noise model with hyper-parameters that `solve` updates slowly: positive numbers, as one vector.

    The EM driver extrapolates them together with the expected counts.
    """

    def hyperparameters(self, params: P | None) -> Array:
        """The hyper-parameters as one vector; the initial ones for None."""

    def with_hyperparameters(self, hyperparameters: Array, previous: P | None) -> P | None:
        """The previous parameters with these hyper-parameters in the place of their own."""


def safe_log(p: Array) -> Array:
    """Logarithm with the smallest positive double in the place of 0, so that sums of logarithms stay finite.

    Parameters
    ----------
    p : ndarray
        Non-negative numbers.

    Returns
    -------
    ndarray of the shape of `p`

    Examples
    --------
    >>> safe_log(np.array([1.0, 0.0])).round(1).tolist()
    [0.0, -708.4]
    """
    return np.asarray(elementary.log(np.maximum(p, np.finfo(np.float64).tiny)))


def pseudo_count_matrix(n_classes: int, right: float, wrong: float) -> Array:
    """Matrix of pseudo-counts for a confusion matrix.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    right : float
        Pseudo-count of each diagonal cell.
    wrong : float
        Pseudo-count of all other cells of a row together, divided equally among them.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        Indexed [truth, label].

    Examples
    --------
    >>> pseudo_count_matrix(3, 2.0, 1.0).tolist()
    [[2.0, 0.5, 0.5], [0.5, 2.0, 0.5], [0.5, 0.5, 2.0]]
    """
    pseudo = np.full((n_classes, n_classes), wrong / max(n_classes - 1, 1))
    np.fill_diagonal(pseudo, right)
    return pseudo
