"""`aggregate` on shards: the same steps whether the labels are in memory or in a code folder on disk."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from manyhands import registry
from manyhands.aggregation.base import Aggregator
from manyhands.exceptions import CrowdWarning
from manyhands.io.write.json_values import to_json, to_json_value
from manyhands.io.write.label_files import CSV, SHARD_KINDS, write_labels
from manyhands.io.write.label_shards import LabelFigures, LabelRows
from manyhands.io.write.results import DECIMALS, class_names, to_csv
from manyhands.io.write.sharded_workers import sharded_worker_frame
from manyhands.io.write.spreadsheet import guard_table
from manyhands.sharded.fits import fit
from manyhands.sharded.sharded_fit import ShardedFit
from manyhands.workflows.aggregation_runs import ShardedRun
from manyhands.workflows.labels_on_shards import SourceLabels, open_labels
from manyhands.workflows.options import ExportOptions
from manyhands.workflows.outputs import Written, claim_folder
from manyhands.workflows.routes import Route
from manyhands.workflows.shard_limits import check_disk, disk_for_labels
from manyhands.workflows.step_times import StepTimes
from manyhands.writing import MANIFEST, Output

WORKERS, SUMMARY = "workers.csv", "summary.json"


@dataclass(frozen=True)
class ShardedJob:
    """What a run on shards is told.

    Attributes
    ----------
    files : sequence of str
        The export.
    export : ExportOptions
        How to read it.
    method : str
        Registry name of the aggregator.
    route : Route
        In memory or out of core.
    out : str or Path
        Folder for the files.
    cache : str, Path or None, default=None
        Folder for the codes of exports; None for that of this user.
    kinds : sequence of str, default=()
        Further formats of the labels: "jsonl", "parquet".
    spreadsheet_safe : bool, default=False
        Prevent spreadsheet programs from running cells of the CSV files as formulas.
    random_state : int, default=0
        Seed of the method.
    force : bool, default=False
        Replace files that exist.
    config : mapping or None, default=None
        File of options and what was taken from it, to be recorded in ``summary.json``.
    """

    files: Sequence[str]
    export: ExportOptions
    method: str
    route: Route
    out: str | Path
    cache: str | Path | None = None
    kinds: Sequence[str] = ()
    spreadsheet_safe: bool = False
    random_state: int = 0
    force: bool = False
    config: Mapping[str, Any] | None = None

    @property
    def names(self) -> list[str]:
        """Files that the run writes."""
        return [CSV, WORKERS, SUMMARY, *(SHARD_KINDS[kind] for kind in self.kinds)]


def aggregate_on_shards(job: ShardedJob, say: Callable[[str], None] | None = None) -> ShardedRun:
    """Fit a method on shards, and write its files shard by shard.

    Parameters
    ----------
    job : ShardedJob
        What to do; its options are checked already.
    say : callable or None, default=None
        Called with a sentence at every step.

    Returns
    -------
    ShardedRun
        The fit, and the names of the files.
    """
    times, tell = StepTimes(), say or (lambda sentence: None)
    method: Aggregator = registry.create_seeded(job.method, job.random_state)
    with claim_folder(job.out, job.names, force=job.force) as output:
        assert output is not None
        tell(job.route.reason)
        with open_labels(job.files, job.export, job.route, method, job.cache, tell, times) as source:
            class_names(source.labels.classes)  # refuses classes that would be counted together
            needed = disk_for_labels(source.labels, job.kinds)
            check_disk(output.folder, needed, "The files of labels", "Name another folder with -o.")
            with times.step("fit"):
                found = fit(method, source.labels, log=source.log)
            source.tell_resumed(tell)
            for code, sentence in found.notes.items():
                warnings.warn(f"{code}: {sentence}", CrowdWarning, stacklevel=3)
            with times.step("workers"):
                workers = sharded_worker_frame(found, source.labels)
            with times.step("labels"):
                summary, written = _write(job, output, source, found, workers)
            source.finish()
    return ShardedRun(found, {WORKERS: workers}, summary, written, job.route, times.as_dict() | source.course)


def _write(
    job: ShardedJob, output: Output, source: SourceLabels, found: ShardedFit, workers: pl.DataFrame
) -> tuple[dict[str, Any], Written]:
    """Write all files; those of labels as the shards come."""
    rows = LabelRows(found.final_task, found.classes, tuple(job.kinds), job.spreadsheet_safe)
    with output.stage() as staged:
        figures = write_labels(source.items, rows, staged)
        summary = {"schema": 1, "files": [Path(name).name for name in job.files]}
        summary |= {} if job.config is None else {"config": dict(job.config)}
        summary |= source.described | _figures(job, source, found, figures)
        summary["notes"] = source.described["notes"] | found.notes
        summary = {name: to_json_value(value) for name, value in summary.items()}
        contents = {
            WORKERS: to_csv(guard_table(workers) if job.spreadsheet_safe else workers),
            SUMMARY: to_json(summary),
        }
        stale = output.write(contents, staged)
        names = [*sorted({*contents, *staged.digests}), MANIFEST]
    return summary, Written(tuple(names), tuple(stale), output.folder)


def _figures(job: ShardedJob, source: SourceLabels, found: ShardedFit, figures: LabelFigures) -> dict[str, Any]:
    """Return the figures of `results.summary` that are known without all items at once, and those of the shards."""
    labelled = figures.n_items - figures.n_unlabelled
    with_labels = found.worker_volume > 0
    named = zip(class_names(found.classes), figures.labels.tolist())
    return {
        "method": job.method,
        "parameters": found.method.get_params(),
        "n_items": figures.n_items,
        "n_workers": len(found.worker_ids),
        "n_classes": len(found.classes),
        "n_annotations": found.n_labels,
        "labels_per_item": round(found.n_labels / max(figures.n_items, 1), 3),
        "n_components": len(np.unique(figures.groups[with_labels])),
        "n_unlabelled": figures.n_unlabelled,
        "n_tied": figures.n_tied,
        "mean_confidence": None if figures.mean_confidence is None else round(figures.mean_confidence, DECIMALS),
        "share_above_0.9": round(figures.n_confident / labelled, DECIMALS) if labelled else None,
        "labels": {name: count for name, count in sorted(named) if count},
        "n_iter": found.n_iter,
        "converged": found.converged,
        "route": job.route.kind,
        "n_shards": source.labels.n_shards,
    }
