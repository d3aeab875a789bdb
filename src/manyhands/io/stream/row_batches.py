"""`Batch`: some rows of a file; and which columns of the file hold items, workers and labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands.exceptions import AnnotationError, SeveralQuestionsError
from manyhands.io.formats import read_document
from manyhands.io.formats.long import COMMON_NAMES
from manyhands.io.messages import normalise_name
from manyhands.io.read.documents import Document
from manyhands.io.read.judgements import ColumnOptions
from manyhands.io.stream.name_checks import several_questions

Rows = npt.NDArray[np.intp]

ROLES = ("item", "worker", "label", "time", "question")


@dataclass(frozen=True)
class Batch:
    """Some rows of a file.

    Attributes
    ----------
    item, worker, label : polars.Series of str
        The cells; null where they are empty.
    time : polars.Series of str or None
        Times of the rows; None where the file has none.
    question : polars.Series of str or None
        Question of each row; None where the file has no such column.
    place : callable
        File and line of a row, for error messages.
    is_blank : callable
        Of some rows, whether all cells are empty: those are blank lines.
    share : float
        How much of the file has been read with this batch, from 0 to 1.
    notes : dict of str to str
        Warnings: code -> sentence.
    """

    item: pl.Series
    worker: pl.Series
    label: pl.Series
    time: pl.Series | None
    question: pl.Series | None
    place: Callable[[int], str]
    is_blank: Callable[[Rows], npt.NDArray[np.bool_]]
    share: float
    notes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Columns:
    """Where a file has what.

    Attributes
    ----------
    place : dict of str to int
        Role ("item", "worker", "label", and "time" or "question" where the file has them) -> position.
    mapping : dict of str to str
        Role -> name of the column.
    notes : dict of str to str
        Warnings: code -> sentence.
    """

    place: dict[str, int]
    mapping: dict[str, str]
    notes: dict[str, str]

    def batch_columns(self, frame: pl.DataFrame) -> dict[str, pl.Series | None]:
        """Return the columns of a `Batch` from a frame whose columns are in the order of the file.

        Parameters
        ----------
        frame : polars.DataFrame
            Cells as text.

        Returns
        -------
        dict of str to polars.Series or None
        """
        return {role: frame.to_series(self.place[role]) if role in self.place else None for role in ROLES}


def choose_columns(sample: Document, header: Sequence[str], options: ColumnOptions) -> Columns:
    """Choose the columns by the first rows of a file, with the rules by which whole files are read.

    Parameters
    ----------
    sample : Document
        The first rows.
    header : sequence of str
        Names of its columns.
    options : ColumnOptions
        Columns that the caller named.

    Returns
    -------
    Columns

    Raises
    ------
    AnnotationError
        Where a column is missing, or the file is of a format that is not read in parts.
    """
    try:
        judgements = read_document(sample, options)
    except SeveralQuestionsError as error:
        raise AnnotationError(several_questions(error.questions)) from None
    if judgements.format != "long":
        raise AnnotationError(
            f"{sample.name} is in the format {judgements.format!r}; only tables with one row per label are read in "
            f"parts. Convert it with manyhands convert, or name the columns with --item, --worker and --label."
        )
    if judgements.refusal is not None:
        raise AnnotationError(str(judgements.refusal))
    notes = dict(judgements.notes)
    mapping = {role: name for role, name in judgements.mapping.items() if role in ROLES}
    place = {role: list(header).index(name) for role, name in mapping.items()}
    question = _find_question(header)
    if question is not None and question not in place.values():
        place["question"] = question
    if "gold" in judgements.mapping:
        notes["gold_not_read"] = (
            f"The known answers in column {judgements.mapping['gold']!r} are not read where a file is read in parts. "
            f"Compare labels.csv with them afterwards."
        )
    return Columns(place, mapping, notes)


def _find_question(header: Sequence[str]) -> int | None:
    """Return the column that names the question of a row, if there is one."""
    names = [normalise_name(name) for name in header]
    for wanted in COMMON_NAMES["question"]:
        found = [at for at, name in enumerate(names) if name == normalise_name(wanted)]
        if found:
            return found[0] if len(found) == 1 else None
    return None
