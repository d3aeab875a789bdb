"""`simulate`: a simulated crowd as files. `demo`: all aggregators on one, compared with its ground truth."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from manyhands import registry
from manyhands.annotations import Annotations
from manyhands.exceptions import CrowdWarning
from manyhands.io.overview import describe_crowd
from manyhands.io.reading import Reading, read_export
from manyhands.io.write.result_files import file_names, result_files, triples_frame
from manyhands.io.write.results import to_csv
from manyhands.jobs.aggregate import WITHOUT_FLAGGED, fit_reading
from manyhands.jobs.options import Written, begin_summary, check_seed, claim_folder, write_all
from manyhands.report.page import PAGE, report_of
from manyhands.simulate import Crowd, make_crowd

_FILES = ("ratings.csv", "truth.csv", "planted_workers.csv")
_DEMO_CLASSES = np.array(["bird", "cat", "dog", "fox"], object)


@dataclass(frozen=True, eq=False)
class SimulationRun:
    """Result of `simulate`.

    Attributes
    ----------
    crowd : Crowd
        Annotations, ground truth and the kind of every worker.
    ratings : bytes
        The annotations as CSV.
    summary : dict
        Counts of items, workers and labels, and the names of the files.
    written : Written
        Names of the files that were written.
    """

    crowd: Crowd
    ratings: bytes
    summary: dict[str, Any]
    written: Written


def simulate(
    n_items: int = 400,
    n_workers: int = 40,
    n_classes: int = 2,
    labels_per_item: float = 5,
    *,
    kind: str = "honest",
    accuracy: float = 0.8,
    spread: float = 0.1,
    bad: str = "random",
    bad_share: float = 0.0,
    random_state: int = 0,
    out: str | Path | None = None,
    force: bool = False,
) -> SimulationRun:
    """Simulate a crowd and write its annotations, the ground truth, and which workers are bad.

    Parameters
    ----------
    n_items : int, default=400
        Number of items.
    n_workers : int, default=40
        Number of workers.
    n_classes : int, default=2
        Number of classes.
    labels_per_item : float, default=5
        Mean number of labels per item.
    kind : str, default="honest"
        How good workers err, see `manyhands.simulate.KINDS`.
    accuracy : float, default=0.8
        Mean accuracy of good workers.
    spread : float, default=0.1
        Standard deviation of their accuracy.
    bad : str, default="random"
        How bad workers answer, see `manyhands.simulate.ATTACKS`.
    bad_share : float, default=0.0
        Share of bad workers.
    random_state : int, default=0
        Seed.
    out : str, Path or None, default=None
        Folder for the files; None writes nothing.
    force : bool, default=False
        Replace files that exist.

    Returns
    -------
    SimulationRun
        The crowd and its files.

    Raises
    ------
    ParameterError
        If a parameter is invalid.
    """
    check_seed(random_state)
    with claim_folder(out, _FILES, force=force) as output:
        crowd = make_crowd(
            n_items,
            n_workers,
            n_classes,
            labels_per_item,
            kind=kind,
            accuracy=accuracy,
            spread=spread,
            bad=bad,
            bad_share=bad_share,
            random_state=random_state,
        )
        ratings = to_csv(triples_frame(crowd.annotations, unanswered=False))
        written = write_all(output, {"ratings.csv": ratings} | _truth_tables(crowd))
    summary = {"schema": 1, "written": list(written.names)} | describe_crowd(crowd.annotations)
    return SimulationRun(crowd, ratings, summary, written)


def _truth_tables(crowd: Crowd) -> dict[str, bytes]:
    """Return the true class of every item and the kind of every worker, as CSV."""
    names = crowd.annotations
    truth = pl.DataFrame({"item": [str(i) for i in names.item_ids.tolist()], "label": names.classes[crowd.truth]})
    workers = pl.DataFrame({"worker": [str(w) for w in names.worker_ids.tolist()], "bad": crowd.is_bad})
    return {"truth.csv": to_csv(truth), "planted_workers.csv": to_csv(workers)}


@dataclass(frozen=True, eq=False)
class DemoRun:
    """Result of `demo`.

    Attributes
    ----------
    reading : Reading
        The simulated annotations, as read from their file.
    summary : dict
        Figures of the default method, as in ``summary.json``.
    workers : polars.DataFrame
        Quality report of each worker.
    methods : polars.DataFrame
        ``method``, ``accuracy``, ``mean_confidence`` and ``calibration_gap`` (their absolute difference) of every
        aggregator, the most accurate first.
    written : Written
        Names of the files that were written.
    """

    reading: Reading
    summary: dict[str, Any]
    workers: pl.DataFrame
    methods: pl.DataFrame
    written: Written


def demo(out: str | Path, *, random_state: int = 0, force: bool = False) -> DemoRun:
    """Simulate 1000 pictures and 60 workers, aggregate the labels, and compare all aggregators with the truth.

    Each picture has four labels; 30% of the workers answer at random.

    Parameters
    ----------
    out : str or Path
        Folder for the files.
    random_state : int, default=0
        Seed.
    force : bool, default=False
        Replace files that exist.

    Returns
    -------
    DemoRun
        Results of the default method, and the comparison of all.
    """
    check_seed(random_state)
    names = ["ratings.csv", *file_names([], compare=False), WITHOUT_FLAGGED, "methods.csv", PAGE]
    with claim_folder(out, names, force=force) as output:
        crowd = make_crowd(1000, 60, len(_DEMO_CLASSES), 4, bad="random", bad_share=0.3, random_state=random_state)
        path = Path(out) / "ratings.csv"
        ratings = to_csv(_demo_ratings(crowd.annotations))
        reading = _read_content(ratings, str(path))
        model, tables, figures = fit_reading(reading, registry.DEFAULT, random_state=random_state)
        summary = begin_summary([path.name]) | figures
        files = result_files(model, reading, [str(path)], tables, summary, [])
        methods = _compare_with_truth(reading, _DEMO_CLASSES[crowd.truth], random_state)
        truth = dict(zip(reading.annotations.item_ids.tolist(), _DEMO_CLASSES[crowd.truth].tolist()))
        command = f"manyhands report {path} --worker-names ids"
        page = report_of(
            model,
            reading,
            summary,
            [],
            tables,
            truth=truth,
            reveal=True,
            seed=random_state,
            command=command,
            beside={WITHOUT_FLAGGED: WITHOUT_FLAGGED},
        )
        files |= {"methods.csv": to_csv(methods), PAGE: page.content}
        written = write_all(output, {path.name: ratings} | files)
    return DemoRun(reading, summary, tables["workers.csv"], methods, written)


def _read_content(table: bytes, name: str) -> Reading:
    """Read a table that is not in its place yet: all files of a run are written together."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.csv"
        path.write_bytes(table)
        return replace(read_export(path), source=name)


def _demo_ratings(annotations: Annotations) -> pl.DataFrame:
    """Return the annotations with readable ids."""
    return pl.DataFrame(
        {
            "item": [f"picture-{item:04d}" for item in annotations.item],
            "worker": [f"worker-{worker:02d}" for worker in annotations.worker],
            "label": _DEMO_CLASSES[annotations.label].tolist(),
        }
    )


def _compare_with_truth(reading: Reading, truth: Any, random_state: int) -> pl.DataFrame:
    """Return accuracy, mean confidence and their difference for every aggregator."""
    rows = []
    for method in registry.names("aggregator"):
        if method in ("kos", registry.DEFAULT_ORDINAL, registry.DEFAULT_VERDICTS):  # for other labels than these
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CrowdWarning)
            model = registry.create_seeded(method, random_state).fit(reading.annotations)
        accuracy = float(np.mean(model.labels_ == truth))
        confidence = float(model.posterior_.max(axis=1).mean())
        gap = abs(confidence - accuracy)
        rows.append({"method": method, "accuracy": accuracy, "mean_confidence": confidence, "calibration_gap": gap})
    return pl.DataFrame(rows).sort("accuracy", "method", descending=[True, False])
