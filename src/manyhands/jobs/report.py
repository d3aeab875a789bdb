"""`report`: from an export to one HTML page with labels, workers and what to do next."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from manyhands import registry
from manyhands._core.writing import claim
from manyhands.exceptions import AnnotationError, CrowdWarning, ParameterError
from manyhands.io.messages import counted, shorten
from manyhands.io.questions import read_answers
from manyhands.io.reading import Reading
from manyhands.io.side_tables import open_table, read_truth
from manyhands.io.write.pseudonyms import protect_secret
from manyhands.io.write.results import guard_table, label_frame, to_csv, worker_frame
from manyhands.jobs.aggregate import WITHOUT_FLAGGED, chosen_method, default_for_verdicts, fit_reading
from manyhands.jobs.options import (
    DEFAULT_EXPORT,
    IDS,
    PSEUDONYMS,
    ExportOptions,
    Written,
    check_seed,
    check_worker_names,
    claim_file,
    collect_gold,
    offer_order,
    require_labels,
    require_workers,
    secret_of,
    write_all,
)
from manyhands.report.changes import compare_runs, read_run
from manyhands.report.html import render_page
from manyhands.report.page import report_of
from manyhands.report.panels.workers import MOST_CHANGED
from manyhands.report.run import Report, Run

# ----------------------------------------------------------------------------------------------------
# `report_change`: what changed between two reports.


def is_page(name: str | Path) -> bool:
    """Whether a file is a page by its name.

    Parameters
    ----------
    name : str or Path
        Name of the file.

    Returns
    -------
    bool
        True for .html and .htm.
    """
    return Path(name).suffix.lower() in (".html", ".htm")


def report_change(
    pages: Sequence[str | Path], *, out: str | Path, force: bool = False
) -> tuple[Report, dict[str, Any], Written]:
    """Write a page that shows what changed from one report to another.

    Parameters
    ----------
    pages : sequence of str or Path
        Two reports, the earlier one first.
    out : str or Path
        The page to write.
    force : bool, default=False
        Replace the page if it exists.

    Returns
    -------
    report : Report
        The panels.
    data : dict
        Their main numbers.
    written : Written
        Name of the page.

    Raises
    ------
    ParameterError
        If there are not two pages.
    AnnotationError
        If a page is no report of manyhands.
    """
    if len(pages) != 2:
        raise ParameterError(f"Two reports can be compared, the earlier one first; {len(pages)} were given.")
    if not is_page(out):
        raise ParameterError(f"{out} is not the name of a page: end it in .html.")
    with claim_file(out, force=force) as output:
        before, after = (read_run(page) for page in pages)
        change, data = compare_runs(before, after, (Path(pages[0]).name, Path(pages[1]).name))
        written = write_all(output, {Path(out).name: render_page(change, data)})
    return change, data, written


# ----------------------------------------------------------------------------------------------------
# Groups of workers that a report compares: from a table, or from a column of the export.

FEWEST = 2  # workers of a group that is compared, and groups


def groups_of_workers(
    reading: Reading, table: str | Path | None, column: str | None
) -> tuple[Reading, dict[Any, str] | None]:
    """Return the group of each worker."""
    if table is None and column is None:
        return reading, None
    workers = reading.annotations.worker_ids.tolist()
    group_of = reading.groups if table is None else _from_table(table, reading)
    groups = {worker: group_of[str(worker)] for worker in workers if str(worker) in group_of}
    has_labels = np.bincount(reading.annotations.worker, minlength=len(workers)) > 0
    sizes = Counter(groups[worker] for worker, given in zip(workers, has_labels) if given and worker in groups)
    if sum(size >= FEWEST for size in sizes.values()) >= FEWEST:
        return reading, groups
    sizes_text = ", ".join(f"{shorten(name)} ({size})" for name, size in sizes.most_common(3)) or "none"
    what = f"column {shorten(str(column))!r}" if table is None else f"table {table}"
    sentence = (
        f"The {what} divides the workers with labels into {counted(len(sizes), 'group')} (workers in the largest: "
        f"{sizes_text}); a comparison needs two groups of two workers or more, so there is none."
    )
    warnings.warn(f"one_group: {sentence}", CrowdWarning, stacklevel=2)
    return replace(reading, notes=reading.notes | {"one_group": sentence}), groups


def _from_table(path: str | Path, reading: Reading) -> dict[str, str]:
    """Return the group of each worker of the export; the column of workers is the one that holds their ids."""
    table = open_table(path, "groups")
    worker_ids = set(map(str, reading.annotations.worker_ids.tolist()))
    columns = [table.column(at).to_list() for at in range(len(table.header))]
    hits = [sum(value in worker_ids for value in column) for column in columns]
    if not any(hits):
        raise AnnotationError(f"{path} names no worker of {reading.source}: a column must hold their ids.")
    at = hits.index(max(hits))
    others = [column for place, column in enumerate(columns) if place != at]
    if len(others) != 1:
        others_text = counted(len(others), "column")
        raise AnnotationError(f"{path} has {others_text} beside that of the workers: keep one, that of the groups.")
    return {worker: str(group) for worker, group in zip(columns[at], others[0]) if group and worker in worker_ids}


# ----------------------------------------------------------------------------------------------------
# `report`: the page of one export.


@dataclass(frozen=True, eq=False)
class ReportRun:
    """Result of `report`.

    Attributes
    ----------
    run : Run
        What the page shows.
    report : Report
        Its panels.
    page : bytes
        The page.
    written : Written
        Names of the files that were written.
    """

    run: Run
    report: Report
    page: bytes
    written: Written


def report(
    files: Sequence[str],
    export: ExportOptions = DEFAULT_EXPORT,
    *,
    out: str | Path,
    method: str | None = None,
    gold: str | Path | None = None,
    use_gold: bool = False,
    answers: Sequence[str | Path] = (),
    truth: str | Path | None = None,
    compare: bool = False,
    worker_names: str | Path = PSEUDONYMS,
    groups: str | Path | None = None,
    group_column: str | None = None,
    title: str | None = None,
    command: str | None = None,
    random_state: int = 0,
    force: bool = False,
) -> ReportRun:
    """Read an export, infer one label per item, and write a page that shows the result.

    Parameters
    ----------
    files : sequence of str
        The export.
    export : ExportOptions, default=ExportOptions()
        How to read it.
    out : str or Path
        The page to write. Tables that are too large for it are written beside it as CSV, and so is the key of the
        pseudonyms, unless it exists.
    method : str or None, default=None
        Registry name of an aggregator; None is "pooled-dawid-skene", and "ordinal-dawid-skene" for ordered classes.
    gold : str, Path or None, default=None
        Table of items whose class is known; they enter the fit.
    use_gold : bool, default=False
        Use the known answers of the export itself.
    answers : sequence of str or Path, default=()
        Files of questions that an expert answered; they enter the fit and may select the method.
    truth : str, Path or None, default=None
        Table of items whose class is known; it does not enter the fit and only evaluates.
    compare : bool, default=False
        Fit and cross-validate all other aggregators too.
    worker_names : {"pseudonyms", "ids"}, str or Path, default="pseudonyms"
        How workers are named: by pseudonyms from the key file ``manyhands.key`` beside the page, which is created; by
        their ids; or by the pseudonyms of another key file.
    groups : str, Path or None, default=None
        Table with a column of workers and one of their groups.
    group_column : str or None, default=None
        Column of the export that describes workers, such as their country or team.
    title : str or None, default=None
        Name of the data; None for that of the file and its question.
    command : str or None, default=None
        The command line, for the record.
    random_state : int, default=0
        Seed.
    force : bool, default=False
        Replace files that exist.

    Returns
    -------
    ReportRun
        The panels and names of the files.

    Raises
    ------
    ParameterError
        If an option is invalid.
    AnnotationError
        If the export cannot be read or has no labels.
    """
    name = chosen_method(method, export)
    check_seed(random_state)
    export.check()
    path = Path(out)
    check_worker_names(worker_names)
    _check_options(path, groups=groups, group_column=group_column)
    beside = {name: f"{path.stem}-{name}" for name in ("labels.csv", "workers.csv", WITHOUT_FLAGGED)}
    with claim(path.parent, [path.name, *beside.values()], force=force, manifest=False) as output:
        reading = export.read(files, item_fields=True, times=True, group_column=group_column, method=method)
        require_labels(reading)
        if name != registry.DEFAULT_ORDINAL:
            reading = offer_order(reading)
        if method is None:
            name, reading = default_for_verdicts(name, reading)
        require_workers(reading, "there are no workers that a report could show")
        reading, grouped = groups_of_workers(reading, groups, group_column)
        gold_of_items = collect_gold(reading, gold, use_gold)
        renamed, left_out = reading.renamed.get("label"), reading.left_out_items
        answered = read_answers(answers, reading.annotations, renamed, left_out) if answers else None
        evaluated = None if truth is None else _truth(truth, reading)
        model, tables, figures = fit_reading(
            reading, name, gold_of_items, answers=answered, compare=compare, random_state=random_state
        )
        reveal = worker_names == IDS
        secret, contents = secret_of(worker_names, path.parent)
        page = report_of(
            model,
            reading,
            figures,
            files,
            tables,
            answers=answered,
            truth=evaluated,
            groups=grouped,
            secret=secret,
            reveal=reveal,
            title=title,
            command=command,
            seed=random_state,
            beside=beside,
            guarded=True,
        )
        contents |= {path.name: page.content} | _full_tables(page.run, beside)
        if WITHOUT_FLAGGED in tables and len(tables[WITHOUT_FLAGGED]) > MOST_CHANGED:
            contents[beside[WITHOUT_FLAGGED]] = to_csv(guard_table(tables[WITHOUT_FLAGGED]))
        written = write_all(output, contents)
        protect_secret(path.parent, contents)
    return ReportRun(*page, written)


def _check_options(path: Path, *, groups: str | Path | None, group_column: str | None) -> None:
    """Refuse a name that is not that of a page, and options that contradict each other."""
    if not is_page(path):
        raise ParameterError(f"{path} is not the name of a page: end it in .html.")
    if groups is not None and group_column is not None:
        raise ParameterError("`groups` and `group_column` both name the groups of workers: give only one of them.")


def _full_tables(run: Run, beside: Mapping[str, str]) -> dict[str, bytes]:
    """Return the tables that are too large for the page, by the names of the files beside it."""
    tables = {}
    if run.full_labels is not None:
        tables[beside["labels.csv"]] = to_csv(guard_table(label_frame(run.model, "polars")))
    if run.full_workers is not None:
        table = worker_frame(run.model, "polars", reading=run.reading, cards=run.cards)
        tables[beside["workers.csv"]] = to_csv(guard_table(table))
    return tables


def _truth(path: str | Path, reading: Reading) -> dict[Any, Any]:
    """Return the known class of items of the export."""
    truth_of = read_truth(path)
    items = set(reading.annotations.item_ids.tolist())
    return {item: label for item, label in truth_of.items() if item in items}
