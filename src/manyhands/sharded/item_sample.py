"""A sample of items that the data alone decide: what a method needs to see at once, however large the crowd is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.em.packed import Packed
from manyhands.sharded.labels import Shard, ShardedLabels
from manyhands.sharded.views import annotations_of

MAX_SAMPLE = 1_999_999  # labels; a crowd with no more is its own sample
_LARGE_ITEMS = 10  # an item with more than this part of the sample of its shard is left out


class Sample(NamedTuple):
    """Some items of a crowd with all their labels.

    Attributes
    ----------
    annotations : Annotations
        The labels, with numbers in the place of ids; all workers and classes of the crowd.
    is_everything : bool
        Whether these are all labels of the crowd.
    """

    annotations: Annotations
    is_everything: bool


@dataclass(frozen=True)
class SamplePass:
    """The task that takes the first items of a shard.

    Parameters
    ----------
    n_labels : int or None
        Number of labels that they have at most; None takes all items.
    """

    n_labels: int | None

    def __call__(self, shard: Shard) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Run on one shard.

        Parameters
        ----------
        shard : Shard
            The labels.

        Returns
        -------
        code : ndarray of shape (n_labels,) of int32
            Worker and label of each label of these items.
        size : ndarray of shape (n_items,) of int64
            Number of labels of each item.
        """
        code, size = shard.packed.code, np.diff(shard.packed.start)
        if self.n_labels is None:
            return code, size
        small = np.where(size <= self.n_labels // _LARGE_ITEMS, size, 0)
        chosen = (np.cumsum(small) <= self.n_labels) & (small > 0)
        return code[np.repeat(chosen, size)], size[chosen]


def sample_items(labels: ShardedLabels) -> Sample:
    """Gather the first items of every shard, or all items of a crowd of ordinary size.

    The order of the layout is that of a hash, so that the first items of a shard are a random sample of them.

    Parameters
    ----------
    labels : ShardedLabels
        The labels.

    Returns
    -------
    Sample
    """
    is_everything = labels.n_labels <= MAX_SAMPLE
    task = SamplePass(None if is_everything else MAX_SAMPLE // labels.n_shards)
    codes, sizes = zip(*labels.run(task, "shards: sample"))
    start = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
    packed = Packed(np.concatenate(codes), None, start, len(labels.worker_ids), len(labels.classes))
    return Sample(annotations_of(packed), is_everything)
