"""What several formats share: fields of JSON objects, and the columns that a requester uploaded (MTurk, Toloka)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.documents import Document, Records, Table, as_text
from manyhands.io.formats.long import COMMON_NAMES, CONTENTS
from manyhands.io.judgements import Collector, ColumnOptions, Notes, find_column, parse_times
from manyhands.io.messages import argument, listed, normalise_name


def objects_of(document: Document, tool: str) -> list[dict[str, Any]]:
    """Return the objects of a JSON file; a single object is a list of one."""
    value = document.value if isinstance(document, Records) else None
    entries = [value] if isinstance(value, dict) else value
    if not isinstance(entries, list):
        raise AnnotationError(f"{document.name} is not a JSON export of {tool}. Leave `format` out, or export JSON.")
    unexpected = next((at for at, entry in enumerate(entries, start=1) if not isinstance(entry, dict)), None)
    if unexpected is not None:
        raise AnnotationError(
            f"{document.name}, row {unexpected}: not an object, as every row of {tool} is. Remove it."
        )
    return entries


def assignments_of(document: Document, find: Callable[[Any], list[Any] | None], api: str) -> list[Any]:
    """Return the assignments in the response of an API."""
    assignments = find(document.value) if isinstance(document, Records) else None
    if assignments is None:
        raise AnnotationError(f"{document.name} is not a list of assignments as {api} returns it. Leave `format` out.")
    return assignments


def one_text(value: Any, source: str, row: int, what: str) -> str | None:
    """Return a text, or a number as text; objects and lists are refused."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return as_text(value)
    kind = "an object" if isinstance(value, dict) else "a list"
    raise AnnotationError(f"{source}, row {row}: {what} is {kind}, not text or a number. Export the file again.")


def field_of(entry: Mapping[str, Any], path: str) -> Any:
    """Return the value of a field."""
    if path in entry:
        return entry[path]
    value: Any = entry
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def refuse_unknown_field(wanted: str, role: str, source: str, fields: Sequence[str]) -> AnnotationError:
    """Return the error for a field that the caller named and no object has."""
    there = listed(list(dict.fromkeys(fields)))
    return AnnotationError(f"Field {wanted!r} is not in {source}. It has: {there}. Name another with `{role}=`.")


def item_at(objects: Sequence[Mapping[str, Any]], at: int, key: str, source: str) -> str:
    """Return the item id of an object."""
    item = one_text(field_of(objects[at - 1], key), source, at, key)
    if item is None and all(field_of(other, key) is None for other in objects):
        raise refuse_unknown_field(key, "item", source, [name for other in objects for name in other])
    if item is None:
        raise AnnotationError(f"{source}, row {at} has no {key}. Name another field with `item=`.")
    return item


def set_times(rows: Collector, raw: Sequence[Any]) -> Notes:
    """Set the times of collected rows."""
    texts = [as_text(value) if isinstance(value, str | int | float) else None for value in raw]
    times, notes = parse_times(pl.Series(texts, dtype=pl.String))
    rows.time = times.to_list()
    return notes


def only_question(rows: Collector, options: ColumnOptions, source: str) -> None:
    """Keep only the answers to the question that the caller named as the label."""
    if options.label is None:
        return
    if options.label not in rows.answers:
        raise AnnotationError(f"{source} has no question {options.label!r}. It has: {listed(list(rows.answers))}.")
    for other in set(rows.answers) - {options.label}:
        del rows.answers[other]


def refusal(rows: Collector, source: str, *, no_worker: str) -> str | None:
    """Return why nothing can be aggregated, if so: no label has a worker, or there are no classes of whole items.

    Both never hold together, as the reason "no_worker" is only given to rows with an answer.
    """
    if "no_worker" in rows.reason and not any(rows.worker):
        return no_worker
    return rows.others.refusal(source) if rows.others and not rows.answers else None


# ----------------------------------------------------------------------------------------------------
# Which of the columns that a requester uploaded names the item: ``Input.*`` of MTurk, ``INPUT:*`` of Toloka.


def find_wanted(header: Sequence[str], wanted: str, prefix: str, source: str) -> int:
    """Find the item's column as the caller named it, with the tool's prefix or without."""
    names = {normalise_name(name) for name in header}
    if normalise_name(wanted) not in names and normalise_name(prefix + wanted) in names:
        wanted = prefix + wanted
    return find_column(header, wanted, "item", source)


def usual_item(names: Iterable[str]) -> str | None:
    """Return the name that is most usual for an item."""
    name_of = {normalise_name(name): name for name in reversed(list(names)) if normalise_name(name) not in CONTENTS}
    return next(
        (name_of[normalise_name(usual)] for usual in COMMON_NAMES["item"] if normalise_name(usual) in name_of), None
    )


def choose_item(columns: Mapping[str, pl.Series], prefix: str, source: str, instead: str) -> tuple[str, str, Notes]:
    """Choose the uploaded column that names the item.

    A usual name decides; otherwise the only column; otherwise one whose value determines all others, since any two such
    columns group the rows in the same way. A column with a single value cannot distinguish items, so it is not
    considered.
    """
    candidates = {name: column for name, column in columns.items() if not _is_gold(name)} or dict(columns)
    cells = pl.DataFrame([blank_as_null(column).alias(str(at)) for at, column in enumerate(candidates.values())])
    cells = cells.filter(~pl.all_horizontal(pl.all().is_null()))
    groups = cells.n_unique() if len(cells) else 0
    differing = {name: cells.to_series(at).n_unique() for at, name in enumerate(candidates)}
    usual = usual_item(name for name, count in differing.items() if count > 1 or groups <= 1)
    if usual is not None:
        return usual, prefix + usual, {} if differing[usual] == groups else _several_contents(prefix + usual)
    if len(candidates) == 1:
        only = next(iter(candidates))
        return only, prefix + only, {}
    for at, name in enumerate(candidates):
        if differing[name] == groups and not cells.to_series(at).null_count():
            return name, f"{prefix}{name} (it determines every other {prefix}* column)", {}
    raise AnnotationError(
        f"{source}: any of {listed([prefix + name for name in candidates])} might name the item. "
        f"Name one with `item=`, or add {argument('item', instead)}."
    )


def keep_wanted(answers: dict[str, pl.Series], wanted: str | None, prefix: str, source: str) -> dict[str, pl.Series]:
    """Return the question that the caller named as the label, or all questions."""
    if wanted is None:
        return answers
    names = list(answers)
    short = wanted[len(prefix) :] if wanted.lower().startswith(prefix.lower()) else wanted
    for ending in ("", ".label", ".labels"):
        name = short.removesuffix(ending)
        if any(normalise_name(name) == normalise_name(name_there) for name_there in names):
            question = names[find_column(names, name, "label", source)]
            return {question: answers[question]}
    raise AnnotationError(
        f"{source} has no answers called {wanted!r}. It has: {listed(names)}. Name one with `label=`."
    )


def named_columns(table: Table, prefix: str) -> dict[str, pl.Series]:
    """Return the columns whose name begins with a prefix."""
    columns: dict[str, pl.Series] = {}
    for at, name in enumerate(table.header):
        if not name.startswith(prefix):
            continue
        if name[len(prefix) :] in columns:
            raise AnnotationError(f"{table.name} has several columns called {name!r}. Rename all but one.")
        columns[name[len(prefix) :]] = blank_as_null(table.column(at))
    return columns


def blank_as_null(column: pl.Series) -> pl.Series:
    """Replace cells of white space by null."""
    return column.set(column.str.strip_chars() == "", None) if column.dtype == pl.String else column


def _is_gold(name: str) -> bool:
    """Whether a column has a usual name for known answers."""
    return any(normalise_name(name) == normalise_name(usual) for usual in COMMON_NAMES["gold"])


def _several_contents(name: str) -> Notes:
    """Return the note on an item column whose values occur with different contents."""
    message = (
        f"Some values of {name} come with different contents in the other uploaded columns; check that it is the item."
    )
    return {"item_varies": message}
