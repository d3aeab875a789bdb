"""Rows of a batch as numbers: texts of workers and labels by dictionaries, and which rows count."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands.exceptions import AnnotationError, LimitError
from manyhands.io.read.text_encoding import Coded, code_text
from manyhands.io.read.times import parse_times
from manyhands.io.stream.joined_texts import crc_of_texts, join_texts
from manyhands.io.stream.name_checks import several_questions
from manyhands.io.stream.row_batches import Batch
from manyhands.io.stream.spill import NO_TIME, SpilledRows

Mask = npt.NDArray[np.bool_]

_BYTES_PER_ID = 200  # of a text in a dictionary of Python, with its key and number


class Dictionary:
    """Texts of a role, numbered in the order of their first appearance.

    Parameters
    ----------
    role : {"worker", "label"}
        What the texts are, for error messages.
    max_bytes : int
        Memory that the dictionary may take.
    """

    def __init__(self, role: str, max_bytes: int) -> None:
        self._role, self._most = role, max(max_bytes // _BYTES_PER_ID, 1000)
        self.number_of: dict[str, int] = {}

    def numbers(self, column: pl.Series) -> npt.NDArray[np.int32]:
        """Return the number of each cell; -1 where it is null or white space.

        Parameters
        ----------
        column : polars.Series of str
            The cells.

        Returns
        -------
        ndarray of shape (n_rows,) of int32

        Raises
        ------
        LimitError
            Where there are more distinct texts than fit into memory.
        """
        coded = code_text(column, by_appearance=True)
        known = self.number_of
        table = [
            -1 if is_empty else known.setdefault(text, len(known))
            for text, is_empty in zip(coded.values.to_list(), _empty(coded.values).tolist())
        ]
        if len(known) > self._most:
            raise LimitError(
                f"There are more than {self._most:,} distinct {self._role}s, which do not fit into the memory that is "
                f"allowed. Check that the right column is read, or raise --max-memory."
            )
        return np.array([*table, -1], np.int32)[coded.codes]  # code -1, null, takes the last entry


@dataclass
class RowCoder:
    """Turns batches into rows of numbers, and counts those that are left out.

    Attributes
    ----------
    workers, labels : Dictionary
        The texts so far.
    counts : Counter of str
        "rows_read", and the reasons "blank" and "no_label".
    notes : dict of str to str
        Warnings: code -> sentence.
    questions : set of str
        Questions that rows name; more than one is refused.
    label_counts : ndarray of int64
        Rows of each label so far, by number.
    """

    workers: Dictionary
    labels: Dictionary
    counts: Counter[str] = field(default_factory=Counter)
    notes: dict[str, str] = field(default_factory=dict)
    questions: set[str] = field(default_factory=set)
    label_counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def rows(self, batch: Batch, mapping: dict[str, str]) -> SpilledRows:
        """Return the rows of a batch that are not blank lines, with texts in the order of their CRC-32.

        Parameters
        ----------
        batch : Batch
            The rows.
        mapping : dict of str to str
            Role -> name of the column, for error messages.

        Returns
        -------
        SpilledRows

        Raises
        ------
        AnnotationError
            Where a row has no item, a label has no worker, or rows are about several questions.
        """
        self.counts["rows_read"] += len(batch.item)
        for code, sentence in batch.notes.items():
            self.notes.setdefault(code, sentence)
        item, worker, label = batch.item, self.workers.numbers(batch.worker), self.labels.numbers(batch.label)
        items = code_text(item, by_appearance=True)
        no_item = np.append(_empty(items.values), True)[items.codes]
        kept = ~self._blank_lines(batch, no_item & (worker < 0) & (label < 0))
        self._refuse_questions(batch, kept)
        _refuse_nameless(batch, kept, {"item": no_item, "worker": (worker < 0) & (label >= 0)}, mapping)
        time = None if batch.time is None else self._times(batch.time)
        if not kept.all():
            items = code_text(item.filter(pl.Series(kept)), by_appearance=True)
            worker, label = worker[kept], label[kept]
            time = None if time is None else time[kept]
        self.counts["no_label"] += int((label < 0).sum())
        counts = np.bincount(label[label >= 0], minlength=len(self.labels.number_of))
        counts[: len(self.label_counts)] += self.label_counts
        self.label_counts = counts
        return _by_hash(items, worker, label, time)

    @property
    def counts_by_label(self) -> dict[str, int]:
        """Rows of each label so far."""
        return dict(zip(self.labels.number_of, self.label_counts.tolist()))

    def _blank_lines(self, batch: Batch, candidates: Mask) -> Mask:
        """Return which rows are blank lines, and count them."""
        rows = np.flatnonzero(candidates)
        if len(rows):
            candidates = np.zeros_like(candidates)
            candidates[rows] = batch.is_blank(rows)
            self.counts["blank"] += int(candidates.sum())
        return candidates

    def _times(self, column: pl.Series) -> npt.NDArray[np.int64]:
        """Return the times of rows in microseconds."""
        times, notes = parse_times(column)
        for code, sentence in notes.items():
            self.notes.setdefault(code, sentence)
        return times.fill_null(NO_TIME).to_numpy(writable=True)

    def _refuse_questions(self, batch: Batch, kept: Mask) -> None:
        """Refuse rows about several questions."""
        if batch.question is None:
            return
        found = batch.question.filter(pl.Series(kept)).drop_nulls().unique().str.strip_chars()
        self.questions |= set(found.to_list()) - {""}
        if len(self.questions) > 1:
            raise AnnotationError(several_questions(self.questions))


def _empty(values: pl.Series) -> Mask:
    """Return which texts are nothing but white space."""
    return (values.str.strip_chars() == "").to_numpy()


def _by_hash(
    items: Coded, worker: npt.NDArray[np.int32], label: npt.NDArray[np.int32], time: npt.NDArray[np.int64] | None
) -> SpilledRows:
    """Order the texts of items by the first 16 bits of their CRC-32, which ranges of rows are made of."""
    hashes = crc_of_texts(items.values)
    order = np.argsort((hashes >> np.uint32(16)).astype(np.uint16), kind="stable")  # a radix sort
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return SpilledRows(join_texts(items.values.gather(order)), hashes[order], place[items.codes], worker, label, time)


def _refuse_nameless(batch: Batch, kept: Mask, wrong: dict[str, Mask], mapping: dict[str, str]) -> None:
    """Refuse a row without an item, and a label without a worker: both are errors in the file."""
    for role, rows in wrong.items():
        found = np.flatnonzero(kept & rows)
        if len(found):
            raise AnnotationError(
                f"{batch.place(int(found[0]))}: the {role} ({mapping.get(role, role)}) is blank. "
                f"Fill it in or remove the row; at least {len(found)} such row(s)."
            )
