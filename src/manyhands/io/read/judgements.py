"""Judgements: the table that every format is turned into.

A *judgement* is one worker's answer to one question about one item. The formats only find where items, workers,
answers and times are in a file. Which question is meant (`question_selection`) and which rows count (`row_filtering`)
is decided in one place for all formats.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.messages import shorten
from manyhands.io.read.other_kinds import OtherKinds
from manyhands.io.read.text_tables import Locate

if TYPE_CHECKING:
    from manyhands.trust.worker_kinds import WorkerKind

# Reasons why a row does not count. Rows of the first group were not written by workers of the crowd.
NON_WORKER_REASONS = ("prediction", "gold_account", "aggregated")
REASONS = (*NON_WORKER_REASONS, "draft", "skipped", "rejected", "discarded", "tainted", "region", "no_worker", "blank")


FileRows = tuple[str, int, Locate | None]  # name of a file, its number of rows, and how to find a row in it


@dataclass(frozen=True)
class ColumnOptions:
    """Options of the caller that say where things are in a file.

    Parameters
    ----------
    item : str or None, default=None
        Name of the column or field with the item ids.
    worker : str or None, default=None
        Name of the column or field with the worker ids.
    label : str or None, default=None
        Name of the column or field with the labels.
    question : str or None, default=None
        Name of the question, possibly with a choice: ``"topic=refund"``.
    missing : tuple of str, default=()
        Labels that mean "no label".
    weight : str or None, default=None
        Name of the column with the weight of each label.
    label_probs : str or None, default=None
        Names of the columns with the probability of each class, separated by commas.
    group_column : str or None, default=None
        Name of a column that describes workers.
    """

    item: str | None = None
    worker: str | None = None
    label: str | None = None
    question: str | None = None
    missing: tuple[str, ...] = ()
    weight: str | None = None
    label_probs: str | None = None
    group_column: str | None = None

    def refuse(self, role: str, format_name: str, instead: str) -> None:
        """Refuse an option that a format cannot follow, rather than ignore it.

        Parameters
        ----------
        role : {"item", "worker", "label"}
            The option.
        format_name : str
            Name of the format, for the error message.
        instead : str
            Where the format has what the option names.

        Raises
        ------
        AnnotationError
            If the option was given.
        """
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
    source : str
        Name of the file.
    format : str
        Name of the format.
    item : polars.Series of str
        Item id of each row; null where there is none.
    worker : polars.Series of str
        Worker id of each row; null where there is none.
    answers : dict of str to polars.Series
        Question -> answer of each row: text, or lists of text where several choices may be selected; null or an empty
        list where the question was not answered.
    reason : polars.Series of str or None
        Why a row does not count (one of `REASONS`), null for an ordinary judgement; None if all rows are ordinary.
    time : polars.Series of int or None
        Microseconds since 1970, null where unknown; decides which of two answers is the later one.
    seconds : polars.Series of float or None
        Seconds that the worker spent on the item, null where unknown.
    mapping : dict of str to str
        Where item, worker, label, time and gold were found, in the terms of the file.
    gold : dict of str to dict
        Question -> item -> tuple of the answers known to be right.
    notes : dict of str to str
        Warnings: code -> sentence.
    workers_known : bool
        False if the file counts votes without naming the workers.
    refusal : str or None
        Why this file cannot be used at all, or None.
    other_columns : polars.DataFrame or None
        All columns of a table; they distinguish a blank line from a row in which item, worker and label are empty.
    items_numbered : bool
        True if items have no id but their number in the file, so that two files cannot be read together.
    questions : dict of str to int or None
        Number of rows of each question, if the rows are those of one question only.
    files : tuple of FileRows
        The files that were read together: name, number of rows, and a function that finds a row in the file.
    kinds : dict of str to WorkerKind
        What the file says of workers: people or machines.
    weight : polars.Series of float or None
        Weight of each row, such as the probability that a judge gives to its label; None for rows without weights.
    groups : list of dict
        What a column says of each worker, one for each file: worker -> value -> number of rows.
    """

    source: str
    format: str
    item: pl.Series
    worker: pl.Series
    answers: dict[str, pl.Series]
    reason: pl.Series | None = None
    time: pl.Series | None = None
    seconds: pl.Series | None = None
    mapping: dict[str, str] = field(default_factory=dict)
    gold: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    workers_known: bool = True
    refusal: str | None = None
    other_columns: pl.DataFrame | None = None
    items_numbered: bool = False
    questions: dict[str, int] | None = None
    files: tuple[FileRows, ...] = ()
    kinds: dict[str, WorkerKind] = field(default_factory=dict)
    weight: pl.Series | None = None
    groups: list[dict[str, Counter[str]]] = field(default_factory=list)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.item)

    def place(self, row: int) -> str:
        """Return the file and position of a row, for error messages.

        Parameters
        ----------
        row : int
            Number of the row, from 0.

        Returns
        -------
        str
            Such as ``"votes.csv, line 7"``.
        """
        source, locate = self.source, None
        for piece in self.files:
            source, n_rows, locate = piece
            if row < n_rows:
                break
            row -= n_rows
        found = None if locate is None else locate(row)
        return f"{source}, {found or f'row {row + 1}' + (' after the header' if self.format == 'long' else '')}"

    def release(self) -> None:
        """Free the memory of items, workers and answers, once they are encoded."""
        self.item = self.worker = pl.Series([], dtype=pl.String)
        self.answers, self.other_columns = {}, None


class Collector:
    """Collects judgements row by row, for exports that are not tables.

    Attributes
    ----------
    item : list of str or None
        Item id of each row.
    worker : list of str or None
        Worker id of each row.
    reason : list of str or None
        Why a row does not count, None where it does.
    time : list of int or None
        Microseconds since 1970.
    answers : dict of str to dict
        Question -> row -> answer.
    gold : dict of str to dict
        Question -> item -> tuple of the answers known to be right.
    others : OtherKinds
        What the export has beside classes of whole items; a note names it.

    Examples
    --------
    >>> rows = Collector()
    >>> rows.add("item-1", "ann", {"sentiment": ["negative"]})
    >>> rows.add("item-2", "ann", {})
    >>> rows.judgements("export.json", "some-tool").answers["sentiment"].to_list()
    [['negative'], None]
    """

    def __init__(self) -> None:
        """Start without rows."""
        self.item: list[str | None] = []
        self.worker: list[str | None] = []
        self.reason: list[str | None] = []
        self.time: list[int | None] = []
        self.answers: dict[str, dict[int, str | Sequence[str]]] = defaultdict(dict)
        self.gold: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
        self.others = OtherKinds()

    def add(
        self,
        item: str | None,
        worker: str | None,
        answers: Mapping[str, str | Sequence[str] | None],
        reason: str | None = None,
        time: int | None = None,
    ) -> None:
        """Add the response of one worker to one item.

        Parameters
        ----------
        item : str or None
            Item id.
        worker : str or None
            Worker id.
        answers : mapping of str to str, sequence of str or None
            Question -> answer; None, or no entry, where it was not answered.
        reason : str or None, default=None
            Why the row does not count, one of `REASONS`; None if it does.
        time : int or None, default=None
            Microseconds since 1970.
        """
        row = len(self.item)
        self.item.append(item)
        self.worker.append(worker)
        self.reason.append(reason)
        self.time.append(time)
        for question, answer in answers.items():
            if answer is not None:
                self.answers[question][row] = answer

    def judgements(self, source: str, format_name: str, **more: Any) -> Judgements:
        """Return all rows so far; a question that a response does not answer is null in it.

        Parameters
        ----------
        source : str
            Name of the file.
        format_name : str
            Name of the format.
        **more
            Further attributes of `Judgements`.

        Returns
        -------
        Judgements
            One row per call of `add`.
        """
        if self.answers:  # otherwise the format refuses the export
            more["notes"] = more.get("notes", {}) | self.others.notes(source)
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
        """Return the answers to one question: text if every answer is one choice, otherwise lists."""
        rows = range(len(self.item))
        if all(isinstance(answer, str) for answer in given.values()):
            return pl.Series([given.get(row) for row in rows], dtype=pl.String)
        lists = {row: (answer,) if isinstance(answer, str) else tuple(answer) for row, answer in given.items()}
        code = {answer: at for at, answer in enumerate(dict.fromkeys(lists.values()))}
        codes = pl.Series([code[lists[row]] if row in lists else None for row in rows], dtype=pl.UInt32)
        return pl.Series(list(code), dtype=pl.List(pl.String)).gather(codes)  # polars is slow to create many lists
