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
from manyhands.io.messages import shorten
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
