"""Label Studio: its JSON export, and its JSON-MIN and CSV exports.

Only the JSON export is complete. A task has annotations (``completions`` in old exports), drafts and predictions; each
has a list of results, and each result belongs to a control (``from_name``): a question. Exports to cloud storage are
one file per annotation, with the task inside.

The file: `recognise`, `read` and the rows of a JSON export; results (also for writing predictions back); flat exports;
tasks; users.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import orjson
import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io import documents
from manyhands.io.documents import Document, Records, Table, as_text
from manyhands.io.formats.long import objects_as_table
from manyhands.io.judgements import (
    FREE_TEXT,
    OTHERS,
    RANKINGS,
    RELATIONS,
    ROLE,
    Collector,
    ColumnOptions,
    Judgements,
    OtherKinds,
    find_column,
    find_seconds,
    kind_of_mark,
    parse_times,
    seconds_of,
)
from manyhands.io.messages import counted, listed, shorten, split_question

_LISTS = ("annotations", "completions", "predictions")
_MAPPING = {"item": "id", "worker": "completed_by", "label": "result[].value", "time": "updated_at"}


def recognise(document: Document) -> str | None:
    """Recognise tasks with ``data`` and annotations, or a flat export with the columns that Label Studio adds."""
    if isinstance(document, Records):
        first = document.value if isinstance(document.value, dict) else document.first
        is_task = type(first.get("data")) is dict and any(type(first.get(key)) is list for key in _LISTS)
        if is_task or _is_annotation(first):
            return "label-studio"
    return _recognise_flat(document)


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read every annotation, draft and prediction as a row, and a row for each task without annotations."""
    options.refuse("worker", format_name, "completed_by" if format_name == "label-studio" else "annotator")
    if format_name != "label-studio":
        return _read_flat(document, format_name, options)
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

    def add_task(self, task: _Task, item: str | None) -> None:
        """Add the annotations, drafts and predictions of a task."""
        annotations = entries_of(task, "annotations", self.source) or entries_of(task, "completions", self.source)
        for annotation in annotations:
            if type(annotation) is not dict:
                raise AnnotationError(
                    f"{self.source}, task {_id_of(task)}: {_kind_of(annotation)} where an annotation should be. "
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

    def _add_annotation(self, task: _Task, item: str | None, annotation: dict[str, Any]) -> None:
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

    def _meet(self, entry: _Task, author: str | None, *, is_draft: bool) -> None:
        """Keep the author of an annotation or a draft, and what links their number to their address."""
        self.users.meet(entry, author, is_draft=is_draft)
        if author is not None:
            self.authors[is_draft].add(author)

    def _add(self, item: str | None, worker: str | None, answers: Any, reason: str | None, entry: _Task) -> None:
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
            labels = self.collected.gold[question].get(item, ())
            new = (answer,) if isinstance(answer, str) else tuple(answer)
            self.collected.gold[question][item] = tuple(dict.fromkeys(labels + new))

    def judgements(self, mapping: dict[str, str], notes: dict[str, str]) -> Judgements:
        """Return all rows, with users under one name."""
        worker, names = self.collected.worker, self.users.addresses()
        if names:
            self.collected.worker = [names.get(name, name) if name is not None else None for name in worker]
        time, time_notes = parse_times(pl.Series(self.times, dtype=pl.String))
        seconds, seconds_notes = seconds_of(self.seconds)
        notes = notes | time_notes | seconds_notes | self._notes()
        rows = self.collected.judgements(
            self.source, "label-studio", mapping=mapping, notes=notes, refusal=self._refusal()
        )
        if seconds is not None:
            rows = replace(rows, seconds=seconds, mapping=mapping | {ROLE: "lead_time"})
        return replace(rows, time=time)

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


# ----------------------------------------------------------------------------------------------------
# Results of a Label Studio annotation: from the values of its controls to answers, and back.

Answer = str | list[str]

# Type of a result that answers a question -> key of the answer in its value.
VALUE_KEYS = {name: name for name in ("choices", "rating", "taxonomy", "number")} | {"pairwise": "selected"}
_BETWEEN_LEVELS = " > "
# Keys that place a value on a part of the item: text, audio and time series, images, video.
_ON_A_LINE = {"start", "end", "startOffset", "endOffset", "globalOffsets", "instant", "ranges", "timeserieslabels"}
_ON_A_PLANE = {"x", "y", "width", "height", "points", "vertices", "rle", "radiusX", "radiusY", "bbox", "sequence"}
_REGION_KEYS = frozenset(_ON_A_LINE | _ON_A_PLANE)
_OTHER_TYPES = {"textarea": FREE_TEXT, "ranker": RANKINGS, "relation": RELATIONS}


def read_results(results: list[Any], others: OtherKinds | None = None) -> tuple[dict[str, Answer], bool, bool]:
    """Return the answers about the whole item.

    Results that are not answers, such as free text, are counted, and so are values that do not match their type.
    """
    answers: dict[str, Answer] = {}
    regional = suggested = False
    for result in results:
        if type(result) is not dict:
            continue
        value, kind, name = result.get("value"), result.get("type"), result.get("from_name")
        is_region = type(value) is dict and len(value) > 1 and not _REGION_KEYS.isdisjoint(value)
        if is_region or type(kind) is not str or type(name) is not str or kind not in VALUE_KEYS:
            regional = regional or is_region
            if others is not None:
                _count(result, others)
            continue
        if type(value) is not dict:
            continue
        answer = value.get(VALUE_KEYS[kind])
        if kind == "choices" and type(answer) is list and len(answer) == 1 and type(answer[0]) is str:
            answer = answer[0]  # by far the most usual answer
        else:
            answer = as_answer(answer)
        if answer:
            answers[name] = answer if name not in answers else _as_list(answers[name]) + _as_list(answer)
            suggested = suggested or result.get("origin") == "prediction"
    return answers, regional, suggested


def _count(result: dict[str, Any], others: OtherKinds) -> None:
    """Count a result that does not answer a question about the whole item."""
    value, kind, name = result.get("value"), result.get("type"), result.get("from_name")
    kind_of_value = _OTHER_TYPES.get(kind) if type(kind) is str else None
    if kind_of_value is None and type(value) is dict:
        kind_of_value = kind_of_mark(value) or (OTHERS if not _REGION_KEYS.isdisjoint(value) else None)
    if kind_of_value is not None:
        others.add(kind_of_value, name if type(name) is str else None)


def as_answer(value: Any) -> Answer | None:
    """Return a JSON value as an answer.

    Examples
    --------
    >>> as_answer(4), as_answer(["a"]), as_answer([["food"], ["food", "fruit"]]), as_answer({})
    ('4', 'a', 'food > fruit', None)
    """
    if type(value) is not list:
        return _scalar(value)
    paths = [tuple(entry) if type(entry) is list else (entry,) for entry in value]
    texts = [tuple(map(_scalar, path)) for path in paths]
    whole = [path for path in texts if path and all(path)]
    begun = {path[:length] for path in whole for length in range(1, len(path))}  # parents that lead to a deeper choice
    answers = [_BETWEEN_LEVELS.join(map(str, path)) for path in dict.fromkeys(whole) if path not in begun]
    return answers[0] if len(answers) == 1 else answers or None


def as_value(kind: str, label: str) -> dict[str, Any]:
    """Return the value of a result that gives this label; `read_results` is the inverse."""
    if kind == "choices":
        return {"choices": [label]}
    if kind == "taxonomy":
        return {"taxonomy": [label.split(_BETWEEN_LEVELS)]}
    return {VALUE_KEYS[kind]: _number(label) if kind in ("rating", "number") else label}


def _scalar(value: Any) -> str | None:
    """Return a scalar as text; None for anything else."""
    return as_text(value) if isinstance(value, str | int | float) else None


def _as_list(answer: Answer) -> list[str]:
    """Return an answer as a list of choices."""
    return [answer] if isinstance(answer, str) else answer


def _number(label: str) -> int | float | str:
    """Return a label as a number, if its text is that of the number."""
    for convert in (int, float):
        try:
            number = convert(label)
        except ValueError:
            continue
        if as_text(number) == label:
            return number
    return label


# ----------------------------------------------------------------------------------------------------
# Label Studio's JSON-MIN and CSV exports: one row per annotation, one column per question and per key of the data.
#
# Questions are not marked, so they are recognised by their content: an answer is an object, differs between two
# annotations of one task, and is empty without an annotation. Columns that remain unclear are offered as questions.

_MARKS = {"id", "annotator", "annotation_id"}
_TIMES = ("updated_at", "created_at")
ADDED_COLUMNS = _MARKS | {
    *_TIMES,
    "lead_time",
    "agreement",
    "history",
    "inner_id",
    "project",
    "draft_created_at",
    "unique_id",
}
DATA_PREFIX = "_data_"  # prefix of a key of the data that has the name of a question
_ANSWER_KEYS = frozenset(VALUE_KEYS.values())
_LOST = (
    "This export lacks skipped annotations, drafts and reviews, and does not mark which annotations are the ground "
    "truth. Export JSON to have all of them."
)


def _recognise_flat(document: Document) -> str | None:
    """Recognise a table or a list of flat objects with the columns that Label Studio adds to every task."""
    if isinstance(document, Table):
        return "label-studio-csv" if _has_marks(document.header) else None
    if isinstance(document, Records) and _has_marks(document.first):
        return "label-studio-min"
    return None


def _read_flat(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read every annotation as a row; a task without one is a row without a worker."""
    table = _as_table(document)
    cells = {name: _blank_as_null(table.column(at)) for at, name in enumerate(table.header)}
    item_column = "id"
    if options.item is not None:
        at = find_column(table.header, options.item.removeprefix("data."), "item", table.name)
        item_column = table.header[at]
    answers, regional = _find_questions(table.name, cells, options)
    time_column = next((name for name in _TIMES if name in cells), None)
    time, notes = parse_times(cells[time_column]) if time_column else (None, {})
    seconds, seconds_mapping, unread = find_seconds(table, ())
    reason = _reasons(cells, answers, regional)
    others = _other_kinds(cells, regional)
    return Judgements(
        table.name,
        format_name,
        item=cells[item_column],
        worker=cells["annotator"],
        answers=answers,
        reason=reason,
        time=time,
        seconds=seconds,
        mapping=_mapping(item_column, list(answers), time_column) | seconds_mapping,
        notes=(document.notes if isinstance(document, Records) else {})
        | notes
        | unread
        | _notes(cells["annotator"])
        | (others.notes(table.name) if answers else {}),
        refusal=others.refusal(table.name) if others and not answers else None,
    )


def _has_marks(names: Any) -> bool:
    """Whether the names include the columns that Label Studio adds."""
    return set(names) >= _MARKS and any(name in names for name in (*_TIMES, "lead_time"))


def _as_table(document: Document) -> Table:
    """Return the export as a table."""
    if isinstance(document, Records) and document.objects:
        document = objects_as_table(document.name, document.objects)
    if not isinstance(document, Table) or not _has_marks(document.header):
        raise AnnotationError(
            f"{document.name} is not a JSON-MIN or CSV export of Label Studio: it lacks the columns "
            f"{', '.join(sorted(_MARKS))}. Leave `format` out."
        )
    return document


def _blank_as_null(column: pl.Series) -> pl.Series:
    """Replace blank cells by null."""
    stripped = column.str.strip_chars()
    return column if (stripped != "").all() else column.set(stripped == "", None)


def _find_questions(
    source: str, cells: dict[str, pl.Series], options: ColumnOptions
) -> tuple[dict[str, pl.Series], list[str]]:
    """Return the answers by question, and the columns with labels on parts of items."""
    others = [name for name in cells if name not in ADDED_COLUMNS and not name.startswith(DATA_PREFIX)]
    wanted = _wanted(source, list(cells), options)
    if options.label is not None:
        return {str(wanted): _answers(cells[str(wanted)])}, []
    unlabelled = cells["annotator"].is_null()
    differs, several = _within_tasks(cells, others)
    certain, unclear, constant, regional = [], [], [], []
    for name in others:
        column = cells[name]
        if column.filter(unlabelled).count() or not column.count():
            continue  # data: a task has it without an annotation
        kinds = {_kind(cell) for cell in _structured(column)}
        if "region" in kinds:
            regional.append(name)
        elif "answer" in kinds or name in differs:
            certain.append(name)
        elif several and not unlabelled.any():
            constant.append(name)
        else:
            unclear.append(name)
    questions = certain + unclear or ([] if regional else constant)
    return {name: _answers(cells[name]) for name in cells if name in questions or name == wanted}, regional


def _wanted(source: str, header: Sequence[str], options: ColumnOptions) -> str | None:
    """Return the column that the caller named as the question or the label."""
    if options.label is not None:
        return header[find_column(header, options.label, "label", source)]
    if options.question is None:
        return None
    question_and_choice = split_question(options.question, header)
    return None if question_and_choice is None else question_and_choice[0]


def _within_tasks(cells: dict[str, pl.Series], names: Sequence[str]) -> tuple[set[str], bool]:
    """Return the columns that differ between two annotations of a task, and whether any task has two."""
    columns = [cells[name].rename(str(at)) for at, name in enumerate(names)]
    rows = pl.DataFrame([cells["id"].rename("id"), *columns]).filter(cells["annotator"].is_not_null())
    by_task = rows.group_by("id").agg(pl.len().alias("rows"), pl.exclude("id").n_unique()).filter(pl.col("rows") > 1)
    different = {name for at, name in enumerate(names) if (by_task[str(at)] > 1).any()}
    return different, len(by_task) > 0


def _structured(column: pl.Series) -> list[Any]:
    """Return the parsed cells that are JSON objects or lists, each once."""
    texts = column.filter(column.str.contains(r"^\s*[\[{]")).unique()
    return [value for value in map(_parsed, texts) if value is not None]


def _parsed(text: str) -> Any:
    """Parse a cell; None if it is not a JSON object or list."""
    try:
        value = documents.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict | list) else None


def _kind(cell: Any) -> str | None:
    """Return whether a cell labels a part of the item ("region"), answers a question ("answer"), or neither."""
    if _is_path(cell):
        return "answer"
    entries = [entry for entry in (cell if isinstance(cell, list) else [cell]) if isinstance(entry, dict)]
    if any(len(entry) > 1 and not _REGION_KEYS.isdisjoint(entry) for entry in entries):
        return "region"
    return "answer" if any(not _ANSWER_KEYS.isdisjoint(entry) for entry in entries) else None


def _is_path(cell: Any) -> bool:
    """Whether a cell holds choices of a taxonomy, each as a path: [["Animals","Dog"]]."""
    return (
        isinstance(cell, list)
        and bool(cell)
        and all(isinstance(path, list) and path and all(isinstance(step, str) for step in path) for path in cell)
    )


def _answers(column: pl.Series) -> pl.Series:
    """Return a column of answers: text, or lists of text if some cell holds several choices."""
    texts = column.unique().drop_nulls().to_list()
    read = {text: _read_cell(text) for text in texts if text.lstrip()[:1] in ("{", "[")}
    if not read:
        return column
    if any(isinstance(answer, list) for answer in read.values()):
        lists = {text: [answer] if isinstance(answer, str) else answer for text, answer in read.items()}
        return pl.Series(
            [None if text is None else lists.get(text, [text]) for text in column], dtype=pl.List(pl.String)
        )
    return column.replace(read)


def _read_cell(text: str) -> Answer | None:
    """Return the answer in a JSON cell; any other cell is returned as text."""
    value = _parsed(text)
    if _is_path(value) or (isinstance(value, list) and value and all(isinstance(entry, str) for entry in value)):
        return as_answer(value)
    if _kind(value) != "answer":
        return text
    answers: list[str] = []
    for entry in value if isinstance(value, list) else [value]:
        keys = [key for key in entry if key in _ANSWER_KEYS] if isinstance(entry, dict) else []
        for answer in [as_answer(entry[key]) for key in keys] or [as_answer(entry)]:
            answers += [] if answer is None else [answer] if isinstance(answer, str) else answer
    return answers[0] if len(answers) == 1 else answers or None


def _reasons(cells: dict[str, pl.Series], answers: dict[str, pl.Series], regional: Sequence[str]) -> pl.Series | None:
    """Return "region" for annotations on parts of items only, and "no_worker" for those without an author."""
    nothing = pl.Series([False], dtype=pl.Boolean).new_from_index(0, len(cells["id"]))
    somewhere, answered = nothing, nothing
    for name in regional:
        somewhere = somewhere | cells[name].is_not_null()
    for column in answers.values():
        answered = answered | column.is_not_null()
    nameless = cells["annotator"].is_null() & cells["annotation_id"].is_not_null()
    rows = pl.DataFrame({"region": somewhere & ~answered, "no_worker": nameless})
    if not any(rows.select(pl.all().any()).row(0)):
        return None
    reason = pl.when("region").then(pl.lit("region")).when("no_worker").then(pl.lit("no_worker"))
    return rows.select(reason.alias("reason")).to_series()


def _mapping(item: str, questions: list[str], time: str | None) -> dict[str, str]:
    """Return where item, worker, label and time were found."""
    mapping = {"item": item, "worker": "annotator", "label": listed(questions)}
    return mapping if time is None else mapping | {"time": time}


def _notes(workers: pl.Series) -> dict[str, str]:
    """Return notes on what the export lacks, and on workers with two kinds of ids."""
    notes = {"incomplete_export": _LOST}
    ids = workers.unique().drop_nulls()
    numbers, addresses = ids.filter(ids.str.contains(r"^\d+$")), ids.filter(ids.str.contains("@"))
    if len(numbers) and len(addresses):
        notes["mixed_worker_ids"] = (
            f"{len(numbers)} worker(s) are numbers and {len(addresses)} are e-mail addresses; "
            "one person may be both. Export JSON, which has both for each worker."
        )
    return notes


def _other_kinds(cells: dict[str, pl.Series], regional: Sequence[str]) -> OtherKinds:
    """Return what the columns with labels on parts of items have: spans, boxes, ..."""
    others = OtherKinds()
    for name in regional:
        kinds = [kind for cell in _structured(cells[name]) if (kind := kind_of_mark(cell)) is not None]
        others.add(kinds[0] if kinds else OTHERS, name)
    return others


# ----------------------------------------------------------------------------------------------------
# Tasks of a Label Studio JSON export: their annotations, results and items.

_Task = dict[str, Any]


def tasks_of(document: Document) -> Iterator[_Task]:
    """Yield the tasks of a JSON export; a single annotation becomes the only one of its task."""
    value = document.value if isinstance(document, Records) else None
    if not isinstance(value, list | dict):
        raise AnnotationError(f"{document.name} is not a JSON export of Label Studio. Leave `format` out.")
    for at, task in enumerate(value if isinstance(value, list) else [value], start=1):
        if type(task) is not dict:
            what = f"{_kind_of(task)} where a task should be"
            raise AnnotationError(f"{document.name}, entry {at}: {what}. Export it again.")
        if _is_annotation(task):
            inner = task["task"] if type(task["task"]) is dict else {"id": task["task"]}
            task = {"id": inner.get("id"), "data": inner.get("data"), "annotations": [task]}
        yield task


def entries_of(task: _Task, key: str, source: str) -> list[Any]:
    """Return a list of a task."""
    entries = task.get(key)
    if entries is None:
        return []
    if type(entries) is not list:
        raise AnnotationError(
            f"{source}, task {_id_of(task)}: {key!r} is {_kind_of(entries)}, not a list. Export it again."
        )
    return entries


def results_of(entry: dict[str, Any], task: _Task, source: str) -> list[Any]:
    """Return the results of an annotation, draft or prediction."""
    results = entry.get("result")
    if results is None:
        return []
    if type(results) is not list:
        where = f"{source}, task {_id_of(task)}, annotation {_id_of(entry)}"
        raise AnnotationError(f"{where}: 'result' is {_kind_of(results)}, not a list. Export it again.")
    return results


def item_finder(document: Document, wanted: str | None) -> tuple[Callable[[_Task], str | None], str]:
    """Return how to find the item of a task."""
    if wanted is None or wanted == "id":
        return lambda task: scalar_text(task.get("id")), "id"
    key = wanted.removeprefix("data.")
    keys = list(dict.fromkeys(name for task in tasks_of(document) for name in _data(task)))
    if key not in keys:
        raise AnnotationError(f"{document.name} has no {wanted!r} in the data of its tasks. It has: {listed(keys)}.")

    def find(task: _Task) -> str | None:
        item = scalar_text(_data(task).get(key))
        if item is None:
            raise AnnotationError(
                f"{document.name}, task {_id_of(task)}: no {key!r} in its data, so it has no item. Name another `item`."
            )
        return item

    return find, f"data.{key}"


def _is_annotation(entry: dict[str, Any]) -> bool:
    """Whether an object is a single annotation, as in exports to cloud storage."""
    return "result" in entry and "task" in entry and "completed_by" in entry and type(entry["result"]) is list


def _data(task: _Task) -> dict[str, Any]:
    """Return the data of a task."""
    data = task.get("data")
    return data if type(data) is dict else {}


def scalar_text(value: Any) -> str | None:
    """Return a scalar as text; None for anything else."""
    if type(value) is str:
        return value
    return as_text(value) if isinstance(value, str | int | float) else None


def _worker_name(value: Any) -> str | None:
    """Return the name of a worker; None if it is blank."""
    name = scalar_text(value)
    return name if name and not name.isspace() else None


def _id_of(entry: _Task) -> str:
    """Return the id of a task or annotation, for error messages."""
    return shorten(scalar_text(entry.get("id")) or "without an id")


def _kind_of(value: Any) -> str:
    """Return the kind of a JSON value, for error messages."""
    kinds = {dict: "an object", list: "a list", str: "text", bool: "a truth value", type(None): "null"}
    return kinds.get(type(value), "a number")


# ----------------------------------------------------------------------------------------------------
# Users of a Label Studio export: one worker each, although an export names them in two ways.
#
# Annotations name their author by a number (``completed_by``) or by an object with number and e-mail address; drafts
# name theirs by the address alone. Three places of an export link the two: such an object, ``created_username`` ("Ann
# Lee ann@example.org, 11"), and a draft that changes a submitted annotation.

_NAME_AND_NUMBER = re.compile(r"(?:^|\s)(\S+@\S+), (\d+)\s*$")


class Users:
    """Names of the users that were met so far, and the links between their numbers and addresses."""

    def __init__(self) -> None:
        """Start without users."""
        self._address_of: dict[str, str] = {}  # number of a user -> e-mail address
        self._seen: dict[Any, str] = {}  # the same by integer, to avoid repeated conversions to text
        self._numbers: dict[int, str] = {}  # users known by their number alone
        self._authors: dict[str, str] = {}  # id of an annotation -> number of its author
        self._changed: list[tuple[str, str]] = []  # (address, id of the annotation that their draft changes)

    def name(self, user: Any) -> str | None:
        """Return the e-mail address of a user if there is one, otherwise the number."""
        if type(user) is int:
            return self._numbers.get(user) or self._numbers.setdefault(user, str(user))
        if type(user) is not dict:
            return _worker_name(user)
        number, address = user.get("id"), user.get("email")
        quick = type(number) is int and type(address) is str
        if quick and self._seen.get(number) == address:
            return str(address)
        number_text, name = _worker_name(number), _worker_name(address)
        if number_text and name:
            self._address_of[number_text] = name
            self._seen |= {number: name} if quick else {}
        return name or number_text

    def meet(self, entry: _Task, author: str | None, *, is_draft: bool) -> None:
        """Note which number and address an annotation or a draft links."""
        username = entry.get("created_username")
        linked = _NAME_AND_NUMBER.search(username) if type(username) is str else None
        if linked is not None:
            self._address_of.setdefault(linked[2], linked[1])
        if author is None:
            return
        changed = scalar_text(entry.get("annotation")) if is_draft else None
        if changed is not None:
            self._changed.append((author, changed))
        number = None if is_draft else scalar_text(entry.get("id"))
        if number is not None and author.isdigit():
            self._authors[number] = author

    def addresses(self) -> dict[str, str]:
        """Return the address of each number that the export links to one.

        A draft that changes an annotation is usually its author's; but others may change it too. So these links hold
        only where they join each number to one address and each address to one number.
        """
        joined, addresses_of, numbers_of = dict(self._address_of), defaultdict(set), defaultdict(set)
        taken = set(joined.values())
        for address, annotation in self._changed:
            number = self._authors.get(annotation)
            if number is not None and "@" in address:
                addresses_of[number].add(address)
                numbers_of[address].add(number)
        for number, addresses in addresses_of.items():
            address = min(addresses)
            if len(addresses) == 1 and len(numbers_of[address]) == 1 and address not in taken:
                joined.setdefault(number, address)
        return joined

    def notes(self, annotators: set[str], drafters: set[str]) -> dict[str, str]:
        """Return notes on workers that were joined, and on drafts whose author cannot be told."""
        joined = self.addresses()
        both = [
            number for number, address in joined.items() if number in annotators and address in annotators | drafters
        ]
        unlinked = sorted(name for name in drafters - annotators - set(joined.values()) if "@" in name)
        nameless = [name for name in annotators if name.isdigit() and name not in joined]
        notes = {}
        if both:
            what = (
                "is a number in some places and an e-mail address in others"
                if len(both) == 1
                else ("are numbers in some places and e-mail addresses in others")
            )
            notes["joined_workers"] = (
                f"{counted(len(both), 'worker')} {what}; the export links the two, so that each is one worker, under "
                f"the address."
            )
        if unlinked and nameless:
            notes["draft_authors"] = (
                f"{counted(len(unlinked), 'author')} of drafts {'is' if len(unlinked) == 1 else 'are'} known by e-mail "
                f"address only, while annotators are numbers. The export does not link them, so the list of workers "
                f"may have a person twice; labels are not affected, because drafts do not count."
            )
        return notes
