"""The task that counts the labels of each worker."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from manyhands.sharded.labels import Shard


@dataclass(frozen=True)
class VolumePass:
    """Counts the labels of each worker in one shard."""

    def __call__(self, shard: Shard) -> npt.NDArray[np.int64]:
        """Run on one shard.

        Parameters
        ----------
        shard : Shard
            The labels.

        Returns
        -------
        ndarray of shape (n_workers,) of int64
        """
        packed = shard.packed
        return np.bincount(packed.code // np.int32(packed.n_classes), minlength=packed.n_workers).astype(np.int64)
