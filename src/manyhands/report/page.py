"""The whole page: its panels in their order, a fitted model as a page on disk."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from manyhands import __version__
from manyhands._core.writing import write_files
from manyhands.aggregation.base import Aggregator
from manyhands.io.reading import Reading
from manyhands.io.write.pseudonyms import find_secret, protect_secret
from manyhands.report.html import labels_fit, render_page, run_data
from manyhands.report.panels.data import agreement, class_balance, coverage, ledger, time_course
from manyhands.report.panels.labels import (
    calibration,
    confidence,
    confusable,
    correlated_workers,
    hard_items,
    methods,
    trust,
)
from manyhands.report.panels.summary import classifier, provenance, summary
from manyhands.report.panels.workers import subgroups, worker_cards, worker_map
from manyhands.report.run import ComparedMethods, Panel, Provenance, Report, Run, WithoutFlagged, make_run
from manyhands.report.wording import visible
from manyhands.trust.answers import Answers

# ----------------------------------------------------------------------------------------------------
# `PANELS`: all panels in the order of the page; `build`: those of a run whose data are there.

PANELS: dict[str, Callable[[Run], Panel | None]] = {
    "ledger": ledger,
    "coverage": coverage,
    "class-balance": class_balance,
    "agreement": agreement,
    "confidence": confidence,
    "calibration": calibration,
    "trust": trust,
    "hard-items": hard_items,
    "workers": worker_map,
    "worker-cards": worker_cards,
    "correlated-workers": correlated_workers,
    "subgroups": subgroups,
    "confusable-classes": confusable,
    "methods": methods,
    "time": time_course,
    "classifier": classifier,
    "provenance": provenance,
}


def build(run: Run) -> Report:
    """Return the panels of a run.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    Report
        Panels whose data are absent are left out.
    """
    all_panels = [make(run) for make in PANELS.values()]
    panels = tuple(panel for panel in all_panels if panel is not None)
    return Report(visible(run.title), summary(run, panels), panels)


# ----------------------------------------------------------------------------------------------------
# `write_report`: a fitted model as a page on disk.


def write_report(
    model: Aggregator,
    path: str | Path,
    *,
    title: str = "Crowd labels",
    truth: Mapping[Any, Any] | None = None,
    answers: Answers | None = None,
    classifier: Any = None,
    groups: Mapping[Any, str] | None = None,
    worker_names: str | Path = "pseudonyms",
    force: bool = False,
) -> Path:
    """Write the report of a fitted aggregator as one HTML file.

    Parameters
    ----------
    model : Aggregator
        A fitted aggregator.
    path : str or Path
        The file to write.
    title : str, default="Crowd labels"
        Name of the data.
    truth : mapping of item to class, default=None
        Known classes that did not enter the fit; they only evaluate.
    answers : Answers, default=None
        Answers of an expert that entered the fit.
    classifier : classifier, default=None
        A classifier that was trained on the same annotations.
    groups : mapping of worker to str, default=None
        Group of each worker, such as their country; the groups are compared.
    worker_names : {"pseudonyms", "ids"}, str or Path, default="pseudonyms"
        How the page names workers: by pseudonyms from the key file ``manyhands.key`` beside the page, which is
        created; by their ids; or by the pseudonyms of another key file.
    force : bool, default=False
        Replace the file if it exists.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    OutputExistsError
        If the file exists, without `force`.

    Examples
    --------
    >>> import pathlib, tempfile, manyhands as mh
    >>> votes = mh.Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = mh.write_report(mh.MajorityVote().fit(votes), pathlib.Path(folder) / "report.html")
    ...     page.read_text().count("<h1")
    1
    """
    target = Path(path)
    given = None if worker_names == "pseudonyms" else worker_names
    secret, key_file = (None, {}) if worker_names == "ids" else find_secret(given, target.parent)
    origin = _provenance_of(type(model).__name__, seed=model.get_params().get("random_state"))
    run = make_run(
        model,
        reveal=worker_names == "ids",
        key=secret,
        title=title,
        truth=truth,
        answers=answers,
        classifier=classifier,
        groups=groups,
        provenance=origin,
    )
    contents = key_file | {target.name: _make_page(run).content}
    write_files(target.parent, contents, force=force)
    protect_secret(target.parent, contents)
    return target


class RunPage(NamedTuple):
    """A run, its panels, and the page that shows them."""

    run: Run
    report: Report
    content: bytes  # the HTML file


def _make_page(run: Run) -> RunPage:
    """Return the page of a run."""
    report = build(run)
    return RunPage(run, report, render_page(report, run_data(run, report)))


def _provenance_of(method: str, **known: Any) -> Provenance:
    """Return the provenance of a run that happens now."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(given), UTC) if given.isdigit() else datetime.now(UTC)
    versions = {"Python": platform.python_version(), "NumPy": np.__version__}
    return Provenance(__version__, method, created=now.strftime("%Y-%m-%d %H:%M UTC"), platform=versions, **known)


# ----------------------------------------------------------------------------------------------------
# `report_of`: the page of a run of the command line.

PAGE = "report.html"
MOST_WORKERS = 200  # in the page's table
_CHANGED = "without_flagged.csv"  # table of the labels that would be others without the flagged workers
_PLAIN = (None, "", "label", "answer")  # columns whose name says nothing about the question


def report_of(
    model: Aggregator,
    reading: Reading,
    figures: Mapping[str, Any],
    files: Sequence[str],
    tables: Mapping[str, pl.DataFrame],
    *,
    answers: Answers | None = None,
    truth: Mapping[Any, Any] | None = None,
    groups: Mapping[Any, str] | None = None,
    secret: bytes | None = None,
    reveal: bool = False,
    title: str | None = None,
    command: str | None = None,
    seed: int = 0,
    beside: Mapping[str, str] | None = None,
    guarded: bool = False,
) -> RunPage:
    """Return the page of a fitted method."""
    compared = None
    if "methods.csv" in tables:
        differences = tables["differences.csv"].to_dict(as_series=False)
        compared = ComparedMethods(tables["methods.csv"].to_dicts(), differences)
    names = dict(beside or {})
    name = title or (Path(reading.source).name + (f", {reading.question}" if reading.question not in _PLAIN else ""))
    run = make_run(
        model,
        reveal=reveal,
        key=secret,
        reading=reading,
        title=name,
        comparison=compared,
        answers=answers,
        trust=figures.get("trust"),
        truth=truth,
        groups=groups,
        without_flagged=_without_flagged(figures, tables, names),
        provenance=_provenance_of(str(figures["method"]), seed=seed, command=command, files=_checksums(files)),
        full_labels=None if labels_fit(model.annotations_) else names.get("labels.csv"),
        full_workers=names.get("workers.csv") if model.annotations_.n_workers > MOST_WORKERS else None,
        guarded=guarded,
    )
    return _make_page(run)


def _without_flagged(
    figures: Mapping[str, Any], tables: Mapping[str, pl.DataFrame], beside: Mapping[str, str]
) -> WithoutFlagged | None:
    """Return what the labels would be without the flagged workers."""
    refit = figures.get("without_flagged")
    if not refit:
        return None
    table, name = tables.get(_CHANGED), beside.get(_CHANGED)
    changed = [] if table is None else table.select("item", "label", "label_without").rows()
    return WithoutFlagged(refit["n_workers"], refit["n_labels"], refit["n_items"], changed, name)


def _checksums(files: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of every file that was read; folders and standard input have none."""
    checksums = {}
    for name in files:
        path = Path(name)
        if path.is_file():
            with path.open("rb") as file:
                checksums[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return checksums
