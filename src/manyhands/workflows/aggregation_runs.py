"""Results of `aggregate`: of a run in memory, and of a run on shards."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from manyhands.aggregation.base import Aggregator
from manyhands.io.read.reading import Reading
from manyhands.sharded.sharded_fit import ShardedFit
from manyhands.workflows.outputs import Written
from manyhands.workflows.routes import Route


@dataclass(frozen=True, eq=False)
class AggregationRun:
    """Result of `aggregate` in memory.

    Attributes
    ----------
    reading : Reading
        What was read; with pseudonyms in place of worker ids if they were asked for.
    model : Aggregator
        The fitted method.
    tables : dict of str to polars.DataFrame
        ``labels.csv`` and ``workers.csv``; with `compare`, ``methods.csv`` and ``differences.csv``.
    summary : dict
        All figures of the run, as in ``summary.json``.
    files : dict of str to bytes
        Content of the files; only ``labels.csv`` if nothing is written.
    written : Written
        Names of the files that were written.
    route : Route or None, default=None
        Why the run was in memory; None if that was not decided.
    """

    reading: Reading
    model: Aggregator
    tables: dict[str, pl.DataFrame]
    summary: dict[str, Any]
    files: dict[str, bytes]
    written: Written
    route: Route | None = None

    @property
    def confident_share(self) -> float:
        """Share of all items that have a label with a posterior probability of at least 0.9."""
        return _confident_share(self.summary)


@dataclass(frozen=True, eq=False)
class ShardedRun:
    """Result of `aggregate` on shards, in memory or out of core: everything but the items, which are in its files.

    Attributes
    ----------
    fit : ShardedFit
        The fitted method: parameters, and the task that computes the results of items.
    tables : dict of str to polars.DataFrame
        ``workers.csv``.
    summary : dict
        All figures of the run, as in ``summary.json``.
    written : Written
        Names of the files that were written.
    route : Route
        Where the run took place, and why.
    course : dict
        What depends on the machine and not on the data: seconds and peak memory of each step, bytes of the cache,
        whether codes were in it, and how many passes were taken from an earlier run.
    """

    fit: ShardedFit
    tables: dict[str, pl.DataFrame]
    summary: dict[str, Any]
    written: Written
    route: Route
    course: dict[str, Any] = field(default_factory=dict)

    @property
    def confident_share(self) -> float:
        """Share of all items that have a label with a posterior probability of at least 0.9."""
        return _confident_share(self.summary)


def _confident_share(summary: dict[str, Any]) -> float:
    """Return the share of confident labels among all items."""
    labelled = 1 - summary["n_unlabelled"] / summary["n_items"]
    return float(labelled * (summary["share_above_0.9"] or 0.0))
