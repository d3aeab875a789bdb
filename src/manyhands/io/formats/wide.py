"""Wide tables: one row per item, one column per worker, and a label or nothing in each cell.

A column of known answers is gold. Columns of outcomes, comments, dates and texts are excluded and named in a note;
``worker="a,b,c"`` names the columns of the workers where that is wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.documents import Document, Records, Table
from manyhands.io.formats.long import COMMON_NAMES, as_table, gold_of, has_roles, objects_as_table
from manyhands.io.judgements import ColumnOptions, Judgements, find_column
from manyhands.io.messages import argument, listed, normalise_name, shorten
from manyhands.io.text_tables import Locate

QUESTION = "label"
_PEOPLE_IN_ROWS = 'The columns are called like questions: if each row is a person, add `format="survey"`.'


def recognise(document: Document) -> str | None:
    """Recognise wide tables: no item of the first column twice, and columns that share classes.

    Where the first column is not called like items, nearly all labels must be classes of several columns.
    """
    header = document.header if isinstance(document, Table) else list(getattr(document, "first", {}))
    if len(header) < 3 or has_roles(header) or normalise_name(header[0]) in _NEVER_ITEMS:
        return None
    table = (
        None if any(normalise_name(name) in WORKER_NAMES | LABEL_NAMES for name in header[1:]) else flat_table(document)
    )
    if table is None:
        return None
    rows = table.frame.filter(~table.blank_lines())
    items = rows.to_series(0)
    if not len(items) or items.null_count() or items.n_unique() < len(items):
        return None
    workers, _ = split_label_columns(table, range(1, rows.width), rows)
    is_wide = share_values(rows, workers) and (_is_called_items(header[0]) or _share_classes(rows, workers))
    return "wide" if is_wide else None


def names_workers(document: Document, options: ColumnOptions) -> bool:
    """Whether the caller names several columns as workers, which only a wide table has."""
    if options.worker is None or "," not in options.worker or options.label is not None:
        return False
    header = document.header if isinstance(document, Table) else list(getattr(document, "first", {}))
    header_names = {normalise_name(name) for name in header}
    return normalise_name(options.worker) not in header_names and all(
        normalise_name(name) in header_names for name in options.worker.split(",")
    )


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read every cell as one judgement; an empty cell has no label."""
    options.refuse("label", "A wide table", "the cells of the workers' columns")
    table = as_table(document)
    blank = table.blank_lines()
    rows = table.frame.filter(~blank)
    at_item, at_workers, left_out = _columns(table, rows, options)
    workers = [table.header[at] for at in at_workers]
    twice = [name for name, count in Counter(workers).items() if count > 1]
    if twice:
        raise AnnotationError(f"{table.name} has several columns for the workers {listed(twice)}. Rename all but one.")
    cells = [rows.to_series(at) for at in at_workers]
    judgements = cells_as_judgements(table.name, format_name, rows.to_series(at_item), workers, cells, options.missing)
    judgements.mapping["item"] = table.header[at_item] or "the first column"
    at_gold = next((at for at in left_out if normalise_name(table.header[at]) in GOLD_NAMES), None)
    if at_gold is not None:
        left_out.remove(at_gold)
        judgements.mapping["gold"] = table.header[at_gold]
        judgements.gold[QUESTION] = _known(judgements, rows.to_series(at_item), rows.to_series(at_gold), options)
    if options.worker is None:
        judgements.notes |= left_out_note(table.header, left_out, "workers", "worker")
        judgements.notes |= {"rows_may_be_people": _PEOPLE_IN_ROWS} if _are_numbered_questions(workers) else {}
        judgements.notes |= _first_column_note(table.header[at_item], workers, options)
    judgements.notes |= document.notes if isinstance(document, Records) else {}
    judgements.files = ((table.name, len(judgements) + int(blank.sum()), of_cells(table, blank, len(workers))),)
    return with_blank_lines(judgements, int(blank.sum()))


def _is_called_items(name: str) -> bool:
    """Whether a column has a usual name of items, or none."""
    return normalise_name(name) in ITEM_NAMES | {""}


def _first_column_note(name: str, workers: Sequence[str], options: ColumnOptions) -> dict[str, str]:
    """Return a note on a first column that was taken for the items although it is not called like items."""
    if options.item is not None or _is_called_items(name):
        return {}
    return {
        "first_column_is_items": f"One row per item was assumed: {shorten(name)!r} for the items, and a worker each in "
        f"{listed(workers)}. If that is wrong, name the columns: {argument('item', 'a')} {argument('worker', 'b,c,d')}."
    }


def of_cells(table: Table, blank: pl.Series, n_cells: int) -> Locate | None:
    """Return how to find the row of the table for a cell, if cells are counted row by row."""
    locate, rows = table.locate, (~blank).arg_true()
    if locate is None:
        return None
    return lambda cell: locate(int(rows[cell // n_cells])) if cell // n_cells < len(rows) else None


def cells_as_judgements(
    source: str,
    format_name: str,
    items: pl.Series,
    workers: Sequence[str],
    cells: Sequence[pl.Series],
    missing: Sequence[str],
) -> Judgements:
    """Return a matrix of items and workers as judgements, item by item.

    Among integers, -1 means no label, unless the caller names another sign.
    """
    items = items.rename("item")
    repeated = items.drop_nulls()
    if repeated.n_unique() < len(repeated):
        name = repeated.filter(repeated.is_duplicated())[0]
        label_location = (
            f"{source} has several rows for the item {shorten(name)!r}. One row per item makes a wide table."
        )
        raise AnnotationError(label_location)
    labels, minus_one_is_none = labels_of(cells, missing)
    label_location = f"a cell for each of {len(workers)} workers" + ("; -1 is no label" if minus_one_is_none else "")
    n_items, n_workers = len(items), len(workers)
    by_item = np.arange(n_items * n_workers).reshape(n_workers, n_items).T.ravel()
    return Judgements(
        source,
        format_name,
        item=items.gather(np.repeat(np.arange(n_items), n_workers)),
        worker=pl.Series(workers, dtype=pl.String).gather(np.tile(np.arange(n_workers), n_items)),
        answers={QUESTION: labels.gather(by_item)},
        mapping={"item": "the number of the row", "worker": "a column each", "label": label_location},
    )


def _columns(table: Table, rows: pl.DataFrame, options: ColumnOptions) -> tuple[int, list[int], list[int]]:
    """Return the column of the items, those of the workers, and the others."""
    header, everywhere = table.header, range(len(table.header))
    wanted = [] if options.worker is None else [name.strip() for name in options.worker.split(",")]
    at_workers = [find_column(header, name, "worker", table.name) for name in wanted]
    free = [at for at in everywhere if at not in at_workers]
    if options.item is not None:
        at_item = find_column(header, options.item, "item", table.name)
    elif not free:
        raise AnnotationError(f"{table.name}: every column is named as a worker's, so there is none for the items.")
    else:
        usual = [at for at in free if normalise_name(header[at]) in ITEM_NAMES] if wanted else []
        at_item = (usual or free)[0]
    others = [at for at in free if at != at_item]
    if wanted:
        return at_item, at_workers, others
    if not others:
        raise AnnotationError(f"{table.name} has one column; a wide table has one for the items and one per worker.")
    at_workers, left_out = split_label_columns(table, others, rows)
    if not at_workers:
        names = listed([header[at] for at in left_out])
        raise AnnotationError(
            f"{table.name}: none of {names} looks like a worker's column. Name the workers' with `worker=\"a,b,c\"`."
        )
    return at_item, at_workers, left_out


def _known(
    judgements: Judgements, items: pl.Series, gold: pl.Series, options: ColumnOptions
) -> dict[str, tuple[str, ...]]:
    """Return the known answers; labels that mean "no label" in a worker's cell mean none here either."""
    gold = gold if "-1 is no label" not in judgements.mapping["label"] else _without_minus_one(gold)
    return gold_of(items, gold.set(gold.str.strip_chars().is_in(list(options.missing)).fill_null(False), None))


# ----------------------------------------------------------------------------------------------------
# Functions shared by wide tables and surveys, whose cells are labels of one item by one worker.

_OUTCOMES = "majority majority_vote majority_label consensus final final_label aggregated aggregate adjudicated"
_REMARKS = (
    "comment comments remark remarks text note notes title description content date time timestamp url link "
    "created_at updated_at submitted_at submitted start_time end_time duration reason rationale explanation "
    "justification feedback observation observations "
    "Bemerkung Bemerkungen Anmerkung Anmerkungen Kommentar Kommentare Notiz Notizen Hinweis Hinweise Begründung "
    "Beschreibung Titel Inhalt Datum Zeit Uhrzeit Zeitpunkt Dauer Sonstiges "
    "commentaire commentaires remarque remarques texte titre heure durée "
    "comentario comentarios observación observaciones nota notas texto título fecha hora "
    "commento commenti osservazioni testo titolo opmerking opmerkingen tekst datum tijd "
    "comentário comentários observações uwagi komentarz kommentarer комментарий 备注 评论 コメント"
)
GOLD_NAMES, ITEM_NAMES, WORKER_NAMES, LABEL_NAMES, TIME_NAMES = (
    frozenset(map(normalise_name, COMMON_NAMES[role])) for role in ("gold", "item", "worker", "label", "time")
)
_NO_LABELS = frozenset(map(normalise_name, f"{_OUTCOMES} {_REMARKS}".split())) | GOLD_NAMES | ITEM_NAMES | {""}
_NEVER_ITEMS = WORKER_NAMES | LABEL_NAMES | TIME_NAMES | GOLD_NAMES
_SHARED = 0.8  # share of a worker's cells whose class is that of another worker too, if the items have an unusual name
_MIN_DIFFERENT = 3  # cells of a column that must all differ before it is taken for texts; two may by chance
_MIN_OWN = 3  # values that no other column has: a worker may use one or two classes alone, not only such classes
_MIN_REMARKS = 3  # values of a column without several words, from which on it may hold remarks
_MAX_CELLS_LOOKED_AT = 100_000  # cells that are compared to recognise a table
_MAX_CLASSES = 20  # different values of a column, or half of its cells, before it is texts; few lists are longer
_NUMBERED_QUESTION = re.compile(r"(q|question|frage|item)[\s_-]*\d+", re.IGNORECASE)


def flat_table(document: Document) -> Table | None:
    """Return a table, or a list of flat objects as one."""
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
    uses = Counter(value for column in values.values() for value in column)
    own = {at: {value for value in values[at] if uses[value] == 1} for at in values}
    alone = [at for at in values if values[at] and own[at] == values[at]]
    if len(values) - len(alone) < 2:  # no two columns share a class, so nothing says what the classes are
        return []
    return [at for at in values if own[at] and _is_remark(cells[at], own[at], alone=at in alone)]


def _is_remark(cells: pl.Series, own: set[str], *, alone: bool) -> bool:
    """Whether a column holds remarks, by its cells that no other column has: most differ, or have several words.

    Some cells may be a class by chance ("good"), if at least half are not. A column that shares nothing with the others
    holds no labels either if it has several values of its own.
    """
    others = cells.filter(cells.is_in(list(own)))
    if not alone and (2 * len(others) < len(cells) or len(others) < _MIN_REMARKS):
        return False
    n_phrases = int(others.str.strip_chars().str.contains(r"\s").sum())
    differ = len(others) >= _MIN_REMARKS and 2 * len(own) > len(others)
    several = alone and len(cells) >= _MIN_REMARKS and len(own) >= _MIN_OWN
    return differ or several or 2 * n_phrases >= len(others)


def share_values(rows: pl.DataFrame, columns: Sequence[int]) -> bool:
    """Whether columns have labels in common, and none of them holds free text."""
    looked_at = rows.head(max(_MAX_CELLS_LOOKED_AT // max(rows.width, 1), 10))
    cells = [_non_blank(looked_at.to_series(at)) for at in columns]
    distinct = [set(column) - {"-1"} for column in cells]
    if any(len(values) > max(_MAX_CLASSES, len(column) // 2) for values, column in zip(distinct, cells)):
        return False
    uses = Counter(value for values in distinct for value in values)
    return any(count > 1 for count in uses.values())


def _share_classes(rows: pl.DataFrame, columns: Sequence[int]) -> bool:
    """Whether nearly every label of each column is a class that another column has too, and the classes are few."""
    looked_at = rows.head(max(_MAX_CELLS_LOOKED_AT // max(rows.width, 1), 10))
    cells = [_non_blank(looked_at.to_series(at)) for at in columns]
    cells = [column for column in cells if len(column)]
    uses = Counter(value for column in cells for value in set(column))
    shared = [value for value, count in uses.items() if count > 1]
    if len(cells) < 2 or not 2 <= len(uses) <= _MAX_CLASSES:
        return False
    return all(int(column.is_in(shared).sum()) >= _SHARED * len(column) for column in cells)


def left_out_note(header: Sequence[str], left_out: Sequence[int], what: str, role: str) -> dict[str, str]:
    """Return a note that names the columns which were not taken for workers or items."""
    if not left_out:
        return {}
    names = listed([header[at] or "(no name)" for at in left_out])
    message = (
        f"Not taken for {what}: {names}. If that is wrong, name the columns of all {what}: {argument(role, 'a,b,c')}."
    )
    return {"columns_left_out": message}


def _are_numbered_questions(names: Iterable[str]) -> bool:
    """Whether columns are called q1, q2, ... as those of a questionnaire."""
    return all(_NUMBERED_QUESTION.fullmatch(name.strip()) for name in names)


def labels_of(cells: Sequence[pl.Series], missing: Sequence[str]) -> tuple[pl.Series, bool]:
    """Concatenate the cells of columns."""
    labels = pl.concat([cell.rename("label").cast(pl.String) for cell in cells])
    if missing or not _are_whole_numbers(labels):
        return labels, False
    return _without_minus_one(labels), True


def _without_minus_one(labels: pl.Series) -> pl.Series:
    """Return labels with null in place of -1."""
    return labels.set(labels.str.contains(r"^\s*-1(\.0*)?\s*$").fill_null(False), None)


def with_blank_lines(judgements: Judgements, n_lines: int) -> Judgements:
    """Append blank lines, which were read but are not judgements."""
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
