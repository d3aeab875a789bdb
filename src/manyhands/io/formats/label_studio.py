"""Label Studio: its JSON export here, its JSON-MIN and CSV exports in `label_studio_tables`.

Only the JSON export is complete. A task has annotations (``completions`` in old exports), drafts and predictions; each
has a list of results, and each result belongs to a control (``from_name``): a question. Exports to cloud storage are
one file per annotation, with the task inside.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.label_studio_results import read_results
from manyhands.io.formats.label_studio_tables import read_flat, recognise_flat
from manyhands.io.formats.label_studio_tasks import (
    Task,
    entries_of,
    id_of,
    is_annotation,
    item_finder,
    kind_of,
    results_of,
    scalar_text,
    tasks_of,
)
from manyhands.io.formats.label_studio_users import Users
from manyhands.io.messages import listed, shorten
from manyhands.io.read.documents import Document, Records
from manyhands.io.read.judgements import Collector, ColumnOptions, Judgements
from manyhands.io.read.times import parse_times
from manyhands.io.read.working_time import ROLE, seconds_of

_LISTS = ("annotations", "completions", "predictions")
_MAPPING = {"item": "id", "worker": "completed_by", "label": "result[].value", "time": "updated_at"}


def recognise(document: Document) -> str | None:
    """Recognise tasks with ``data`` and annotations, or a flat export with the columns that Label Studio adds.

    Parameters
    ----------
    document : Table, Records, Words or Folder
        A parsed file or folder.

    Returns
    -------
    str or None
        ``"label-studio"``, ``"label-studio-min"`` or ``"label-studio-csv"``; None for any other document.
    """
    if isinstance(document, Records):
        first = document.value if isinstance(document.value, dict) else document.first
        is_task = type(first.get("data")) is dict and any(type(first.get(key)) is list for key in _LISTS)
        if is_task or is_annotation(first):
            return "label-studio"
    return recognise_flat(document)


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read every annotation, draft and prediction as a row, and a row for each task without annotations.

    Parameters
    ----------
    document : Table, Records, Words or Folder
        A parsed file or folder.
    format_name : str
        Name of the format, as it was recognised or given.
    options : ColumnOptions
        Columns and question that the caller named.

    Returns
    -------
    Judgements
        One row per annotation, draft or prediction.

    Raises
    ------
    AnnotationError
        If the document is not of this format, or inconsistent.
    """
    options.refuse("worker", format_name, "completed_by" if format_name == "label-studio" else "annotator")
    if format_name != "label-studio":
        return read_flat(document, format_name, options)
    rows = _Rows(document.name)
    item_of, place = item_finder(document, options.item)
    for task in tasks_of(document):
        rows.add_task(task, item_of(task))
    mapping = _MAPPING | {"item": place}
    judgements = rows.judgements(mapping, document.notes if isinstance(document, Records) else {})
    return judgements if options.label is None else _only(judgements, options.label)


class _Rows:
    """Collects the rows of one export."""

    def __init__(self, source: str) -> None:
        """Start without rows."""
        self.source = source
        self.collected = Collector()
        self.times: list[str | None] = []
        self.seconds: list[Any] = []
        self.users = Users()
        self.authors: dict[bool, set[str]] = {False: set(), True: set()}  # of annotations; of drafts
        self.rejected = self.anchored = self.nameless = self.named = 0

    def add_task(self, task: Task, item: str | None) -> None:
        """Add the annotations, drafts and predictions of a task."""
        annotations = entries_of(task, "annotations", self.source) or entries_of(task, "completions", self.source)
        for annotation in annotations:
            if type(annotation) is not dict:
                raise AnnotationError(
                    f"{self.source}, task {id_of(task)}: {kind_of(annotation)} where an annotation should be. "
                    "Export annotations in full, not their ids."
                )
            self._add_annotation(task, item, annotation)
        if not annotations:
            self._add(item, None, {}, None, {})
        for key, author, reason in (("drafts", "user", "draft"), ("predictions", "model_version", "prediction")):
            for entry in entries_of(task, key, self.source) if key in task else ():
                entry = entry if type(entry) is dict else {}  # some exports name them by their ids alone
                answers, _, _ = read_results(results_of(entry, task, self.source))
                worker = self.users.name(entry.get(author))
                if reason == "draft":
                    self._meet(entry, worker, is_draft=True)
                self._add(item, worker, answers, reason, entry)

    def _add_annotation(self, task: Task, item: str | None, annotation: dict[str, Any]) -> None:
        """Add one annotation, with the reason if it does not count."""
        answers, regional, suggested = read_results(results_of(annotation, task, self.source), self.collected.others)
        worker = self.users.name(annotation.get("completed_by"))
        self._meet(annotation, worker, is_draft=False)
        reason = None
        if annotation.get("was_cancelled") is True or annotation.get("skipped") is True:
            reason = "skipped"
        elif annotation.get("ground_truth") is True:
            reason = "gold_account"
            self._add_gold(item, answers)
        elif regional and not answers:
            reason = "region"
        elif worker is None:
            reason = "no_worker"
            self.nameless += 1
        else:
            self.named += 1
            self.anchored += suggested
            self.rejected += "reviews" in annotation and _is_rejected(annotation["reviews"])
        self._add(item, worker, answers, reason, annotation)

    def _meet(self, entry: Task, author: str | None, *, is_draft: bool) -> None:
        """Keep the author of an annotation or a draft, and what links their number to their address."""
        self.users.meet(entry, author, is_draft=is_draft)
        if author is not None:
            self.authors[is_draft].add(author)

    def _add(self, item: str | None, worker: str | None, answers: Any, reason: str | None, entry: Task) -> None:
        """Add a row with its time."""
        time = entry.get("updated_at") or entry.get("created_at")
        self.times.append(time if type(time) is str else scalar_text(time))
        self.seconds.append(entry.get("lead_time"))
        self.collected.add(item, worker, answers, reason)

    def _add_gold(self, item: str | None, answers: dict[str, Any]) -> None:
        """Add the answers of a ground-truth annotation to the gold."""
        if item is None:
            return
        for question, answer in answers.items():
            known = self.collected.gold[question].get(item, ())
            new = (answer,) if isinstance(answer, str) else tuple(answer)
            self.collected.gold[question][item] = tuple(dict.fromkeys(known + new))

    def judgements(self, mapping: dict[str, str], notes: dict[str, str]) -> Judgements:
        """Return all rows, with users under one name."""
        worker, names = self.collected.worker, self.users.addresses()
        if names:
            self.collected.worker = [names.get(name, name) if name is not None else None for name in worker]
        time, time_notes = parse_times(pl.Series(self.times, dtype=pl.String))
        seconds, seconds_notes = seconds_of(self.seconds)
        notes = notes | time_notes | seconds_notes | self._notes()
        found = self.collected.judgements(
            self.source, "label-studio", mapping=mapping, notes=notes, refusal=self._refusal()
        )
        if seconds is not None:
            found = replace(found, seconds=seconds, mapping=mapping | {ROLE: "lead_time"})
        return replace(found, time=time)

    def _notes(self) -> dict[str, str]:
        """Return notes on workers with two names, suggestions and reviews."""
        notes = self.users.notes(self.authors[False], self.authors[True])
        if self.anchored:
            notes["suggested_answers"] = (
                f"{self.anchored} annotation(s) are unchanged suggestions of a model: not independent labels."
            )
        if self.rejected:
            notes["rejected_in_review"] = (
                f"{self.rejected} annotation(s) were rejected in a review; they count as labels."
            )
        return notes

    def _refusal(self) -> str | None:
        """Return why nothing can be aggregated, if so."""
        if self.nameless and not self.named:
            return (
                f"{self.source} does not name the workers of its annotations (completed_by). "
                "Export it again with a current version of Label Studio."
            )
        others = self.collected.others
        return others.refusal(self.source) if others and not self.collected.answers else None


def _only(judgements: Judgements, question: str) -> Judgements:
    """Keep the question that the caller named as the label."""
    if question not in judgements.answers:
        raise AnnotationError(
            f"{judgements.source} has no question {shorten(question)!r}. It has: {listed(list(judgements.answers))}."
        )
    return replace(judgements, answers={question: judgements.answers[question]})


def _is_rejected(reviews: Any) -> bool:
    """Whether a review rejected the annotation."""
    return type(reviews) is list and any(type(review) is dict and review.get("accepted") is False for review in reviews)
