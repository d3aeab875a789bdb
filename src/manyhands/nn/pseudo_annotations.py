"""Pseudo-annotations (pseudo-labels) of all pairs of an item and a worker without a label, and their entropies.

    pseudo-annotation of (i, w)  =  argmax_c p_c,   entropy H = -sum_c p_c log p_c  (Eq. 3 of Self-Crowd)

p_c = p(label = c | x_i, w) by the crowd layer; a low entropy means a confident prediction.
They are computed for a block of items at a time, so that memory stays at a few million numbers whatever the number of
pairs; an array over all items, workers and classes is never built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from manyhands.annotations import Annotations

_BLOCK_NUMBERS = 1 << 19  # log-probabilities in a block: these stay in the processor's cache


class PseudoAnnotationBlock(NamedTuple):
    """Pseudo-annotations of a block of consecutive items by each of some workers.

    Attributes
    ----------
    first : int
        The first item of the block.
    label : array of int16 of shape (n_block, n_workers)
        The most likely label of each pair; the first one of a tie.
    entropy : array of float32 of shape (n_block, n_workers)
        Entropy of the label's distribution in nats; infinite where the pair has a label already.
    """

    first: int
    label: npt.NDArray[np.int16]
    entropy: npt.NDArray[np.float32]


@torch.no_grad()
def predict_pseudo_annotations(
    log_answers: Callable[[npt.NDArray[np.intp]], torch.Tensor],
    worker: npt.NDArray[np.intp],
    n_classes: int,
    answered: Sequence[Annotations],
) -> Iterator[PseudoAnnotationBlock]:
    """Predict the labels of all pairs of an item and one of these workers that have none.

    Parameters
    ----------
    log_answers : callable
        From items (n,) to the log-probabilities of every label of each worker, of shape (n, n_classes, n_workers).
    worker : array of int of shape (n_workers,)
        Codes of these workers, in ascending order.
    n_classes : int
        Number of classes.
    answered : sequence of Annotations
        Labels whose pairs are left out: observed ones, and held-out ones perhaps. At least one set, all with the same
        items and workers.

    Yields
    ------
    PseudoAnnotationBlock
        Block after block, in the order of items.
    """
    n_items = answered[0].n_items
    place = np.full(answered[0].n_workers, -1)
    place[worker] = np.arange(len(worker))
    block = max(1, _BLOCK_NUMBERS // max(1, len(worker) * n_classes))
    for first in range(0, n_items, block):
        last = min(first + block, n_items)
        log_proba = log_answers(np.arange(first, last))
        entropy = -(log_proba.exp() * log_proba).sum(1).cpu().numpy()
        for given in answered:
            begin, end = given.start[[first, last]]
            item, column = given.item[begin:end] - first, place[given.worker[begin:end]]
            entropy[item[column >= 0], column[column >= 0]] = np.inf
        yield PseudoAnnotationBlock(first, _most_likely(log_proba).cpu().numpy(), entropy)


def _most_likely(log_proba: torch.Tensor) -> torch.Tensor:
    """(n, n_workers) the most likely label, the first of a tie; ten times as fast as torch's argmax on this axis."""
    highest = log_proba.amax(1)
    label = torch.zeros(highest.shape, dtype=torch.int16, device=log_proba.device)
    for k in reversed(range(log_proba.shape[1])):
        label.masked_fill_(log_proba[:, k] == highest, k)
    return label
