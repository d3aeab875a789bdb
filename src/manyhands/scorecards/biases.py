"""Which class a worker over-uses, and which classes they confuse."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.em.kernels import Array
from manyhands.scorecards.leave_one_out import LeaveOneOut

MIN_Z = 3.0  # deviations from which a class counts as over-used
MIN_COUNT = 2.0  # expected labels from which a confusion is listed
MOST_CONFUSIONS = 3

Codes = npt.NDArray[np.intp]


class Bias(NamedTuple):
    """(n_workers,) the class that is over-used, -1 for none; share used minus share met; deviations."""

    code: Codes
    excess: Array
    z: Array


class Confusions(NamedTuple):
    """(n_workers, 3) the commonest confusions, -1 and 0 where there are fewer."""

    truth: Codes
    label: Codes
    n_labels: Array  # expected number of such labels
    rate: Array  # of the items of that truth, the share that got this label


def find_bias(others_posterior: LeaveOneOut) -> Bias:
    """The class that each worker names more often than the others' labels say it was met.

    The deviation counts what can tip the balance alone: labels that agree with the truth, which tell nothing of a
    preference, add nothing to it (McNemar).
    """
    n_checked = np.maximum(others_posterior.used.sum(axis=1), 1e-12)[:, None]
    surplus = others_posterior.used - others_posterior.met
    label = others_posterior.annotations.label
    square = [
        others_posterior.by_worker(others_posterior.weight * ((label == k) - column) ** 2)
        for k, column in enumerate(others_posterior.truth.T)
    ]
    z = surplus / np.sqrt(np.stack(square, axis=1) + 1.0)
    top = z.argmax(axis=1)[:, None]
    most = np.take_along_axis(z, top, axis=1)[:, 0]
    excess = np.take_along_axis(surplus / n_checked, top, axis=1)[:, 0]
    is_biased = most >= MIN_Z
    return Bias(np.where(is_biased, top[:, 0], -1), np.where(is_biased, excess, 0.0), most)


def find_confusions(others_posterior: LeaveOneOut, accuracy: Array) -> Confusions:
    """The wrong labels that each worker gives most, by what the others and the worker's own accuracy say of the truth.

    Without the latter, every doubt among the others would look like an error of the worker.
    """
    votes = others_posterior.annotations
    n_classes = votes.n_classes
    right = accuracy[votes.worker]
    wrong = (1 - right) / max(n_classes - 1, 1)
    believed = others_posterior.truth * wrong[:, None]
    rows = np.arange(len(right))
    believed[rows, votes.label] = others_posterior.p_right * right
    believed *= (others_posterior.weight / np.maximum(believed.sum(axis=1), 1e-300))[:, None]
    counts = np.stack([others_posterior.by_label(column) for column in believed.T], axis=1)  # [worker, truth, label]
    rate = counts / np.maximum(counts.sum(axis=2, keepdims=True), 1e-300)
    counts[:, np.arange(n_classes), np.arange(n_classes)] = -1.0
    flat = counts.reshape(len(counts), -1)
    top = np.argsort(-flat, axis=1, kind="stable")[:, :MOST_CONFUSIONS]
    top = np.pad(top, ((0, 0), (0, MOST_CONFUSIONS - top.shape[1])), mode="edge")
    count = np.take_along_axis(flat, top, axis=1)
    listed = (count >= MIN_COUNT) & (np.arange(MOST_CONFUSIONS) < flat.shape[1])
    truth, label = np.divmod(top, n_classes)
    rates = np.take_along_axis(rate.reshape(flat.shape), top, axis=1)
    return Confusions(
        np.where(listed, truth, -1),
        np.where(listed, label, -1),
        np.where(listed, count, 0.0),
        np.where(listed, rates, 0.0),
    )
