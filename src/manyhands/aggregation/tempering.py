"""Tempering: the exponent of the posterior that predicts held-out labels best, by cross-validation over labels.

    p(k | labels of i)  ~  (prior[k] prod_w confusion[w, k, label_iw]) ^ exponent

Workers err on the same hard items, so their labels carry less information than independent ones, and the posterior of
an independence model is overconfident. An exponent below 1 corrects this; it never changes which class is most
probable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from manyhands import elementary
from manyhands.annotations import Annotations
from manyhands.em.e_step import Gold, posterior_given
from manyhands.em.exchangeable import merge_workers
from manyhands.em.kernels import Array
from manyhands.heldout import split_labels
from manyhands.label_weights import pair_of_label
from manyhands.noise import safe_log

EXPONENTS = np.array([0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
FOLD_ITERATIONS = 25  # maximum number of EM iterations in a fold, where rough worker parameters are enough
FOLD_ITERATIONS_LOW_VOLUME = 8
MAX_HELDOUT_LABELS = 50_000  # further folds are skipped
MIN_HELDOUT_LABELS = 50
MAX_LABELS_LOW_VOLUME = (
    20_000  # the same for many workers with few labels each, whose confusion matrices are most of the work
)
LOW_VOLUME_CROWDS = ((5_000, 5.0), (500, 1.5))  # (minimum number of workers, maximum mean number of labels)
MAX_LABELS = 2_000_000  # labels; of a larger crowd a sample of items is used


_DEPENDENT = 0.6  # exponent that stands for errors which depend on one another, in the test of independence


@dataclass(frozen=True)
class Tempering:
    """Outcome of the cross-validation over labels.

    Attributes
    ----------
    exponent : float or None, default=None
        One of `EXPONENTS`; None where there are too few held-out labels.
    independence : float, default=0.0
        Mean held-out log-likelihood at exponent 1 minus that at .6, in standard errors; positive where workers err
        independently.
    """

    exponent: float | None = None
    independence: float = 0.0


class FittedCrowd(Protocol):
    """A fitted noise model, as tempering needs it."""

    @property
    def confusion(self) -> Array:
        """Confusion matrices, shape (n_workers, n_classes, n_classes)."""

    @property
    def log_prior(self) -> Array:
        """Log class prior, shape (n_classes,)."""


Fitter = Callable[[Annotations, Gold, int, float], FittedCrowd]  # (annotations, gold, max_iter, tol) -> fit


def choose_exponent(annotations: Annotations, gold: Gold, fitter: Fitter, n_folds: int) -> Tempering:
    """The largest exponent within one standard error of the best mean held-out log-likelihood.

    Labels are split into folds. For each fold the model is fitted to the other labels, and each held-out label is
    predicted from the tempered posterior given the other labels of its item.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    gold : ndarray of shape (n_items,) of int32 or None
        Class code of each item whose truth is known, -1 elsewhere.
    fitter : callable
        (annotations, gold, max_iter, tol) -> fitted noise model.
    n_folds : int
        Number of folds.

    Returns
    -------
    Tempering
    """
    sample, gold = _sample_of_items(annotations, gold)
    fold = split_labels(sample, n_folds)
    scores: list[Array] = []
    for k in range(n_folds):
        if sum(map(len, scores)) < MAX_HELDOUT_LABELS:
            scores.append(_heldout_scores(sample, gold, fitter, fold == k))
    score = np.concatenate(scores)  # (n_held_out, n_exponents)
    if len(score) < MIN_HELDOUT_LABELS:
        return Tempering()
    best = int(score.mean(axis=0).argmax())
    loss = score[:, [best]] - score
    near = loss.mean(axis=0) <= loss.std(axis=0) / np.sqrt(len(loss))
    gain = score[:, -1] - score[:, int(np.flatnonzero(EXPONENTS == _DEPENDENT)[0])]
    error = float(gain.std()) / np.sqrt(len(gain))
    independence = float(gain.mean() / error) if error > 0 else 0.0
    return Tempering(float(EXPONENTS[np.flatnonzero(near).max()]), independence)


def _sample_of_items(annotations: Annotations, gold: Gold) -> tuple[Annotations, Gold]:
    """All items of a crowd of ordinary size; evenly spaced ones of a very large crowd or one with very many workers."""
    step = annotations.n_annotations // (MAX_LABELS_LOW_VOLUME if is_low_volume(annotations) else MAX_LABELS) + 1
    if step == 1:
        return annotations, gold
    sample = annotations[::step]
    has_label = np.bincount(sample.worker, minlength=sample.n_workers) > 0
    # Workers without a label in the sample cost memory and add nothing.
    sample = merge_workers(sample, np.maximum(np.cumsum(has_label) - 1, 0))
    return sample, None if gold is None else gold[::step]


def _heldout_scores(annotations: Annotations, gold: Gold, fitter: Fitter, out: npt.NDArray[np.bool_]) -> Array:
    """Held-out log-likelihood of the labels in `out` for each exponent, shape (n_held_out, n_exponents)."""
    known = annotations.keep(~out)
    held = annotations.keep(out & (known.n_labels > 0)[annotations.item])
    if known.n_annotations == 0 or held.n_annotations == 0:
        return np.zeros((0, len(EXPONENTS)))
    fit = fitter(known, gold, FOLD_ITERATIONS_LOW_VOLUME if is_low_volume(annotations) else FOLD_ITERATIONS, 0.0)
    posterior, _ = posterior_given(known, safe_log(fit.confusion), fit.log_prior, gold)
    log_p = safe_log(posterior)[held.item]  # (n_held_out, n_classes)
    p_label = fit.confusion[held.worker, :, held.label]
    scores = []
    for exponent in EXPONENTS:
        p = elementary.exp(exponent * (log_p - log_p.max(axis=1, keepdims=True)))
        scores.append(safe_log((p * p_label).sum(axis=1) / p.sum(axis=1)))
    found = np.stack(scores, axis=1)
    return found if held.weight is None else _mean_by_vote(found, held, held.weight)


def _mean_by_vote(scores: Array, held: Annotations, weight: Array) -> Array:
    """Weighted means of the scores of all labels that one worker gave to one item, which are one vote."""
    pair = pair_of_label(held.item, held.worker)
    first = np.flatnonzero(np.diff(pair, prepend=-1))
    return np.add.reduceat(weight[:, None] * scores, first) / np.add.reduceat(weight, first)[:, None]


def is_low_volume(annotations: Annotations) -> bool:
    """Whether there are many workers with few labels each.

    Then little can be inferred about any of them, and most of the work is in their confusion matrices.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.

    Returns
    -------
    bool
    """
    return has_low_volume(annotations.worker_volume)


def has_low_volume(worker_volume: npt.NDArray[Any]) -> bool:
    """The same from the number of labels of each worker.

    Parameters
    ----------
    worker_volume : ndarray of shape (n_workers,)
        Number of labels of each worker.

    Returns
    -------
    bool
    """
    n_active, n_labels = np.count_nonzero(worker_volume), worker_volume.sum()
    return any(n_active >= least and n_labels <= most * n_active for least, most in LOW_VOLUME_CROWDS)
