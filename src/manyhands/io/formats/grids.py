"""Functions shared by wide tables and surveys, whose cells are labels of one item by one worker."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import polars as pl

from manyhands.io.formats.long import COMMON_NAMES, objects_as_table
from manyhands.io.messages import listed, normalise_name
from manyhands.io.read.documents import Document, Records, Table
from manyhands.io.read.judgements import Judgements

_OUTCOMES = "majority majority_vote majority_label consensus final final_label aggregated aggregate adjudicated"
_REMARKS = (
    "comment comments remark remarks text note notes title description content date time timestamp url link "
    "created_at updated_at submitted_at submitted start_time end_time duration"
)
GOLD_NAMES, ITEM_NAMES, WORKER_NAMES, LABEL_NAMES, TIME_NAMES = (
    frozenset(map(normalise_name, COMMON_NAMES[role])) for role in ("gold", "item", "worker", "label", "time")
)
_NO_LABELS = frozenset(map(normalise_name, f"{_OUTCOMES} {_REMARKS}".split())) | GOLD_NAMES | ITEM_NAMES | {""}
_MIN_DIFFERENT = 3  # cells of a column that must all differ before it is taken for texts
_MIN_REMARKS = 3  # values of a column without several words, from which on it may hold remarks
_MAX_CELLS_LOOKED_AT = 100_000  # cells that are compared to recognise a table
_MAX_CLASSES = 20  # different values of a column, or half of its cells, before it is taken for texts
_NUMBERED_QUESTION = re.compile(r"(q|question|frage|item)[\s_-]*\d+", re.IGNORECASE)


def flat_table(document: Document) -> Table | None:
    """Return a table, or a list of flat objects as one.

    Parameters
    ----------
    document : Document
        A parsed file.

    Returns
    -------
    Table or None
        The table; None if it is anything else.
    """
    if isinstance(document, Table):
        return document
    if not isinstance(document, Records) or not document.objects or not _is_flat(document.first):
        return None
    objects = document.objects
    return objects_as_table(document.name, objects) if all(map(_is_flat, objects)) else None


def split_label_columns(table: Table, columns: Sequence[int], rows: pl.DataFrame) -> tuple[list[int], list[int]]:
    """Split columns into those that may hold labels and all others.

    A column is excluded by its name (outcome, comment, date, gold, item), if none of its values occurs twice, or if it
    holds remarks: none of its values occurs in another column, and most of them differ or have several words.

    Parameters
    ----------
    table : Table
        The table, for the names of its columns.
    columns : sequence of int
        Positions of the columns to split.
    rows : polars.DataFrame
        The rows that are not blank lines.

    Returns
    -------
    labels : list of int
        Columns that may hold labels.
    left_out : list of int
        The others.
    """
    named = [at for at in columns if normalise_name(table.header[at]) in _NO_LABELS]
    others = [at for at in columns if at not in set(named)]
    non_blank = {at: _non_blank(rows.to_series(at)) for at in others}
    differing = [at for at, cells in non_blank.items() if len(cells) >= _MIN_DIFFERENT and cells.is_unique().all()]
    if differing:
        everywhere = pl.concat([cells.rename("") for cells in non_blank.values()])
        once = everywhere.filter(everywhere.is_unique())
        differing = [at for at in differing if non_blank[at].is_in(once.implode()).all()]
    left_out = {*named, *differing, *_remarks({at: non_blank[at] for at in others if at not in set(differing)})}
    return [at for at in columns if at not in left_out], [at for at in columns if at in left_out]


def _remarks(cells: Mapping[int, pl.Series]) -> list[int]:
    """Return the columns of remarks among columns that are otherwise labels of the same classes."""
    values = {at: set(column.to_list()) for at, column in cells.items()}
    alone = [at for at in values if values[at] and not any(values[at] & values[b] for b in values if b != at)]
    if len(values) - len(alone) < 2:  # no two columns share a class, so nothing says what the classes are
        return []
    found = []
    for at in alone:
        column = cells[at]
        n_phrases = int(column.str.strip_chars().str.contains(r"\s").sum())
        differ = len(column) >= _MIN_REMARKS and 2 * len(values[at]) > len(column)
        if differ or 2 * n_phrases >= len(column):
            found.append(at)
    return found


def share_values(rows: pl.DataFrame, columns: Sequence[int]) -> bool:
    """Whether columns have labels in common, and none of them holds free text.

    Parameters
    ----------
    rows : polars.DataFrame
        The rows.
    columns : sequence of int
        Positions of the columns.

    Returns
    -------
    bool
        True if some value occurs in two columns.
    """
    looked_at = rows.head(max(_MAX_CELLS_LOOKED_AT // max(rows.width, 1), 10))
    cells = [_non_blank(looked_at.to_series(at)) for at in columns]
    distinct = [set(column) - {"-1"} for column in cells]
    if any(len(values) > max(_MAX_CLASSES, len(column) // 2) for values, column in zip(distinct, cells)):
        return False
    uses = Counter(value for values in distinct for value in values)
    return any(count > 1 for count in uses.values())


def left_out_note(header: Sequence[str], left_out: Sequence[int], what: str, role: str) -> dict[str, str]:
    """Return a note that names the columns which were not taken for workers or items.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.
    left_out : sequence of int
        Positions of the excluded columns.
    what : str
        ``"workers"`` or ``"items"``.
    role : str
        The option that names the right columns.

    Returns
    -------
    dict of str to str
        The note; empty if no column was excluded.
    """
    if not left_out:
        return {}
    names = listed([header[at] or "(no name)" for at in left_out])
    message = f"Not taken for {what}: {names}. If that is wrong, name the columns of all {what}: --{role} a,b,c."
    return {"columns_left_out": message}


def are_numbered_questions(names: Iterable[str]) -> bool:
    """Whether columns are called q1, q2, ... as those of a questionnaire.

    Parameters
    ----------
    names : iterable of str
        Names of the columns.

    Returns
    -------
    bool
        True if all are.
    """
    return all(_NUMBERED_QUESTION.fullmatch(name.strip()) for name in names)


def labels_of(cells: Sequence[pl.Series], missing: Sequence[str]) -> tuple[pl.Series, bool]:
    """Concatenate the cells of columns.

    Parameters
    ----------
    cells : sequence of polars.Series
        The columns.
    missing : sequence of str
        Labels that the caller named as "no label".

    Returns
    -------
    labels : polars.Series of str
        All cells, column by column.
    minus_one_is_none : bool
        Whether -1 was taken as "no label": among integers, unless the caller names another sign.
    """
    labels = pl.concat([cell.rename("label").cast(pl.String) for cell in cells])
    if missing or not _are_whole_numbers(labels):
        return labels, False
    return without_minus_one(labels), True


def without_minus_one(labels: pl.Series) -> pl.Series:
    """Return labels with null in place of -1.

    Parameters
    ----------
    labels : polars.Series of str
        The labels.

    Returns
    -------
    polars.Series of str
        The labels without -1.
    """
    return labels.set(labels.str.contains(r"^\s*-1(\.0*)?\s*$").fill_null(False), None)


def with_blank_lines(judgements: Judgements, n_lines: int) -> Judgements:
    """Append blank lines, which were read but are not judgements.

    Parameters
    ----------
    judgements : Judgements
        The rows.
    n_lines : int
        Number of blank lines.

    Returns
    -------
    Judgements
        The rows and `n_lines` rows with the reason "blank".
    """
    if not n_lines:
        return judgements
    nothing = pl.Series([None] * n_lines, dtype=pl.String)
    reason = pl.Series([None] * len(judgements) + ["blank"] * n_lines, dtype=pl.String)
    time = judgements.time
    return replace(
        judgements,
        item=judgements.item.append(nothing),
        worker=judgements.worker.append(nothing),
        answers={name: answers.append(nothing) for name, answers in judgements.answers.items()},
        reason=reason,
        time=None if time is None else time.extend_constant(None, n_lines),
    )


def _is_flat(entry: dict[str, object]) -> bool:
    """Whether an object has no nested values."""
    return not any(isinstance(value, dict | list) for value in entry.values())


def _non_blank(column: pl.Series) -> pl.Series:
    """Return the cells that are not blank."""
    column = column.drop_nulls()
    return column.filter(column.str.strip_chars() != "")


def _are_whole_numbers(labels: pl.Series) -> bool:
    """Whether all labels are integers."""
    values = labels.drop_nulls().unique().str.strip_chars()
    values = values.filter(values != "")
    return bool(len(values)) and bool(values.str.contains(r"^-?\d+(\.0*)?$").all())
