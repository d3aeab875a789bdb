"""Prodigy's ``db-out``: JSON lines with one object per answer, recognised by ``_input_hash`` and ``answer``.

In the choice view a worker accepts some of the ``options``; in the binary view they accept or reject one ``label``, and
every label is a question of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from manyhands.exceptions import AnnotationError
from manyhands.io.documents import Document, Records
from manyhands.io.formats.fields import field_of, objects_of, one_text, refusal, refuse_unknown_field, set_times
from manyhands.io.judgements import (
    FREE_TEXT,
    RELATIONS,
    SPANS,
    Collector,
    ColumnOptions,
    Judgements,
    Notes,
    kind_of_mark,
)
from manyhands.io.messages import find_question, listed, shorten

_CHOICE = "accept"  # name of the only question of the choice view
_DATED = re.compile(r"(.*-)?\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d")  # a session without a name: the time of its start
_OTHER_VIEWS = ("spans", "relations", "image_spans", "audio_spans")


@dataclass
class _Row:
    """One answer: the question it belongs to, the choices, why it does not count, and what it is if no class."""

    question: str | None
    answer: str | list[str] | None = None
    reason: str | None = None
    other: str | None = None


def recognise(document: Document) -> str | None:
    """Recognise the keys that Prodigy adds to every object."""
    first = document.first if isinstance(document, Records) else {}
    return "prodigy" if "answer" in first and ("_input_hash" in first or "_task_hash" in first) else None


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read one judgement per object; in the binary view, only those about the selected label."""
    options.refuse("label", "Prodigy", "accept, or in label and answer")
    name, objects = document.name, objects_of(document, "Prodigy")
    answers = [_row_of(entry, name, at) for at, entry in enumerate(objects, start=1)]
    chosen = _rows_of_question(answers, options.question, name)
    workers, at_worker, worker_notes = _workers(objects, options.worker, name)
    item_field = options.item or "_input_hash"
    if options.item and objects and all(field_of(entry, item_field) is None for entry in objects):
        raise refuse_unknown_field(options.item, "item", name, [key for entry in objects for key in entry])
    rows = Collector()
    for at in chosen:
        if answers[at].other is not None:
            rows.others.add(str(answers[at].other))
        item = one_text(field_of(objects[at], item_field), name, at + 1, item_field)
        if item is None:
            raise AnnotationError(f'{name}, row {at + 1} has no {item_field}. Name another field, as `item="text"`.')
        _add(rows, item, workers[at], answers[at])
    notes = set_times(rows, [objects[at].get("_timestamp") for at in chosen])
    return rows.judgements(
        name,
        format_name,
        mapping={
            "item": item_field,
            "worker": at_worker,
            "label": " or ".join(_label_fields(answers)),
            "time": "_timestamp",
        },
        notes=getattr(document, "notes", {}) | notes | worker_notes | _notes_on(rows, objects, answers),
        refusal=_refusal(name, rows),
    )


def _row_of(entry: Mapping[str, Any], source: str, at: int) -> _Row:
    """Return the answer of one object; an object with versions is a reviewer's, and not a worker's."""
    answer = entry.get("answer")
    if answer not in ("accept", "reject", "ignore", None):
        raise AnnotationError(f"{source}, row {at}: answer is {shorten(str(answer))!r}, not accept, reject or ignore.")
    label = one_text(entry.get("label"), source, at, "label") if "options" not in entry else None
    row = _Row(None)
    if "options" in entry or "accept" in entry:
        row = _Row(_CHOICE, _accepted(entry, source, at) if answer == "accept" else None)
        row.reason = "rejected" if answer == "reject" else None
    elif label:
        row = _Row(label, {"accept": label, "reject": f"not {label}"}.get(answer or ""))
    else:
        row.other = _other_kind(entry)
        row.reason = None if row.other is None else "region"
    if answer == "ignore":
        row.reason = "skipped"
    if "versions" in entry:
        row.reason = "gold_account"
    return row


def _other_kind(entry: Mapping[str, Any]) -> str | None:
    """Return what the answer to a view without classes is: spans, boxes, relations, free text."""
    if entry.get("relations"):
        return RELATIONS
    view = next((key for key in _OTHER_VIEWS if key in entry), None)
    if view is not None:
        return kind_of_mark(entry[view]) or SPANS
    field = entry.get("field_id")
    return FREE_TEXT if "user_input" in entry or (isinstance(field, str) and field in entry) else None


def _accepted(entry: Mapping[str, Any], source: str, at: int) -> list[str]:
    """Return the choices that were accepted."""
    accept = entry.get("accept")
    if accept is not None and not isinstance(accept, list):
        accept = [accept]
    texts = (one_text(choice, source, at, "a choice in accept") for choice in accept or ())
    return [text for text in texts if text is not None]


def _rows_of_question(answers: Sequence[_Row], wanted: str | None, source: str) -> list[int]:
    """Return the rows about the selected question; a row about another one does not leave this one unanswered."""
    names = list(dict.fromkeys(row.question for row in answers if row.question is not None))
    if len(names) < 2:
        return list(range(len(answers)))
    name, _ = find_question(wanted, names, source)
    return [at for at, row in enumerate(answers) if row.question in (name, None)]


def _workers(objects: Sequence[dict[str, Any]], wanted: str | None, source: str) -> tuple[list[str | None], str, Notes]:
    """Return the worker of every object, where they were found, and notes."""
    if wanted is not None:
        named = [one_text(field_of(entry, wanted), source, at, wanted) for at, entry in enumerate(objects, start=1)]
        if objects and not any(named):
            raise refuse_unknown_field(wanted, "worker", source, [key for entry in objects for key in entry])
        return named, wanted, {}
    workers = []
    for at, entry in enumerate(objects, start=1):
        key = "_annotator_id" if entry.get("_annotator_id") else "_session_id"
        workers.append(one_text(entry.get(key), source, at, key) or None)
    names = {worker for worker in workers if worker is not None}
    notes = {}
    dated = sorted(filter(_DATED.fullmatch, names))
    if dated:
        notes["unnamed_sessions"] = (
            f"{len(dated)} of {len(names)} worker(s) are sessions without a name, such as {shorten(dated[0])!r}, so "
            "one person may be several workers. Next time add ?session=NAME to the address of Prodigy."
        )
    prefix = _dataset(names, [entry.get("_session_id") for entry in objects])
    where = "_annotator_id, else _session_id"
    if not prefix:
        return workers, where, notes
    notes["worker_prefix"] = f"Prodigy puts the data set before the worker; {prefix!r} was left out of their names."
    return [worker and worker[len(prefix) :] for worker in workers], f"{where}, without {prefix!r}", notes


def _dataset(names: set[str], sessions: Sequence[Any]) -> str:
    """Return the common prefix of all workers' names up to the first hyphen: they are <data set>-<session>.

    The name of a single worker may contain a hyphen, so in that case the sessions must begin in the same way.
    """
    prefixes = {name[: name.find("-") + 1] for name in names}
    prefix = prefixes.pop() if len(prefixes) == 1 else ""
    if not prefix or any(name == prefix or re.match(r"\d{4}-\d\d-\d\d_", name) for name in names):
        return ""
    alone = len(names) == 1
    agree = all(isinstance(session, str) and session.startswith(prefix) for session in sessions)
    return prefix if agree or not alone else ""


def _add(rows: Collector, item: str, worker: str | None, row: _Row) -> None:
    """Add one answer; a reviewer's answer is gold."""
    answers = {row.question: row.answer} if row.question is not None else {}
    if row.reason == "gold_account" and row.question is not None and row.answer:
        rows.gold[row.question][item] = (row.answer,) if isinstance(row.answer, str) else tuple(row.answer)
    reason = row.reason
    if reason is None and worker is None and row.answer:
        reason = "no_worker"
    rows.add(item, worker, answers, reason)


def _label_fields(answers: Sequence[_Row]) -> list[str]:
    """Return the fields that hold the labels, for `Judgements.mapping`."""
    choice = any(row.question == _CHOICE for row in answers)
    binary = any(row.question not in (_CHOICE, None) for row in answers)
    return ["accept"] * choice + ["label with answer"] * binary or ["accept"]


def _notes_on(rows: Collector, objects: Sequence[dict[str, Any]], answers: Sequence[_Row]) -> Notes:
    """Return notes on reviews, on empty answers and on unsupported views."""
    notes = {}
    reviewed = rows.reason.count("gold_account")
    if reviewed:
        notes["reviewed"] = f"{reviewed} answer(s) are those of a reviewer: they are used as gold, not as labels."
    empty = sum(row.answer == [] and row.reason is None for row in answers)
    if empty:
        notes["nothing_chosen"] = f"{empty} answer(s) were accepted without any choice, and count as no label."
    unknown = [row.question is None and row.reason is None for row in answers]
    views = {str(entry.get("_view_id")) for entry, is_unknown in zip(objects, unknown) if is_unknown}
    if views:
        notes["other_views"] = (
            f"Some answers have neither options nor a label (views: {listed(sorted(views))}): not read."
        )
    return notes


def _refusal(source: str, rows: Collector) -> str | None:
    """Return why nothing can be aggregated, if so."""
    return refusal(
        rows,
        source,
        no_worker=f"{source} does not name the workers (no _annotator_id, no _session_id), so they cannot be "
        "distinguished. Annotate with ?session=NAME in the address of Prodigy and export again with db-out.",
    )
