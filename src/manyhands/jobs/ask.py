"""`ask`: questions to an expert as a file; `Questionnaire`: the same questions asked one after the other."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from manyhands._core.writing import write_files
from manyhands.exceptions import AnnotationError, CrowdWarning, ParameterError
from manyhands.io.overview import describe_reading
from manyhands.io.questions import ANSWER, check_questions, question_frame
from manyhands.io.reading import Reading
from manyhands.io.side_tables import open_table
from manyhands.io.write.results import guard_table, to_csv
from manyhands.jobs.options import (
    DEFAULT_EXPORT,
    ExportOptions,
    Written,
    check_seed,
    claim_file,
    require_labels,
    require_workers,
    write_all,
)
from manyhands.trust.sampling import contested, random_items

PURPOSES = {"method": 20, "confidence": 50}  # what the answers decide -> usual number of questions
_NO_WORKERS = "methods cannot be compared, which the questions are about"


@dataclass(frozen=True, eq=False)
class AskRun:
    """Result of `ask`.

    Attributes
    ----------
    reading : Reading
        What was read.
    table : polars.DataFrame
        The questions, one row each, with an empty column ``answer``.
    content : bytes
        The table as CSV.
    summary : dict
        What was read, and how many questions there are.
    written : Written
        Name of the file that was written.
    """

    reading: Reading
    table: pl.DataFrame
    content: bytes
    summary: dict[str, Any]
    written: Written


def ask(
    files: Sequence[str],
    export: ExportOptions = DEFAULT_EXPORT,
    *,
    n: int | None = None,
    purpose: str = "method",
    random_state: int = 0,
    show_votes: bool = False,
    spreadsheet_safe: bool = False,
    out: str | Path | None = None,
    force: bool = False,
) -> AskRun:
    """Draw items to ask an expert about, and write them as a table to fill in.

    The expert is blind: the table has the items, their fields and the classes, neither votes nor labels, which an
    answer would follow.

    Parameters
    ----------
    files : sequence of str
        The export.
    export : ExportOptions, default=ExportOptions()
        How to read it.
    n : int or None, default=None
        Number of questions; None asks 20 about the method and 50 about the confidence.
    purpose : {"method", "confidence"}, default="method"
        What the answers are to decide: which method to follow (contested items), or what the confidence is worth
        (random items).
    random_state : int, default=0
        Seed of the draw.
    show_votes : bool, default=False
        Add the votes on each item and the label of each method, for the adjudication of contested items. Answers that
        were given in view of them are not independent: do not use them for guarantees.
    spreadsheet_safe : bool, default=False
        Prevent spreadsheet programs from running cells as formulas.
    out : str, Path or None, default=None
        File to write, a CSV; None writes nothing.
    force : bool, default=False
        Replace a file that exists, and the answers in it.

    Returns
    -------
    AskRun
        The questions.

    Raises
    ------
    ParameterError
        If an option is invalid.
    AnnotationError
        If the export cannot be read, or no item is contested.
    """
    if purpose not in PURPOSES:
        raise ParameterError(f"`purpose` is {purpose!r}; it may be {', '.join(PURPOSES)}.")
    number = PURPOSES[purpose] if n is None else n
    if number < 1:
        raise ParameterError(f"`n` is {number}; ask at least one question.")
    check_seed(random_state)
    _require_csv(out)
    export.check()
    with claim_file(out, force=force) as output:
        reading = export.read(files, item_fields=True)
        require_labels(reading)
        require_workers(reading, _NO_WORKERS)
        draw = contested if purpose == "method" else random_items
        questions = draw(reading.annotations, number, random_state)
        item_fields = reading.item_fields
        fields = {} if item_fields is None else {name: item_fields.values(name) for name in item_fields.fields}
        table = question_frame(questions, fields, show_votes=show_votes)
        _note_unlisted(table, len(questions.population))
        content = to_csv(guard_table(table) if spreadsheet_safe else table)
        written = write_all(output, {} if out is None else {Path(out).name: content})
    figures = {"schema": 1, "purpose": purpose, "n_questions": len(questions), "strata": questions.sizes}
    figures["written"] = None if out is None else Path(out).name
    return AskRun(reading, table, content, figures | describe_reading(reading), written)


def _note_unlisted(table: pl.DataFrame, n_items: int) -> None:
    """Say that answers are bound to this export if its items are too many to be listed beside the questions."""
    if table["drawn_from"].null_count():
        warnings.warn(
            f"items_not_listed: The names of the {n_items:,} items do not fit beside {len(table)} questions, so that "
            f"the answers can be used with this export alone, not with a later one. More questions hold more names: "
            f"raise `n`.",
            CrowdWarning,
            stacklevel=3,
        )


def _require_csv(out: str | Path | None) -> None:
    """Refuse a file that is not CSV: it is read back, also after a spreadsheet saved it."""
    if out is not None and Path(out).suffix.lower() != ".csv":
        raise ParameterError(f"{out} does not end in .csv. Questions are written as CSV, which spreadsheets open.")


@dataclass(eq=False)
class Questionnaire:
    """Questions of a file, answered one after the other; every answer is saved before the next question.

    Parameters
    ----------
    path : Path
        The file of questions.
    table : polars.DataFrame
        Its rows.
    classes : tuple of str
        The classes that may be answered.
    """

    path: Path
    table: pl.DataFrame
    classes: tuple[str, ...]

    @classmethod
    def open(cls, path: str | Path, reading: Reading) -> Questionnaire:
        """Open a file of questions, answered or not.

        Parameters
        ----------
        path : str or Path
            A file that `ask` wrote.
        reading : Reading
            The export that it was drawn from.

        Returns
        -------
        Questionnaire
            The questions, with the answers that the file has already.

        Raises
        ------
        AnnotationError
            If the file is no table of questions, or of another export.
        """
        rows = open_table(path, "questions")
        if ANSWER not in rows.header:
            raise AnnotationError(f"{path} has no column {ANSWER!r}. Give a file that manyhands ask wrote.")
        table = pl.DataFrame({name: rows.column(at) for at, name in enumerate(rows.header)})
        check_questions(path, reading.annotations, reading.renamed.get("label"))
        return cls(Path(path), table, tuple(str(value) for value in reading.annotations.classes.tolist()))

    @property
    def answers(self) -> list[str]:
        """The answers as they stand, an empty text where there is none."""
        return [text.strip() for text in self.table[ANSWER].fill_null("").to_list()]

    @property
    def open_rows(self) -> list[int]:
        """Rows without an answer."""
        return [row for row, answer in enumerate(self.answers) if not answer]

    def set(self, row: int, answer: str) -> None:
        """Store one answer and save the file.

        Parameters
        ----------
        row : int
            The question.
        answer : str
            A class, "?" if it cannot be answered, or an empty text to open it again.
        """
        answers = self.answers
        answers[row] = answer
        self.table = self.table.with_columns(pl.Series(ANSWER, [text or None for text in answers], dtype=pl.String))
        write_files(self.path.parent, {self.path.name: to_csv(self.table)}, force=True)
