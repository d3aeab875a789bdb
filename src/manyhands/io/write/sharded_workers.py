"""The quality report of each worker of a fit on shards, as a data frame."""

from __future__ import annotations

import numpy as np
import polars as pl

from manyhands.io.write.results import id_column
from manyhands.sharded.labels import ShardedLabels
from manyhands.sharded.sharded_fit import ShardedFit


def sharded_worker_frame(found: ShardedFit, labels: ShardedLabels) -> pl.DataFrame:
    """Return one row per worker, with the columns of `worker_frame` that follow from sums over items.

    Parameters
    ----------
    found : ShardedFit
        A fit on shards.
    labels : ShardedLabels
        The labels that were fitted, over which one more pass is made.

    Returns
    -------
    polars.DataFrame
        ``worker``, ``n_labels``, ``n_checked`` (labels on items that others labelled too), ``accuracy`` with its 95 %
        interval ``accuracy_low`` and ``accuracy_high``, and ``recall_<class>`` and ``items_<class>`` for each class.
    """
    columns = found.worker_table(labels)
    numbers = {name: pl.Series(np.asarray(values)) for name, values in columns.items() if name != "worker"}
    shown = {name: values.fill_nan(None) if values.dtype.is_float() else values for name, values in numbers.items()}
    return pl.DataFrame({"worker": id_column(columns["worker"].tolist())} | shown)
