"""Published data sets: the judgements of an item in lists, in objects by worker, or only as counts.

- ``lists``: ``{"id": ..., "annotator_ids": [...], "labels": [...]}`` per item, as JSON or a table with list columns
- ``lewidi``: Le-Wi-Di, an object by item; in 2023 workers and labels joined by commas, in 2025 labels by worker
- ``peerannot``: ``{"item": {"worker": label}}``
- ``counts``: the number of votes for each class, without workers
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import polars as pl

from manyhands.exceptions import AnnotationError, LimitError
from manyhands.io import documents
from manyhands.io.documents import Document, Folder, Records, Table, as_text, parse
from manyhands.io.formats.long import COMMON_NAMES, as_table, has_roles
from manyhands.io.judgements import Collector, ColumnOptions, Judgements, find_column
from manyhands.io.messages import normalise_name, shorten

_QUESTION = "label"  # these exports have one question without a name
_WORKERS = ["annotator_ids", "annotators", "annotator_id", "annotator", "worker_ids", "workers", "worker_id", "worker"]
_WORKERS += ["user_ids", "users", "rater_ids", "raters", "coder_ids", "coders"]
_LABELS = ["labels", "label", "annotations", "annotation", "answers", "ratings", "responses", "votes", "judgments"]
_ITEMS = (*COMMON_NAMES["item"], "uid", "idx", "index")
_ENTRIES_LOOKED_AT = 100  # the first items of a file may have no labels
_ANSWERS, _METADATA = "answers.json", "metadata.json"


def recognise(document: Document) -> str | None:
    """Recognise parallel lists, the keys of these data sets, or counts of votes."""
    if isinstance(document, Folder):
        return "peerannot" if _answers_in(document) else None
    if isinstance(document, Records) and isinstance(document.value, dict):
        return _recognise_object(document.value)
    if isinstance(document, Table) and has_roles(document.header) and not _list_columns(document):
        return None
    if _list_columns(document):
        return "lists"
    return "counts" if is_counts(document) else None


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read the judgements of every item; an item without any is a row without a label."""
    if format_name == "counts":
        return _read_counts(document, options, _ITEMS)
    if format_name == "lists":
        return _read_lists(document, options)
    for role in ("item", "worker", "label"):
        options.refuse(role, format_name, "the keys of its objects")
    if isinstance(document, Folder) and (member := _answers_in(document)):
        document = parse(document.members[member])
    if not isinstance(document, Records) or not isinstance(document.value, dict):
        raise AnnotationError(
            f"{document.name} is not one JSON object with an entry per item, as {format_name} has it."
        )
    if _is_metadata(document.value):
        raise AnnotationError(f"{document.name} describes a data set; its answers are in {_ANSWERS}. Give that file.")
    return _read_object(document, format_name)


def _recognise_object(value: dict[str, Any]) -> str | None:
    """Recognise an object that has an entry per item."""
    if _is_metadata(value):
        return "peerannot"
    entries = [entry for entry, _ in zip(value.values(), range(_ENTRIES_LOOKED_AT))]
    if not entries or not all(isinstance(entry, dict) for entry in entries):
        return None
    if any(isinstance(entry.get("annotations"), str | dict) and "annotators" in entry for entry in entries):
        return "lewidi"
    scalars = all(isinstance(label, str | int | float) for entry in entries for label in entry.values())
    return "peerannot" if scalars and any(entries) else None


def _is_metadata(value: dict[str, Any]) -> bool:
    """Whether an object is the metadata file of a peerannot data set."""
    return {"n_classes", "n_task"} <= value.keys() or {"n_classes", "n_workers"} <= value.keys()


def _answers_in(folder: Folder) -> str | None:
    """Return the file of answers of a peerannot data set, which has its metadata beside it."""
    names = [name for name in folder.members if PurePosixPath(name).name == _ANSWERS]
    has_metadata = names and str(PurePosixPath(names[0]).with_name(_METADATA)) in folder.members
    return names[0] if len(names) == 1 and has_metadata else None


def _read_object(document: Records, format_name: str) -> Judgements:
    """Read an object by item: labels by worker, or workers and labels joined by commas."""
    rows = Collector()
    for item, entry in document.value.items():
        where = f"{document.name}, item {shorten(item)!r}"
        if not isinstance(entry, dict):
            raise AnnotationError(f"{where}: not an object but {type(entry).__name__}. Correct it.")
        given = entry if format_name == "peerannot" else entry.get("annotations")
        if isinstance(given, dict):
            pairs = [(worker, label) for worker, label in given.items()]
        else:
            workers, labels = _parts(entry.get("annotators"), where), _parts(given, where)
            _refuse_uneven(where, workers, labels)
            pairs = list(zip(workers, labels))
        _add(rows, item, pairs, where)
    by_worker = (
        "the keys within each entry, or `annotators`" if format_name == "lewidi" else "the keys within each entry"
    )
    label = "annotations" if format_name == "lewidi" else "their values"
    mapping = {"item": "the keys of the file", "worker": by_worker, "label": label}
    return rows.judgements(document.name, format_name, mapping=mapping, notes=document.notes)


def _parts(joined: Any, where: str) -> list[str | None]:
    """Return the parts between commas; a list is returned as it is."""
    if joined is None or joined == "":
        return []
    if isinstance(joined, list):
        return [None if entry is None else _text(entry, where) for entry in joined]
    return [part.strip() for part in _text(joined, where).split(",")]


def _read_lists(document: Document, options: ColumnOptions) -> Judgements:
    """Read workers and labels of every item from two lists of equal length."""
    header, entries = _entries(document)
    place = _list_columns(document) or (None, None)
    worker = _key(header, options.worker, "worker", place[0], document.name)
    label = _key(header, options.label, "label", place[1], document.name)
    usual = next((name for wanted in _ITEMS for name in header if normalise_name(name) == normalise_name(wanted)), None)
    item = usual if options.item is None else header[find_column(header, options.item, "item", document.name)]
    rows = Collector()
    for number, entry in enumerate(entries, start=1):
        name = str(number) if item is None else as_text(entry.get(item))
        where = f"{document.name}, item {shorten(name or '')!r}"
        if name is None or not name.strip():
            raise AnnotationError(f"{document.name}, entry {number}: no {item}, so its item is unknown. Fill it in.")
        workers, labels = _list(entry.get(worker), where, worker), _list(entry.get(label), where, label)
        _refuse_uneven(where, workers, labels)
        _add(rows, name, list(zip(workers, labels)), where, label)
    mapping = {"item": item or "the number of the entry", "worker": f"{worker}[]", "label": f"{label}[]"}
    notes = document.notes if isinstance(document, Records) else {}
    numbered = item is None
    return rows.judgements(document.name, "lists", mapping=mapping, notes=dict(notes), items_numbered=numbered)


def _add(rows: Collector, item: str, pairs: list[tuple[Any, Any]], where: str, question: str = _QUESTION) -> None:
    """Add one row per worker and label, or one without either."""
    for worker, label in pairs:
        name = None if worker is None else _text(worker, where)
        if label is None:
            rows.add(item, name, {})
        elif name is None or not name.strip():
            raise AnnotationError(f"{where}: a label without a worker. Fill the worker in, or remove the label.")
        else:
            several = isinstance(label, list)
            texts = [_text(one, where) for one in (label if several else [label]) if one is not None]
            rows.add(item, name, {question: texts if several else texts[0]})
    if not pairs:
        rows.add(item, None, {})


def _text(value: Any, where: str) -> str:
    """Return a worker or a label as text."""
    if isinstance(value, list | dict):
        raise AnnotationError(f"{where}: a {type(value).__name__} in place of a worker or a label. Correct it.")
    return as_text(value) or ""


def _refuse_uneven(where: str, workers: list[Any], labels: list[Any]) -> None:
    """Refuse lists of different lengths."""
    if len(workers) != len(labels):
        raise AnnotationError(f"{where}: {len(workers)} worker(s) but {len(labels)} label(s). Correct the entry.")


def _key(header: list[str], wanted: str | None, role: str, usual: str | None, name: str) -> str:
    """Return the key of a role, by the name that was given or by its usual name."""
    if wanted is not None:
        return header[find_column(header, wanted, role, name)]
    if usual is None:
        raise AnnotationError(f"{name} has no list of {role}s under a usual name. Name its key with `{role}=`.")
    return usual


def _entries(document: Document) -> tuple[list[str], Iterator[dict[str, Any]]]:
    """Return the keys and the items of the file; cells of a table are lists written as JSON."""
    if isinstance(document, Records) and document.objects:
        return list(dict.fromkeys(key for entry in document.objects for key in entry)), iter(document.objects)
    if isinstance(document, Table):
        return document.header, (dict(zip(document.header, cells)) for cells in document.frame.iter_rows())
    raise AnnotationError(f"{document.name} is not a list of items with a list of workers and one of labels each.")


def _list_columns(document: Document) -> tuple[str, str] | None:
    """Return the keys of the workers and of the labels, if both are lists."""
    if isinstance(document, Table):
        first = [dict(zip(document.header, row)) for row in document.frame.head(_ENTRIES_LOOKED_AT).iter_rows()]
    else:
        first = document.objects[:_ENTRIES_LOOKED_AT] if isinstance(document, Records) else []
    lists = [key for key in dict.fromkeys(key for entry in first for key in entry) if _holds_lists(first, key)]
    columns = [
        next((key for wanted in names for key in lists if normalise_name(key) == wanted), None) for names in _PLAIN
    ]
    return (columns[0], columns[1]) if columns[0] is not None and columns[1] is not None else None


_PLAIN = tuple([normalise_name(name) for name in names] for names in (_WORKERS, _LABELS))


def _holds_lists(entries: list[dict[str, Any]], key: str) -> bool:
    """Whether there are lists under a key; of text cells, at least half must be lists.

    A JSON list is certain. A cell is text, and [bot] or [none] may be a name.
    """
    values = [value for entry in entries if (value := entry.get(key)) is not None and value not in ("", "[]")]
    n_written = sum(map(_written_as_list, values))
    return any(isinstance(value, list) for value in values) or 0 < len(values) <= 2 * n_written


def _list(value: Any, where: str, key: str) -> list[Any]:
    """Return a list, parsed if it is written in a cell."""
    if value is None or value == "":
        return []
    if isinstance(value, str) and value.strip().startswith("["):
        try:
            return _parse_list(value)
        except ValueError:
            raise AnnotationError(f"{where}: {key} is not a list in JSON: {shorten(value)}. Write it as one.") from None
    if not isinstance(value, list):
        raise AnnotationError(f"{where}: {key} is not a list but {type(value).__name__}. Correct the entry.")
    return value


# ----------------------------------------------------------------------------------------------------
# Votes that are counted without naming the workers: a column ``<class>_count`` for each class.
#
# Workers cannot be distinguished, so every vote is a judgement by ``vote 1``, ``vote 2`` and so on of its item;
# `Judgements.workers_known` is False, as these are not persons.

_MAX_VOTES = 50_000_000  # of a whole file; a count with a few zeros too many would fill the memory
_TOTAL, _ENDING = "count", "_count"
_BY_NUMBER = "the number of the row"


def is_counts(document: Document) -> bool:
    """Whether a document has counts of two or more classes, and their total."""
    if isinstance(document, Table):
        header = document.header
    else:
        header = list(document.first) if isinstance(document, Records) and document.objects else []
    return _TOTAL in header and len(_class_columns(header)) > 1


def _read_counts(document: Document, options: ColumnOptions, item_names: Sequence[str]) -> Judgements:
    """Read every vote as a judgement of an unknown worker; an item without votes is a row without a label."""
    for role in ("worker", "label"):
        options.refuse(role, "counts", "counts of votes alone")
    table = as_table(document)
    at_classes = _class_columns(table.header)
    if not at_classes:
        raise AnnotationError(f"{table.name} has no column that ends in {_ENDING}, so it counts no votes.")
    items, item_location = _items(table, options, item_names)
    counts = np.stack([_numbers(table, at, items) for at in at_classes], axis=1)  # (n_items, n_classes)
    votes = counts.sum(axis=1)
    _check_total(table, items, votes)
    classes = [table.header[at].removesuffix(_ENDING) for at in at_classes]
    n_rows = np.maximum(votes, 1)
    if n_rows.sum() > _MAX_VOTES:
        raise LimitError(f"{table.name} counts {int(votes.sum()):,} votes; at most {_MAX_VOTES:,} are read at once.")
    row_item = np.repeat(np.arange(len(votes)), n_rows)
    position = np.arange(len(row_item)) - np.repeat(np.cumsum(n_rows) - n_rows, n_rows)
    chosen = np.full(len(row_item), len(classes))  # beyond the classes: no label
    chosen[votes[row_item] > 0] = np.repeat(np.tile(np.arange(len(classes)), len(votes)), counts.ravel())
    voters = pl.Series([f"vote {at + 1}" for at in range(int(n_rows.max(initial=0)))], dtype=pl.String)
    has_vote = pl.Series(votes[row_item] > 0, dtype=pl.Boolean)
    return Judgements(
        table.name,
        "counts",
        item=items.gather(row_item),
        worker=pl.select(pl.when(has_vote).then(voters.gather(position))).to_series(),
        answers={_QUESTION: pl.Series([*classes, None], dtype=pl.String).gather(chosen)},
        mapping={"item": item_location, "worker": "not in the file", "label": f"<class>{_ENDING}"},
        notes={"workers_unknown": "The file counts votes without naming the workers, so there are no worker results."},
        workers_known=False,
        items_numbered=item_location == _BY_NUMBER,
    )


def _class_columns(header: Sequence[str]) -> list[int]:
    """Return the columns of counts."""
    return [at for at, name in enumerate(header) if name.endswith(_ENDING) and name != _ENDING]


def _items(table: Table, options: ColumnOptions, names: Sequence[str]) -> tuple[pl.Series, str]:
    """Return the column of items and its name; the number of the row if there is none."""
    if options.item is not None:
        at: int | None = find_column(table.header, options.item, "item", table.name)
    else:
        header_names = [normalise_name(name) for name in table.header]
        at = next(
            (header_names.index(normalise_name(name)) for name in names if normalise_name(name) in header_names), None
        )
    if at is None:
        return pl.Series([str(row + 1) for row in range(len(table))], dtype=pl.String), _BY_NUMBER
    return table.column(at), table.header[at]


def _numbers(table: Table, at: int, items: pl.Series) -> npt.NDArray[np.int64]:
    """Return a column of counts; a blank cell is 0."""
    text = table.column(at).fill_null("").str.strip_chars()
    numbers = text.replace("", "0").str.replace(r"\.0*$", "")
    wrong = ~numbers.str.contains(r"^[0-9]{1,9}$")
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        raise AnnotationError(
            f"{table.name}, item {shorten(items[row] or '')!r}: {table.header[at]} is {shorten(text[row])!r}, "
            "which is not a number of votes. Correct it."
        )
    return numbers.cast(pl.Int64).to_numpy()


def _check_total(table: Table, items: pl.Series, votes: npt.NDArray[np.int64]) -> None:
    """Check the counts of each item against the total that the file states."""
    if _TOTAL not in table.header:
        return
    total = _numbers(table, table.header.index(_TOTAL), items)
    wrong = np.flatnonzero(total != votes)
    if len(wrong):
        row = int(wrong[0])
        raise AnnotationError(
            f"{table.name}, item {shorten(items[row] or '')!r}: {votes[row]} votes in the columns {_ENDING}, but "
            f"{_TOTAL} is {total[row]}; {len(wrong)} such item(s). Is the column of a class missing?"
        )


# ----------------------------------------------------------------------------------------------------
# Lists written as text in a cell: as JSON, or in Python's syntax, which pandas writes into CSV files.

_TEXT = r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\""""
_ENTRY = re.compile(rf"\s*(?:({_TEXT})|(-?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)|(None|True|False))\s*(,|\]\s*\Z)")
_WORDS = {"None": None, "True": True, "False": False}


def _written_as_list(value: Any) -> bool:
    """Whether a text is a list of quoted texts, numbers, or lists of these; an empty list does not count.

    Examples
    --------
    >>> _written_as_list('["a", 1]'), _written_as_list("['a']"), _written_as_list("[bot]"), _written_as_list("[null]")
    (True, True, False, False)
    """
    if not isinstance(value, str) or not value.strip().startswith("["):
        return False
    try:
        entries = _parse_list(value)
    except ValueError:
        return False
    values = [entry for entry in entries if entry is not None and not isinstance(entry, bool)]
    return bool(values) and not any(isinstance(entry, dict) for entry in values)


def _parse_list(text: str) -> list[Any]:
    """Parse a list in JSON or in Python's syntax.

    Examples
    --------
    >>> _parse_list("['a', None, 12345678901234567890123]")
    ['a', None, '12345678901234567890123']
    """
    try:
        values = documents.loads(text)
    except orjson.JSONDecodeError:
        return _parse_python(text)
    if not isinstance(values, list):
        raise ValueError("not a list")
    return values


def _parse_python(text: str) -> list[Any]:
    """Parse a flat list entry by entry, so that no text is nested deep enough to exhaust Python's parser."""
    begin = text.index("[") + 1
    if text[:begin].strip() != "[":
        raise ValueError("not a list")
    entries: list[Any] = []
    while True:
        match = _ENTRY.match(text, begin)
        if match is None:
            if entries and re.compile(r"\s*\]\s*\Z").match(text, begin):  # a comma may precede the end
                return entries
            raise ValueError("not a list")
        entries.append(_entry(*match.groups()[:3]))
        begin = match.end()
        if match[4] != ",":
            return entries


def _entry(quoted: str | None, number: str | None, word: str | None) -> Any:
    """Return the value of one entry."""
    if quoted is not None:
        try:
            text: str = literal_eval(quoted)
        except SyntaxError:
            raise ValueError("not a text") from None
        text.encode()  # raises a ValueError for an unpaired surrogate
        return text
    if number is not None:
        try:
            return documents.loads(number)
        except orjson.JSONDecodeError:
            return number  # such as 1. or 007, which JSON does not have
    return _WORDS[str(word)]
