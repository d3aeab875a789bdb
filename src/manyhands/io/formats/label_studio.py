"""Label Studio: its JSON export here, its JSON-MIN and CSV exports in `label_studio_tables`.

Only the JSON export keeps everything. A task has annotations (`completions` in old exports), drafts and predictions;
each has a list of results, and each result belongs to a control (`from_name`): a question. Cloud storages get one file
per annotation, with the task inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.label_studio_results import read_results
from manyhands.io.formats.label_studio_tables import read_flat, recognise_flat
from manyhands.io.messages import listed, shorten
from manyhands.io.read.documents import Document, Records
from manyhands.io.read.json_files import as_text
from manyhands.io.read.judgements import Collector, ColumnOptions, Judgements
from manyhands.io.read.times import parse_times

_LISTS = ("annotations", "completions", "predictions")
_MAPPING = {"item": "id", "worker": "completed_by", "label": "result[].value", "time": "updated_at"}
Task = dict[str, Any]


def recognise(document: Document) -> str | None:
    """Tasks with `data` and what was said of them, or a flat export with the columns that Label Studio adds."""
    if isinstance(document, Records):
        first = document.value if isinstance(document.value, dict) else document.first
        is_task = type(first.get("data")) is dict and any(type(first.get(key)) is list for key in _LISTS)
        if is_task or _is_annotation(first):
            return "label-studio"
    return recognise_flat(document)


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Every annotation, draft and prediction as a row, and a row for each task that has no annotation."""
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


def tasks_of(document: Document) -> Iterator[Task]:
    """The tasks of a JSON export; an annotation that stands alone becomes the only one of its task."""
    value = document.value if isinstance(document, Records) else None
    if not isinstance(value, list | dict):
        raise AnnotationError(f"{document.name} is not a JSON export of Label Studio. Leave --format out.")
    for at, task in enumerate(value if isinstance(value, list) else [value], start=1):
        if type(task) is not dict:
            what = f"{_kind_of(task)} where a task should be"
            raise AnnotationError(f"{document.name}, entry {at}: {what}. Export it again.")
        if _is_annotation(task):
            inner = task["task"] if type(task["task"]) is dict else {"id": task["task"]}
            task = {"id": inner.get("id"), "data": inner.get("data"), "annotations": [task]}
        yield task


def entries_of(task: Task, key: str, source: str) -> list[Any]:
    """A list in a task; empty where it is missing."""
    found = task.get(key)
    if found is None:
        return []
    if type(found) is not list:
        raise AnnotationError(f"{source}, task {_id(task)}: {key!r} is {_kind_of(found)}, not a list. Export it again.")
    return found


def results_of(entry: dict[str, Any], task: Task, source: str) -> list[Any]:
    """The results of an annotation, draft or prediction; empty where they are missing."""
    results = entry.get("result")
    if results is None:
        return []
    if type(results) is not list:
        where = f"{source}, task {_id(task)}, annotation {_id(entry)}"
        raise AnnotationError(f"{where}: 'result' is {_kind_of(results)}, not a list. Export it again.")
    return results


def item_finder(document: Document, wanted: str | None) -> tuple[Callable[[Task], str | None], str]:
    """From a task to its item, and where that stands: the task's id, or the key of its data that was named."""
    if wanted is None or wanted == "id":
        return lambda task: _scalar_text(task.get("id")), "id"
    key = wanted.removeprefix("data.")
    keys = list(dict.fromkeys(name for task in tasks_of(document) for name in _data(task)))
    if key not in keys:
        raise AnnotationError(f"{document.name} has no {wanted!r} in the data of its tasks. It has: {listed(keys)}.")

    def find(task: Task) -> str | None:
        found = _scalar_text(_data(task).get(key))
        if found is None:
            raise AnnotationError(
                f"{document.name}, task {_id(task)}: no {key!r} in its data, so it has no item. Take another --item."
            )
        return found

    return find, f"data.{key}"


class _Rows:
    """The rows of one export in the making."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.collected = Collector()
        self.times: list[str | None] = []
        self.names: dict[str, str] = {}  # the number of a user -> the e-mail address that stands for him elsewhere
        self.seen: dict[Any, str] = {}  # the same without making text of every number again
        self.numbers: dict[int, str] = {}  # users known by their number alone
        self.rejected = self.anchored = self.nameless = self.named = 0

    def add_task(self, task: Task, item: str | None) -> None:
        annotations = entries_of(task, "annotations", self.source) or entries_of(task, "completions", self.source)
        for annotation in annotations:
            if type(annotation) is not dict:
                raise AnnotationError(
                    f"{self.source}, task {_id(task)}: {_kind_of(annotation)} where an annotation should be. "
                    "Export annotations in full, not their ids."
                )
            self._add_annotation(task, item, annotation)
        if not annotations:
            self._add(item, None, {}, None, {})
        for key, author, reason in (("drafts", "user", "draft"), ("predictions", "model_version", "prediction")):
            for entry in entries_of(task, key, self.source) if key in task else ():
                entry = entry if type(entry) is dict else {}  # some exports name them by their ids alone
                answers, _, _ = read_results(results_of(entry, task, self.source))
                self._add(item, self._worker(entry.get(author)), answers, reason, entry)

    def _add_annotation(self, task: Task, item: str | None, annotation: dict[str, Any]) -> None:
        answers, regional, suggested = read_results(results_of(annotation, task, self.source))
        worker = self._worker(annotation.get("completed_by"))
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

    def _add(self, item: str | None, worker: str | None, answers: Any, reason: str | None, entry: Task) -> None:
        time = entry.get("updated_at") or entry.get("created_at")
        self.times.append(time if type(time) is str else _scalar_text(time))
        self.collected.add(item, worker, answers, reason)

    def _add_gold(self, item: str | None, answers: dict[str, Any]) -> None:
        if item is None:
            return
        for question, answer in answers.items():
            known = self.collected.gold[question].get(item, ())
            new = (answer,) if isinstance(answer, str) else tuple(answer)
            self.collected.gold[question][item] = tuple(dict.fromkeys(known + new))

    def _worker(self, user: Any) -> str | None:
        """A user's e-mail address where the export has it, otherwise his number."""
        if type(user) is int:
            return self.numbers.get(user) or self.numbers.setdefault(user, str(user))
        if type(user) is not dict:
            return _name(user)
        number, address = user.get("id"), user.get("email")
        quick = type(number) is int and type(address) is str
        if quick and self.seen.get(number) == address:
            return str(address)
        number_text, name = _name(number), _name(address)
        if number_text and name:
            self.names[number_text] = name
            self.seen |= {number: name} if quick else {}
        return name or number_text

    def judgements(self, mapping: dict[str, str], notes: dict[str, str]) -> Judgements:
        worker = self.collected.worker
        if self.names:
            self.collected.worker = [self.names.get(name, name) if name is not None else None for name in worker]
        time, time_notes = parse_times(pl.Series(self.times, dtype=pl.String))
        notes = notes | time_notes | self._notes()
        found = self.collected.judgements(
            self.source, "label-studio", mapping=mapping, notes=notes, refusal=self._refusal()
        )
        return replace(found, time=time)

    def _notes(self) -> dict[str, str]:
        notes = {}
        if self.anchored:
            notes["suggested_answers"] = (
                f"{self.anchored} annotation(s) take over a model's suggestion unchanged: no independent votes."
            )
        if self.rejected:
            notes["rejected_in_review"] = f"{self.rejected} annotation(s) were rejected in a review, and yet count."
        return notes

    def _refusal(self) -> str | None:
        if self.nameless and not self.named:
            return (
                f"{self.source} does not say who made its annotations (completed_by), so workers cannot be told apart. "
                "Export it again with a present version of Label Studio."
            )
        if not self.collected.answers and "region" in self.collected.reason:
            return (
                f"{self.source} has answers on parts of items alone (regions, spans, boxes). "
                "manyhands reads labels of whole items: choices, ratings, taxonomies, numbers."
            )
        return None


def _only(judgements: Judgements, question: str) -> Judgements:
    """The one question that was named as the label."""
    if question not in judgements.answers:
        raise AnnotationError(
            f"{judgements.source} has no question {shorten(question)!r}. It has: {listed(list(judgements.answers))}."
        )
    return replace(judgements, answers={question: judgements.answers[question]})


def _is_annotation(entry: dict[str, Any]) -> bool:
    """Whether an object is an annotation by itself, as cloud storages get them."""
    return "result" in entry and "task" in entry and "completed_by" in entry and type(entry["result"]) is list


def _is_rejected(reviews: Any) -> bool:
    return type(reviews) is list and any(type(review) is dict and review.get("accepted") is False for review in reviews)


def _data(task: Task) -> dict[str, Any]:
    data = task.get("data")
    return data if type(data) is dict else {}


def _scalar_text(value: Any) -> str | None:
    if type(value) is str:
        return value
    return as_text(value) if isinstance(value, str | int | float) else None


def _name(value: Any) -> str | None:
    """The name of a worker, which is never blank."""
    name = _scalar_text(value)
    return name if name and not name.isspace() else None


def _id(entry: Task) -> str:
    return shorten(_scalar_text(entry.get("id")) or "without an id")


def _kind_of(value: Any) -> str:
    """A JSON value in a few words."""
    kinds = {dict: "an object", list: "a list", str: "text", bool: "a truth value", type(None): "null"}
    return kinds.get(type(value), "a number")
