"""How workers would answer what they were not asked: a stream of guesses, a stretch of items at a time.

Whatever the number of pairs, a stretch holds no more than a few million numbers; an array over all items, workers
and classes is never born.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from manyhands.annotations import Annotations

_NUMBERS = 1 << 21  # of log-probabilities held at a time


class Guesses(NamedTuple):
    """Pairs of an item and a worker, the worker's likeliest answer to each, and how open the answer is."""

    item: npt.NDArray[np.int64]
    worker: npt.NDArray[np.int64]
    label: npt.NDArray[np.int64]
    entropy: npt.NDArray[np.float32]


@torch.no_grad()
def guess_unanswered(
    log_answers: Callable[[npt.NDArray[np.intp]], torch.Tensor],
    worker: npt.NDArray[np.intp],
    n_classes: int,
    answered: Sequence[Annotations],
) -> Iterator[Guesses]:
    """Guess the answers to all pairs of an item and one of these workers, but those that are in `answered`.

    Parameters
    ----------
    log_answers : from items to (n_items, n_classes, n_workers) the log-probability of each worker's every answer
    worker : whose answers these are, in ascending order
    answered : pairs that have an answer, or are to be left out for another reason; at least one such set
    """
    n_items = answered[0].n_items
    place = np.full(answered[0].n_workers, -1)
    place[worker] = np.arange(len(worker))
    stretch = max(1, _NUMBERS // max(1, len(worker) * n_classes))
    for first in range(0, n_items, stretch):
        last = min(first + stretch, n_items)
        log_proba = log_answers(np.arange(first, last))
        row, column = np.nonzero(_is_open(answered, first, last, place, len(worker)))
        entropy = -(log_proba.exp() * log_proba).sum(1).cpu().numpy()
        label = log_proba.argmax(1).cpu().numpy()
        yield Guesses(row + first, worker[column], label[row, column], entropy[row, column])


def _is_open(
    answered: Sequence[Annotations], first: int, last: int, place: npt.NDArray[np.intp], n_workers: int
) -> npt.NDArray[np.bool_]:
    """(last - first, n_workers) which pairs have no answer."""
    is_open = np.ones((last - first, n_workers), bool)
    for given in answered:
        begin, end = given.start[[first, last]]
        item, column = given.item[begin:end] - first, place[given.worker[begin:end]]
        is_open[item[column >= 0], column[column >= 0]] = False
    return is_open
