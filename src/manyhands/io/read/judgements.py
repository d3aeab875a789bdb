"""Judgements: what every format is turned into, before it is decided which of them count.

A judgement is one worker's answer to one question on one item. Formats only say what stands where; which question is
meant, what to leave out and how to count it is decided once for all of them, in `choosing.py` and `settling.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.messages import counted, listed, normalise_name, shorten
from manyhands.io.read.text_tables import Locate

# Why a judgement does not count. The first group lies outside the crowd; its authors are not workers.
NON_WORKER_REASONS = ("prediction", "gold_account", "aggregated")
REASONS = (*NON_WORKER_REASONS, "draft", "skipped", "rejected", "discarded", "tainted", "region", "no_worker", "blank")


FileRows = tuple[str, int, Locate | None]  # a file, how many rows it has, and where they stand


@dataclass(frozen=True)
class ColumnOptions:
    """What the user said of a file: names of columns or fields, the question, what stands for a missing label."""

    item: str | None = None
    worker: str | None = None
    label: str | None = None
    question: str | None = None
    missing: tuple[str, ...] = ()

    def refuse(self, role: str, format_name: str, instead: str) -> None:
        """Refuse a wish that a format cannot grant, rather than overlook it."""
        wanted = getattr(self, role)
        if wanted is not None:
            raise AnnotationError(
                f"{format_name} has its {role}s in {instead}, so --{role} {shorten(wanted)} has no meaning."
            )


@dataclass
class Judgements:
    """One row per judgement of an export.

    Attributes
    ----------
    source, format : the file's name, and what it was recognised as
    item, worker : text; null where a row has none
    answers : one column per question: text, or lists of text where several choices may be made; null or [] where the
        question was left open
    reason : one of REASONS for a row that is no ordinary judgement, null otherwise; None where all are ordinary
    time : microseconds since 1970, null where unknown; decides which of two answers is the later one
    mapping : where item, worker, label, time and the like stood, in the file's own words
    gold : question -> item -> the answers known to be right
    notes : what a person should know, by code
    workers_known : False where the file counts votes without saying whose they are
    refusal : what cannot be done with this file, where nothing can
    beside : the other columns of a table, which tell a blank line from one whose item, worker and label were forgotten
    items_numbered : True where items only have their number in the file, so that two files cannot be read together
    questions : how many rows each question has, where only those of one question are here
    pieces : the files that were read together, how many rows each has, and how to find where one of them stands
    """

    source: str
    format: str
    item: pl.Series
    worker: pl.Series
    answers: dict[str, pl.Series]
    reason: pl.Series | None = None
    time: pl.Series | None = None
    mapping: dict[str, str] = field(default_factory=dict)
    gold: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    workers_known: bool = True
    refusal: str | None = None
    other_columns: pl.DataFrame | None = None
    items_numbered: bool = False
    questions: dict[str, int] | None = None
    files: tuple[FileRows, ...] = ()

    def __len__(self) -> int:
        return len(self.item)

    def place(self, row: int) -> str:
        """The file and the number of a row, as a person counts them."""
        source, locate = self.source, None
        for piece in self.files:
            source, n_rows, locate = piece
            if row < n_rows:
                break
            row -= n_rows
        found = None if locate is None else locate(row)
        return f"{source}, {found or f'row {row + 1}' + (' after the header' if self.format == 'long' else '')}"

    def release(self) -> None:
        """Let go of items, workers and answers, once they are codes."""
        self.item = self.worker = pl.Series([], dtype=pl.String)
        self.answers, self.other_columns = {}, None


class Collector:
    """Judgements row by row, for exports that are not tables.

    >>> rows = Collector()
    >>> rows.add("item-1", "ann", {"sentiment": ["negative"]})
    >>> rows.add("item-2", "ann", {})
    >>> rows.judgements("export.json", "some-tool").answers["sentiment"].to_list()
    [['negative'], None]
    """

    def __init__(self) -> None:
        self.item: list[str | None] = []
        self.worker: list[str | None] = []
        self.reason: list[str | None] = []
        self.time: list[int | None] = []
        self.answers: dict[str, dict[int, str | Sequence[str]]] = defaultdict(dict)
        self.gold: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)

    def add(
        self,
        item: str | None,
        worker: str | None,
        answers: Mapping[str, str | Sequence[str] | None],
        reason: str | None = None,
        time: int | None = None,
    ) -> None:
        """One worker's response: his answer to each question that he answered."""
        row = len(self.item)
        self.item.append(item)
        self.worker.append(worker)
        self.reason.append(reason)
        self.time.append(time)
        for question, answer in answers.items():
            if answer is not None:
                self.answers[question][row] = answer

    def judgements(self, source: str, format_name: str, **more: Any) -> Judgements:
        """All rows so far; a question that a response leaves open is null in it."""
        return Judgements(
            source,
            format_name,
            item=pl.Series(self.item, dtype=pl.String),
            worker=pl.Series(self.worker, dtype=pl.String),
            answers={question: self._column(given) for question, given in self.answers.items()},
            reason=pl.Series(self.reason, dtype=pl.String) if any(self.reason) else None,
            time=pl.Series(self.time, dtype=pl.Int64) if any(t is not None for t in self.time) else None,
            gold=dict(self.gold),
            **more,
        )

    def _column(self, given: Mapping[int, str | Sequence[str]]) -> pl.Series:
        """Text where every answer is one, otherwise lists."""
        rows = range(len(self.item))
        if all(isinstance(answer, str) for answer in given.values()):
            return pl.Series([given.get(row) for row in rows], dtype=pl.String)
        lists = {row: (answer,) if isinstance(answer, str) else tuple(answer) for row, answer in given.items()}
        code = {answer: at for at, answer in enumerate(dict.fromkeys(lists.values()))}
        codes = pl.Series([code[lists[row]] if row in lists else None for row in rows], dtype=pl.UInt32)
        return pl.Series(list(code), dtype=pl.List(pl.String)).gather(codes)  # polars is slow at making many lists


def find_column(header: Sequence[str], wanted: str, role: str, source: str) -> int:
    """The place of the column that the user named; case, spaces, hyphens and underscores do not matter."""
    found = [at for at, name in enumerate(header) if name == wanted]
    found = found or [at for at, name in enumerate(header) if normalise_name(name) == normalise_name(wanted)]
    if not found:
        raise AnnotationError(
            f"Column {shorten(wanted)!r} is not in {source}. It has: {listed(header)}. {column_hint(role)}"
        )
    return single_column(header, found, role, source)


def single_column(header: Sequence[str], found: Sequence[int], role: str, source: str) -> int:
    """The one column that was found for a role; of several, only the user can tell which is meant."""
    if len(found) > 1:
        alike = list(dict.fromkeys(header[at] for at in found))
        sentences_of = " and ".join(repr(shorten(name)) for name in alike)
        remedy = column_hint(role) if len(alike) == len(found) else "Rename all but one."
        raise AnnotationError(f"{source} has {len(found)} columns for the {role}, called {sentences_of}. {remedy}")
    return found[0]


def column_hint(role: str) -> str:
    """What to do where a column cannot be told."""
    return f"Name the right one with --{role} COLUMN ({role}= in Python)."


def concatenate(parts: Sequence[Judgements]) -> Judgements:
    """Several files of one format as one: the batches of one job."""
    first = parts[0]
    if len(parts) == 1:
        return first
    for part in parts[1:]:
        _refuse_unlike(first, part)
    questions = list(dict.fromkeys(name for part in parts for name in part.answers))
    other_columns = [part.other_columns for part in parts if part.other_columns is not None]
    return Judgements(
        f"{first.source} and {len(parts) - 1} more",
        first.format,
        item=pl.concat([part.item.rename("item") for part in parts]),
        worker=pl.concat([part.worker.rename("worker") for part in parts]),
        answers={name: _concatenate_answers(parts, name) for name in questions},
        reason=_concatenate_column([part.reason for part in parts], parts, pl.String),
        time=_concatenate_column([part.time for part in parts], parts, pl.Int64),
        mapping=first.mapping,
        gold=_concatenate_gold(parts),
        notes=_concatenate_notes(parts),
        workers_known=all(part.workers_known for part in parts),
        refusal=next((part.refusal for part in parts if part.refusal), None),
        other_columns=pl.concat(other_columns, how="diagonal") if len(other_columns) == len(parts) else None,
        files=tuple(piece for part in parts for piece in part.files or ((part.source, len(part), None),)),
    )


def _refuse_unlike(first: Judgements, part: Judgements) -> None:
    """Files that cannot be one: of two formats, with items from two places, or with items that only have numbers."""
    if part.format != first.format:
        raise AnnotationError(
            f"{first.source} is {first.format}, but {part.source} is {part.format}. Read one format at a time."
        )
    items = [one.mapping.get("item") for one in (first, part)]
    if items[0] != items[1]:
        raise AnnotationError(
            f"Items are {items[0]} in {first.source}, but {items[1]} in {part.source}. Name one with --item."
        )
    if first.items_numbered or part.items_numbered:
        raise AnnotationError(
            f"The items of {first.source} and {part.source} have no ids, only numbers, so they cannot be told apart. "
            "Put the files together, or give their items ids."
        )


def _concatenate_gold(parts: Sequence[Judgements]) -> dict[str, dict[str, tuple[str, ...]]]:
    """What any file knows; where two differ, either answer may be right."""
    gold: dict[str, dict[str, tuple[str, ...]]] = {}
    for part in parts:
        for question, known in part.gold.items():
            of_question = gold.setdefault(question, {})
            for item, right in known.items():
                of_question[item] = tuple(dict.fromkeys(of_question.get(item, ()) + right))
    return gold


def _concatenate_notes(parts: Sequence[Judgements]) -> dict[str, str]:
    """The first sentence of each kind, and how many more files it was said of in other words."""
    sentences_of: dict[str, list[str]] = {}
    for part in parts:
        for code, sentence in part.notes.items():
            sentences_of.setdefault(code, []).append(sentence)
    notes = {}
    for code, sentences in sentences_of.items():
        others = len(sentences) - 1 if len(set(sentences)) > 1 else 0
        notes[code] = sentences[0] + (f" (And the like of {counted(others, 'more file')}.)" if others else "")
    return notes


def _concatenate_answers(parts: Sequence[Judgements], question: str) -> pl.Series:
    columns = [part.answers.get(question) for part in parts]
    lists = any(column is not None and column.dtype != pl.String for column in columns)
    if not lists:
        joined_column = _concatenate_column(columns, parts, pl.String)
        assert joined_column is not None
        return joined_column
    wrapped = [
        column if column is None or column.dtype != pl.String else pl.Series(_in_lists(column)) for column in columns
    ]
    joined_lists = _concatenate_column(wrapped, parts, pl.List(pl.String))
    assert joined_lists is not None
    return joined_lists


def _in_lists(column: pl.Series) -> pl.Series:
    return pl.Series([None if answer is None else [answer] for answer in column], dtype=pl.List(pl.String))


def _concatenate_column(
    columns: Sequence[pl.Series | None], parts: Sequence[Judgements], dtype: Any
) -> pl.Series | None:
    """One column under another; nulls for a part that has none, None where no part has one."""
    if all(column is None for column in columns):
        return None
    whole = [
        pl.Series("", [None] * len(part), dtype=dtype) if column is None else column.rename("").cast(dtype)
        for column, part in zip(columns, parts)
    ]
    return pl.concat(whole)
