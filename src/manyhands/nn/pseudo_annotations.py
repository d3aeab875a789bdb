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

_NUMBERS = 1 << 19  # of log-probabilities held at a time: they stay in the processor's own memory


class Guesses(NamedTuple):
    """For some items from `first` on and for each worker: the likeliest answer, and how open it is.

    The entropy is infinite where there is nothing to guess.
    """

    first: int
    label: npt.NDArray[np.int16]  # (n, n_workers)
    entropy: npt.NDArray[np.float32]  # (n, n_workers)


@torch.no_grad()
def guess_unanswered(
    log_answers: Callable[[npt.NDArray[np.intp]], torch.Tensor],
    worker: npt.NDArray[np.intp],
    n_classes: int,
    answered: Sequence[Annotations],
) -> Iterator[Guesses]:
    """Guess the answers of these workers to all items but those that they have in `answered`.

    Parameters
    ----------
    log_answers : from items to (n_items, n_classes, n_workers) the log-probability of each worker's every answer
    worker : whose answers these are, in ascending order
    n_classes : how many
    answered : pairs that have an answer, or are to be left out for another reason; at least one such set
    """
    n_items = answered[0].n_items
    place = np.full(answered[0].n_workers, -1)
    place[worker] = np.arange(len(worker))
    stretch = max(1, _NUMBERS // max(1, len(worker) * n_classes))
    for first in range(0, n_items, stretch):
        last = min(first + stretch, n_items)
        log_proba = log_answers(np.arange(first, last))
        entropy = -(log_proba.exp() * log_proba).sum(1).cpu().numpy()
        for given in answered:
            begin, end = given.start[[first, last]]
            item, column = given.item[begin:end] - first, place[given.worker[begin:end]]
            entropy[item[column >= 0], column[column >= 0]] = np.inf
        yield Guesses(first, _likeliest(log_proba).cpu().numpy(), entropy)


def _likeliest(log_proba: torch.Tensor) -> torch.Tensor:
    """(n, n_workers) the first of the likeliest answers. torch's own argmax takes ten times as long along this axis."""
    highest = log_proba.amax(1)
    label = torch.zeros(highest.shape, dtype=torch.int16, device=log_proba.device)
    for k in reversed(range(log_proba.shape[1])):
        label.masked_fill_(log_proba[:, k] == highest, k)
    return label
