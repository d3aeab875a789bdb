"""Tables whose cells are labels, an item on one side and a worker on the other: what their columns are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import polars as pl

from manyhands.io.formats.long import COMMON_NAMES, objects_as_table
from manyhands.io.messages import listed, plain
from manyhands.io.read.documents import Document, Records, Table
from manyhands.io.read.judgements import Judgements

_OUTCOMES = "majority majority_vote majority_label consensus final final_label aggregated aggregate adjudicated"
_REMARKS = (
    "comment comments remark remarks text note notes title description content date time timestamp url link "
    "created_at updated_at submitted_at submitted start_time end_time duration"
)
GOLD_NAMES, ITEM_NAMES, WORKER_NAMES, LABEL_NAMES, TIME_NAMES = (
    frozenset(map(plain, COMMON_NAMES[role])) for role in ("gold", "item", "worker", "label", "time")
)
_NO_LABELS = frozenset(map(plain, f"{_OUTCOMES} {_REMARKS}".split())) | GOLD_NAMES | ITEM_NAMES | {""}
_FEWEST_DIFFERENT = 3  # cells of a column that must all differ before it is taken for texts
_MOST_CELLS_LOOKED_AT = 100_000
_MOST_CLASSES = 20  # different values of a column, or half of its cells, before it is taken for texts
_NUMBERED_QUESTION = re.compile(r"(q|question|frage|item)[\s_-]*\d+", re.IGNORECASE)


def flat_table(document: Document) -> Table | None:
    """A table, or a list of objects that hold nothing but text and numbers as one; None for anything else."""
    if isinstance(document, Table):
        return document
    if not isinstance(document, Records) or not document.objects or not _is_flat(document.first):
        return None
    objects = document.objects
    return objects_as_table(document.name, objects) if all(map(_is_flat, objects)) else None


def sort_out(table: Table, columns: Sequence[int], rows: pl.DataFrame) -> tuple[list[int], list[int]]:
    """The columns that may hold labels, and those that hold something else: by name, or as no value comes again."""
    named = [at for at in columns if plain(table.header[at]) in _NO_LABELS]
    others = [at for at in columns if at not in set(named)]
    filled = {at: _filled(rows.to_series(at)) for at in others}
    differing = [at for at, cells in filled.items() if len(cells) >= _FEWEST_DIFFERENT and cells.is_unique().all()]
    if differing:
        everywhere = pl.concat([cells.rename("") for cells in filled.values()])
        once = everywhere.filter(everywhere.is_unique())
        differing = [at for at in differing if filled[at].is_in(once.implode()).all()]
    left_out = {*named, *differing}
    return [at for at in columns if at not in left_out], [at for at in columns if at in left_out]


def speak_alike(rows: pl.DataFrame, columns: Sequence[int]) -> bool:
    """Whether columns have labels in common, and none of them holds texts."""
    looked_at = rows.head(max(_MOST_CELLS_LOOKED_AT // max(rows.width, 1), 10))
    cells = [_filled(looked_at.to_series(at)) for at in columns]
    said = [set(column) - {"-1"} for column in cells]
    if any(len(values) > max(_MOST_CLASSES, len(column) // 2) for values, column in zip(said, cells)):
        return False
    uses = Counter(value for values in said for value in values)
    return any(count > 1 for count in uses.values())


def left_out_note(header: Sequence[str], left_out: Sequence[int], what: str, role: str) -> dict[str, str]:
    """What was not taken for workers or items, by name."""
    if not left_out:
        return {}
    names = listed([header[at] or "(no name)" for at in left_out])
    said = f"Not taken for {what}: {names}. Where that is wrong, name the columns of all {what}: --{role} a,b,c."
    return {"columns_left_out": said}


def are_numbered_questions(names: Iterable[str]) -> bool:
    """Whether columns are called q1, q2, ... as those of a questionnaire are."""
    return all(_NUMBERED_QUESTION.fullmatch(name.strip()) for name in names)


def labels_of(cells: Sequence[pl.Series], missing: Sequence[str]) -> tuple[pl.Series, bool]:
    """The cells of columns one under another, and whether -1 means no label: among whole numbers, unless the user
    names another sign.
    """
    labels = pl.concat([cell.rename("label").cast(pl.String) for cell in cells])
    if missing or not _are_whole_numbers(labels):
        return labels, False
    return without_minus_one(labels), True


def without_minus_one(labels: pl.Series) -> pl.Series:
    return labels.set(labels.str.contains(r"^\s*-1(\.0*)?\s*$").fill_null(False), None)


def with_blank_lines(judgements: Judgements, n_lines: int) -> Judgements:
    """The same judgements and some blank lines, which are no judgements but were read."""
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
    return not any(isinstance(value, dict | list) for value in entry.values())


def _filled(column: pl.Series) -> pl.Series:
    column = column.drop_nulls()
    return column.filter(column.str.strip_chars() != "")


def _are_whole_numbers(labels: pl.Series) -> bool:
    values = labels.drop_nulls().unique().str.strip_chars()
    values = values.filter(values != "")
    return bool(len(values)) and bool(values.str.contains(r"^-?\d+(\.0*)?$").all())
