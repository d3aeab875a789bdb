"""Which of the columns that a requester uploaded names the item: Input.* of MTurk, INPUT:* of Toloka."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.long import COMMON_NAMES, CONTENTS
from manyhands.io.messages import listed, normalise_name
from manyhands.io.read.column_lookup import find_column
from manyhands.io.read.documents import Table

Notes = dict[str, str]


def find_wanted(header: Sequence[str], wanted: str, prefix: str, source: str) -> int:
    """The place of the item's column as the user named it, with the tool's prefix or without."""
    names = {normalise_name(name) for name in header}
    if normalise_name(wanted) not in names and normalise_name(prefix + wanted) in names:
        wanted = prefix + wanted
    return find_column(header, wanted, "item", source)


def usual_item(names: Iterable[str]) -> str | None:
    """The name that is most usual for an item, if any is; one of several contents is no name for the whole."""
    known = {normalise_name(name): name for name in reversed(list(names)) if normalise_name(name) not in CONTENTS}
    return next(
        (known[normalise_name(usual)] for usual in COMMON_NAMES["item"] if normalise_name(usual) in known), None
    )


def choose_item(columns: Mapping[str, pl.Series], prefix: str, source: str, instead: str) -> tuple[str, str, Notes]:
    """The uploaded column that names the item, how the mapping should put it, and what a person should know.

    A usual name decides; otherwise the only column; otherwise one whose value determines all others, since any two
    such columns make the same groups of rows. A column with one value throughout tells no items apart, so that its
    name does not count.

    Parameters
    ----------
    columns : the uploaded columns by name without prefix, at least one; rows in which all are blank do not matter
    instead : another column of the export that might do, for the sentence
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
        f"Say which with --item NAME, or --item {instead}."
    )


def find_gold(names: Iterable[str], questions: Sequence[str]) -> dict[str, str]:
    """Question -> the uploaded column that holds its known answers, by the name that the requester gave it."""
    known = {normalise_name(name): name for name in names}
    found = {}
    for question in questions:
        usual = COMMON_NAMES["gold"] if len(questions) == 1 else ()
        wanted = [f"gold{question}", f"{question}gold", *usual]
        name = next((known[normalise_name(text)] for text in wanted if normalise_name(text) in known), None)
        if name is not None:
            found[question] = name
    return found


def keep_wanted(answers: dict[str, pl.Series], wanted: str | None, prefix: str, source: str) -> dict[str, pl.Series]:
    """The question that the user named as the column of the label, or all of them."""
    if wanted is None:
        return answers
    names = list(answers)
    short = wanted[len(prefix) :] if wanted.lower().startswith(prefix.lower()) else wanted
    for ending in ("", ".label", ".labels"):
        name = short.removesuffix(ending)
        if any(normalise_name(name) == normalise_name(known) for known in names):
            found = names[find_column(names, name, "label", source)]
            return {found: answers[found]}
    raise AnnotationError(f"{source} has no answers called {wanted!r}. It has: {listed(names)}. Name one with --label.")


def named_columns(table: Table, prefix: str) -> dict[str, pl.Series]:
    """The columns whose name begins with a prefix, by the rest of their names."""
    found: dict[str, pl.Series] = {}
    for at, name in enumerate(table.header):
        if not name.startswith(prefix):
            continue
        if name[len(prefix) :] in found:
            raise AnnotationError(f"{table.name} has several columns called {name!r}. Rename all but one.")
        found[name[len(prefix) :]] = blank_as_null(table.column(at))
    return found


def blank_as_null(column: pl.Series) -> pl.Series:
    """Cells of white space as cells with nothing in them."""
    return column.set(column.str.strip_chars() == "", None) if column.dtype == pl.String else column


def _is_gold(name: str) -> bool:
    return any(normalise_name(name) == normalise_name(usual) for usual in COMMON_NAMES["gold"])


def _several_contents(name: str) -> Notes:
    message = (
        f"Some values of {name} come with different contents in the other uploaded columns; check that it is the item."
    )
    return {"item_varies": message}
