"""Appen, formerly Figure Eight and CrowdFlower: the full report, one row per judgement.

Its own columns begin with an underscore. The answers are not marked: they are the columns with known answers beside
them (``<field>_gold``), and those that differ between the judgements of a unit.
"""

from __future__ import annotations

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.documents import Document, Table
from manyhands.io.formats.fields import blank_as_null
from manyhands.io.formats.long import as_table
from manyhands.io.judgements import (
    ROLE,
    ColumnOptions,
    Judgements,
    divide_by_task,
    find_column,
    parse_times,
    seconds_between,
)
from manyhands.io.messages import listed, split_question

_BEGUN = "_started_at"
_UNIT, _WORKER, _TAINTED, _GOLDEN, _TIME = "_unit_id", "_worker_id", "_tainted", "_golden", "_created_at"
_OF_JUDGEMENTS = (_WORKER, "_trust", _TAINTED, "_started_at", "_id")
_OF_UNITS = ("_unit_state", "_trusted_judgments", "_last_judgment_at")
_PERSONAL = ("_ip", "_city", "_region", "_country")
_GOLD, _GOLD_REASON = "_gold", "_gold_reason"
_STATISTICS = (":confidence", ":variance", ":stddev")

_AGGREGATED = (
    "holds one answer per unit that Appen has aggregated already, not the judgements of its workers, so there is "
    "nothing to aggregate. Download the full report of the job."
)
_NO_WORKER = (
    f"has no column {_WORKER}, so workers cannot be distinguished. Download the full report of the job with all of "
    "its columns, or name the workers' column with `worker=`."
)


def recognise(document: Document) -> str | None:
    """Recognise a column of units, and one of the columns that Appen adds to judgements or units."""
    if not isinstance(document, Table) or _UNIT not in document.header:
        return None
    return "appen" if any(name in document.header for name in (*_OF_JUDGEMENTS, *_OF_UNITS)) else None


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read the judgements of a job; those that Appen marks as tainted do not count."""
    table = as_table(document)
    unit = find_column(table.header, _UNIT, "item", table.name)
    if options.worker is None and _WORKER not in table.header:
        return _refused(table, unit)
    worker = find_column(table.header, options.worker or _WORKER, "worker", table.name)
    at_item = find_column(table.header, options.item, "item", table.name) if options.item is not None else unit
    item = blank_as_null(table.column(at_item))
    fields = _find_fields(table, unit, {at_item, worker}, options)
    time, notes = parse_times(table.column(table.header.index(_TIME))) if _TIME in table.header else (None, {})
    seconds = _seconds(table, worker)
    label = listed([table.header[at] for at in fields])
    mapping = {"item": table.header[at_item], "worker": table.header[worker], "label": label}
    mapping |= {"time": _TIME} if time is not None else {}
    gold = {table.header[at]: _known(table, item, table.header[at]) for at in fields}
    gold = {field: gold_of_field for field, gold_of_field in gold.items() if gold_of_field}
    mapping |= {"gold": listed([field + _GOLD for field in gold])} if gold else {}
    return Judgements(
        table.name,
        format_name,
        item=item,
        worker=blank_as_null(table.column(worker)),
        answers={table.header[at]: _choices(table.column(at)) for at in fields},
        reason=_tainted(table),
        time=time,
        seconds=seconds,
        mapping=mapping | ({} if seconds is None else {ROLE: f"{_BEGUN} to {_TIME}"}),
        gold=gold,
        notes=notes | _privacy(table),
    )


def _seconds(table: Table, worker: int) -> pl.Series | None:
    """Return the working time of each judgement; the rows of one page share its time."""
    if _BEGUN not in table.header or _TIME not in table.header:
        return None
    begun, created = (table.column(table.header.index(name)) for name in (_BEGUN, _TIME))
    return divide_by_task(seconds_between(begun, created), table.column(worker), begun, created)


def _find_fields(table: Table, unit: int, taken: set[int], options: ColumnOptions) -> list[int]:
    """Return the columns that hold answers: the one that the caller named, or all that look like answers."""
    wanted = options.label or _column_in_question(table, options.question)
    if wanted is not None:
        return [find_column(table.header, wanted, "label", table.name)]
    others = [at for at in range(len(table.header)) if at not in taken and _may_be_answer(table.header[at])]
    varying = _varying(table, unit, others)
    places = [at for at in others if table.header[at] + _GOLD in table.header or at in varying]
    if len({table.header[at] for at in places}) < len(places):
        raise AnnotationError(f"{table.name} has several columns of one name among its answers. Rename all but one.")
    if places or not others:
        return places
    raise AnnotationError(
        f"{table.name} does not show which columns are answers, as no unit has differing ones. "
        f"Name it with `label=`; it has: {listed([table.header[at] for at in others])}."
    )


def _column_in_question(table: Table, question: str | None) -> str | None:
    """Return the column that a question names, with or without a choice."""
    question_and_choice = None if question is None else split_question(question, table.header)
    return None if question_and_choice is None else question_and_choice[0]


def _may_be_answer(name: str) -> bool:
    """Whether a column may hold answers, by its name."""
    return bool(name.strip()) and not name.startswith("_") and not name.endswith((_GOLD, _GOLD_REASON, *_STATISTICS))


def _varying(table: Table, unit: int, columns: list[int]) -> set[int]:
    """Return the columns that differ between the rows of some unit."""
    names = table.frame.columns
    counts = [pl.col(names[at]).n_unique().alias(str(at)) for at in columns]
    n_values = table.frame.group_by(pl.col(names[unit]).alias("unit")).agg(counts)
    return {at for at in columns if (n_values[str(at)] > 1).any()}


def _choices(column: pl.Series) -> pl.Series:
    """Return text, or lists where some answer has several lines, which are several choices."""
    column = blank_as_null(column)
    if not column.str.contains("\n", literal=True).any():
        return column
    lines = column.str.replace_all("\r", "", literal=True).str.split("\n")
    return lines.list.eval(pl.element().filter(pl.element().str.strip_chars() != ""))


def _known(table: Table, item: pl.Series, field: str) -> dict[str, tuple[str, ...]]:
    """Return test questions with their allowed answers, one per line of a cell."""
    if field + _GOLD not in table.header:
        return {}
    cells = pl.DataFrame({"item": item, "gold": blank_as_null(table.column(table.header.index(field + _GOLD)))})
    if _GOLDEN in table.header:
        cells = cells.filter(_is_true(table.column(table.header.index(_GOLDEN))))
    right_answers: dict[str, tuple[str, ...]] = {}
    for name, text in cells.drop_nulls().unique(maintain_order=True).iter_rows():
        allowed = (line.strip("\r") for line in text.split("\n") if line.strip())
        right_answers[name] = tuple(dict.fromkeys((*right_answers.get(name, ()), *allowed)))
    return right_answers


def _is_true(column: pl.Series) -> pl.Series:
    """Return where a cell is "true"."""
    return (column.str.strip_chars().str.to_lowercase() == "true").fill_null(False)


def _tainted(table: Table) -> pl.Series | None:
    """Return the reason of each row: "tainted" where Appen marks the judgement so."""
    if _TAINTED not in table.header:
        return None
    nothing = pl.Series([None], dtype=pl.String).new_from_index(0, len(table))
    return nothing.set(_is_true(table.column(table.header.index(_TAINTED))), "tainted")


def _privacy(table: Table) -> dict[str, str]:
    """Return a note if the file has columns with personal data."""
    personal = [name for name in _PERSONAL if name in table.header]
    message = f"{listed(personal)} hold personal data of the workers and were not copied. Do not share this file."
    return {"personal_data": message} if personal else {}


def _refused(table: Table, unit: int) -> Judgements:
    """Return the rows of a file without workers, each with the reason why it does not count."""
    statistics = any(name.endswith(_STATISTICS) for name in table.header)
    aggregated = statistics or any(name in table.header for name in _OF_UNITS)
    blank = table.frame.select(pl.all_horizontal(pl.all().str.strip_chars().fill_null("") == "")).to_series()
    reason = pl.Series(["aggregated" if aggregated else "no_worker"]).new_from_index(0, len(table))
    return Judgements(
        table.name,
        "appen",
        item=table.column(unit),
        worker=pl.Series([None], dtype=pl.String).new_from_index(0, len(table)),
        answers={},
        reason=reason.set(blank, "blank"),
        mapping={"item": _UNIT},
        refusal=f"{table.name} {_AGGREGATED if aggregated else _NO_WORKER}",
    )
