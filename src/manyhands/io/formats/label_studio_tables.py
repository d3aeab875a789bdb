"""Label Studio's JSON-MIN and CSV exports: one row per annotation, one column per question and per key of the data.

Questions are not marked, so they are recognised by their content: an answer is an object, differs between two
annotations of one task, and is empty without an annotation. Columns that remain unclear are offered as questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.label_studio_results import REGION_KEYS, VALUE_KEYS, Answer, as_answer
from manyhands.io.formats.long import objects_as_table
from manyhands.io.messages import listed, split_question
from manyhands.io.read import exact_json
from manyhands.io.read.column_lookup import find_column
from manyhands.io.read.documents import Document, Records, Table
from manyhands.io.read.judgements import ColumnOptions, Judgements
from manyhands.io.read.other_kinds import OTHERS, OtherKinds, kind_of_mark
from manyhands.io.read.times import parse_times
from manyhands.io.read.working_time import find_seconds

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


def recognise_flat(document: Document) -> str | None:
    """Recognise a table or a list of flat objects with the columns that Label Studio adds to every task.

    Parameters
    ----------
    document : Table, Records, Words or Folder
        A parsed file or folder.

    Returns
    -------
    str or None
        ``"label-studio-csv"`` or ``"label-studio-min"``; None for any other document.
    """
    if isinstance(document, Table):
        return "label-studio-csv" if _has_marks(document.header) else None
    if isinstance(document, Records) and _has_marks(document.first):
        return "label-studio-min"
    return None


def read_flat(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read every annotation as a row; a task without one is a row without a worker.

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
        One row per annotation.

    Raises
    ------
    AnnotationError
        If the document is not of this format, or inconsistent.
    """
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
            f"{', '.join(sorted(_MARKS))}. Leave --format out."
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
    found = certain + unclear or ([] if regional else constant)
    return {name: _answers(cells[name]) for name in cells if name in found or name == wanted}, regional


def _wanted(source: str, header: Sequence[str], options: ColumnOptions) -> str | None:
    """Return the column that the caller named as the question or the label."""
    if options.label is not None:
        return header[find_column(header, options.label, "label", source)]
    if options.question is None:
        return None
    found = split_question(options.question, header)
    return None if found is None else found[0]


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
    return [found for found in map(_parsed, texts) if found is not None]


def _parsed(text: str) -> Any:
    """Parse a cell; None if it is not a JSON object or list."""
    try:
        found = exact_json.loads(text)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict | list) else None


def _kind(cell: Any) -> str | None:
    """Return whether a cell labels a part of the item ("region"), answers a question ("answer"), or neither."""
    if _is_path(cell):
        return "answer"
    entries = [entry for entry in (cell if isinstance(cell, list) else [cell]) if isinstance(entry, dict)]
    if any(len(entry) > 1 and not REGION_KEYS.isdisjoint(entry) for entry in entries):
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
    found = _parsed(text)
    if _is_path(found) or (isinstance(found, list) and found and all(isinstance(entry, str) for entry in found)):
        return as_answer(found)
    if _kind(found) != "answer":
        return text
    answers: list[str] = []
    for entry in found if isinstance(found, list) else [found]:
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
    found = OtherKinds()
    for name in regional:
        kinds = [kind for cell in _structured(cells[name]) if (kind := kind_of_mark(cell)) is not None]
        found.add(kinds[0] if kinds else OTHERS, name)
    return found
