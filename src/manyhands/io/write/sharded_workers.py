"""The quality report of each worker of a fit on shards, as a data frame."""

from __future__ import annotations

import polars as pl

from manyhands.io.write.results import id_column
from manyhands.sharded.sharded_fit import ShardedFit


def sharded_worker_frame(found: ShardedFit) -> pl.DataFrame:
    """Return one row per worker.

    Parameters
    ----------
    found : ShardedFit
        A fit on shards.

    Returns
    -------
    polars.DataFrame
        ``worker``, ``n_labels``, ``n_checked`` (labels on items that others labelled too) and ``accuracy``.
    """
    return pl.DataFrame(
        {
            "worker": id_column(found.worker_ids.tolist()),
            "n_labels": found.worker_volume,
            "n_checked": found.n_checked.astype("int64"),
            "accuracy": found.worker_accuracy,
        }
    )
