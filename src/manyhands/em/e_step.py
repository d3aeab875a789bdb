"""The E step and the expected counts of the M step, for all noise models given by confusion matrices.

    E step    p(truth_i = k | labels of i)  ~  prior[k] prod_w confusion[w, k, label_iw]
    counts    counts[w, k, l] = sum of p(truth_i = k | labels of i) over the items i that worker w labelled l

Both are calls of `em_pass`, the fused pass over the annotations; gold labels replace the posterior of their items.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.em.kernels import Array, Packed, PassResult, em_pass, pack
from manyhands.em.priors import gold_offset
from manyhands.noise import safe_log

Gold = npt.NDArray[np.int32] | None


def posterior_given(
    annotations: Annotations | Packed, log_confusion: Array, log_prior: Array, gold: Gold = None
) -> tuple[Array, PassResult]:
    """The E step: posterior of every item given confusion matrices and class priors.

    Parameters
    ----------
    annotations : Annotations or Packed
        The labels; packed ones are used as they are.
    log_confusion : ndarray of shape (n_workers, n_classes, n_classes)
        log p(label | truth), indexed [worker, truth, label].
    log_prior : ndarray of shape (n_classes,) or (n_items, n_classes)
        log p(truth), the same for all items, or one row per item, such as the log-probabilities of a classifier.
    gold : ndarray of shape (n_items,) of int32, default=None
        Class code of each item whose truth is known, -1 elsewhere.

    Returns
    -------
    posterior : ndarray of shape (n_items, n_classes)
        p(truth | labels); rows sum to 1. Without labels it is the prior.
    result : PassResult
        The same posterior with the expected counts, the class totals and the evidence log p(labels).

    Examples
    --------
    >>> votes = Annotations.from_matrix([[0, 0], [0, 1]])
    >>> confusion = np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.6, 0.4], [0.4, 0.6]]])
    >>> posterior, result = posterior_given(votes, np.log(confusion), np.log([0.5, 0.5]))
    >>> posterior.round(3).tolist()
    [[0.931, 0.069], [0.857, 0.143]]
    """
    packed = annotations if isinstance(annotations, Packed) else pack(annotations)
    offset = gold_offset(gold, packed.n_classes)
    if log_prior.ndim == 2:
        offset = log_prior if offset is None else log_prior + offset
        log_prior = np.zeros(packed.n_classes)
    result = em_pass(packed, log_confusion, log_prior, offset, want_posterior=True)
    assert result.posterior is not None
    return result.posterior, result


def expected_counts(packed: Packed, posterior: Array) -> Array:
    """Sufficient statistics of the M step: expected number of labels in each cell of each confusion matrix.

    Parameters
    ----------
    packed : Packed
        The labels.
    posterior : ndarray of shape (n_items, n_classes)
        p(truth) of every item.

    Returns
    -------
    ndarray of shape (n_workers, n_classes, n_classes)
        Counts indexed [worker, truth, label].
    """
    return pass_with_posterior(packed, safe_log(posterior)).counts


def pass_with_posterior(packed: Packed, log_posterior: Array) -> PassResult:
    """Pass over the labels in which the posterior is given, not inferred.

    Confusion matrices of ones and a prior of ones leave the posterior of each item at `log_posterior`.

    Parameters
    ----------
    packed : Packed
        The labels.
    log_posterior : ndarray of shape (n_items, n_classes)
        log p(truth) of every item; rows need not be normalised.

    Returns
    -------
    PassResult
        Expected counts and class totals under that posterior.
    """
    zeros = np.zeros((packed.n_workers, packed.n_classes, packed.n_classes))
    return em_pass(packed, zeros, np.zeros(packed.n_classes), log_posterior)
