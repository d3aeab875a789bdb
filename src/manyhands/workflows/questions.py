"""Exports with several questions: an overview of all, and the aggregation of each in a folder of its own."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from manyhands import metrics
from manyhands.exceptions import (
    AnnotationError,
    CrowdWarning,
    LimitError,
    ParameterError,
    SeveralQuestionsError,
    UnorderedClassesError,
)
from manyhands.io.messages import shorten
from manyhands.io.read.reading import Reading
from manyhands.io.write.results import to_csv
from manyhands.workflows.aggregation_runs import AggregationRun
from manyhands.workflows.memory_choice import choose_memory
from manyhands.workflows.options import ExportOptions
from manyhands.workflows.ordered_classes import NOTE, offer_order
from manyhands.workflows.outputs import Written, claim_folder, write_all

OVERVIEW = "questions.csv"
_MOST_CLASSES = 4  # names of classes that an overview shows


@dataclass(frozen=True, eq=False)
class QuestionRuns:
    """Result of `aggregate_questions`.

    Attributes
    ----------
    runs : dict of str to AggregationRun
        The run of each question that could be aggregated.
    table : polars.DataFrame
        ``questions.csv``: a row per question, with its folder and figures, or the reason why it was left out.
    written : Written
        The overview that was written beside the folders.
    """

    runs: dict[str, AggregationRun]
    table: pl.DataFrame
    written: Written


def _question_names(files: Sequence[str], export: ExportOptions) -> tuple[str, ...]:
    """Return the questions of an export if it has several and none was chosen.

    Parameters
    ----------
    files : sequence of str
        The export.
    export : ExportOptions
        How to read it.

    Returns
    -------
    tuple of str
        Names; empty if the export can be read as it is.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CrowdWarning)  # each question issues them again
            export.read(files)
    except SeveralQuestionsError as error:
        return error.questions
    return ()


def describe_questions(files: Sequence[str], export: ExportOptions, names: Sequence[str]) -> list[dict[str, Any]]:
    """Describe every question of an export in one row.

    Parameters
    ----------
    files : sequence of str
        The export.
    export : ExportOptions
        How to read it.
    names : sequence of str
        Its questions.

    Returns
    -------
    list of dict
        ``question``, ``labels``, ``items``, ``workers``, ``labels_per_item``, ``classes`` and ``agreement`` (share of
        equal labels among pairs of labels of an item), or ``reason``, why the question cannot be read as it is; and
        ``note`` if its classes look like the grades of a scale.
    """
    rows = []
    for name in names:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CrowdWarning)
                this = replace(export, question=name)
                reading = offer_order(this.read(files), "aggregate", files, this)
        except AnnotationError as error:
            rows.append({"question": name, "reason": str(error)})
        else:
            offer = {"note": reading.notes[NOTE]} if NOTE in reading.notes else {}
            rows.append({"question": name} | _describe(reading) | offer)
    return rows


def aggregate_questions(
    files: Sequence[str],
    export: ExportOptions,
    aggregate: Callable[[ExportOptions, Path], AggregationRun],
    *,
    out: str | Path | None,
    force: bool = False,
    max_memory: str | int | None = None,
) -> QuestionRuns:
    """Aggregate every question of an export into a folder of its own, and write an overview.

    Parameters
    ----------
    files : sequence of str
        The export.
    export : ExportOptions
        How to read it; without a question.
    aggregate : callable (ExportOptions, Path) -> AggregationRun
        Aggregates one question into a folder: `manyhands.workflows.aggregate` with its other options.
    out : str, Path or None
        Folder that gets one folder per question and ``questions.csv``.
    force : bool, default=False
        Replace files that exist.
    max_memory : str, int or None, default=None
        Limit such as "4GB", within which the whole export must fit; None for no limit.

    Returns
    -------
    QuestionRuns
        The runs and the overview.

    Raises
    ------
    ParameterError
        If a question is named as well, or there is no folder to write to.
    AnnotationError
        If no question can be aggregated.
    LimitError
        If the export does not fit into the limit.
    """
    if out is None or export.question is not None:
        what = "needs a folder to write to: add -o FOLDER" if out is None else "and --question exclude each other"
        raise ParameterError(f"--all-questions {what}.")
    if "-" in files:
        raise ParameterError("--all-questions reads the export once for each question: give a file, not -.")
    if max_memory is not None and not (choice := choose_memory(files, max_memory)).fits:
        raise LimitError(
            f"The export {choice.reason}, and a run out of core does not support --all-questions. Give a file with the "
            f"rows of one question."
        )
    names: tuple[str | None, ...] = _question_names(files, export) or (None,)
    runs: dict[str, AggregationRun] = {}
    rows: list[dict[str, Any]] = []
    with claim_folder(out, [OVERVIEW], force=force) as output:
        for name, folder in zip(names, _folder_names(names)):
            try:
                run = _aggregate_one(replace(export, question=name), aggregate, Path(out) / folder)
            except AnnotationError as error:
                rows.append({"question": name, "reason": str(error)})
                continue
            runs[run.reading.question] = run
            rows.append({"question": run.reading.question, "folder": folder} | _figures(run))
        if not runs:
            raise AnnotationError(f"No question could be aggregated. The first reason: {rows[0]['reason']}")
        table = pl.DataFrame(rows, infer_schema_length=None)
        written = write_all(output, {OVERVIEW: to_csv(table)})
    return QuestionRuns(runs, table, written)


def _aggregate_one(
    export: ExportOptions, aggregate: Callable[[ExportOptions, Path], AggregationRun], folder: Path
) -> AggregationRun:
    """Aggregate one question; --ordinal is meant for those questions whose classes have an order."""
    try:
        return aggregate(export, folder)
    except UnorderedClassesError:
        if export.order is not None:
            raise
        warnings.warn(
            f"unordered_question: The classes of {shorten(export.question or '')!r} have no known order, so it was "
            f"aggregated without one.",
            CrowdWarning,
            stacklevel=3,
        )
        return aggregate(replace(export, ordinal=False), folder)


def _describe(reading: Reading) -> dict[str, Any]:
    """Return the figures of one question."""
    if reading.refusal is not None:
        return {"reason": reading.refusal}
    votes = reading.annotations
    agreement = metrics.percent_agreement(votes, n_bootstrap=0).value if votes.n_annotations else math.nan
    classes = [str(name) for name in votes.classes.tolist()]
    more = f" and {len(classes) - _MOST_CLASSES} more" if len(classes) > _MOST_CLASSES else ""
    return {
        "labels": votes.n_annotations,
        "items": votes.n_items,
        "workers": votes.n_workers,
        "labels_per_item": round(votes.n_annotations / max(votes.n_items, 1), 2),
        "classes": ", ".join(classes[:_MOST_CLASSES]) + more,
        "agreement": None if math.isnan(agreement) else round(float(agreement), 3),
    }


def _figures(run: AggregationRun) -> dict[str, Any]:
    """Return the main figures of one run."""
    summary = run.summary
    return {
        "n_items": summary["n_items"],
        "n_classes": summary["n_classes"],
        "labels_per_item": summary["labels_per_item"],
        "share_above_0.9": summary["share_above_0.9"],
        "n_tied": summary["n_tied"],
    }


def _folder_names(names: Sequence[str | None]) -> list[str]:
    """Return a folder name for each question: its letters and digits, with a number where two would be the same."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"[^\w-]+", "-", name or "labels").strip("-")[:60] or "question"
        taken = sum(other.rpartition("-")[0] == plain or other == plain for other in found)
        found.append(plain if plain not in found else f"{plain}-{taken + 1}")
    return found
