"""Features from an export itself: the text of its items, found by its content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from manyhands.exceptions import AnnotationError
from manyhands.io.features.feature_choice import ColumnChoice, choose_columns
from manyhands.io.features.feature_tables import TableFeatures, refuse_lacking, to_numbers
from manyhands.io.messages import listed, normalise_name
from manyhands.io.read.item_fields import ItemFields

_PREFIXES = ("data.", "Input.", "INPUT:", "fields.", "data_row.")  # as exports call the fields of items
_MAX_DEPTH = 4  # of objects within the data of an item


def features_of_items(
    fields: ItemFields, source: str, columns: Sequence[str], text: Sequence[str], *, trained_on: str = ""
) -> TableFeatures:
    """Return features from the fields of items: those that the caller named, or the text that is found.

    Parameters
    ----------
    fields : ItemFields
        Fields of the items.
    source : str
        Name of the file, for error messages.
    columns : sequence of str
        Fields with numbers.
    text : sequence of str
        Fields with text; if neither these nor `columns` are given, all fields that hold text, or else numbers.
    trained_on : str, default=""
        What the model was trained on, for error messages.

    Returns
    -------
    TableFeatures
        The features.

    Raises
    ------
    AnnotationError
        If a field is missing, or none holds text.
    """
    found: dict[str, dict[str, Any]] = {}
    for name in fields.fields:
        _flatten(found, name, fields.values(name))
    names = list(found)
    if columns or text:
        numbers, texts = ([_short(name, names) for name in part] for part in (columns, text))
        refuse_lacking(names, [*numbers, *texts], source, trained_on)
        exact = {normalise_name(name): name for name in reversed(names)}
        choice = ColumnChoice(*(tuple(exact[normalise_name(name)] for name in part) for part in (numbers, texts)))
    else:
        choice = _chosen(found, source)
    used = (*choice.numbers, *choice.text)
    items = list(dict.fromkeys(item for name in used for item in found[name]))
    taken = np.arange(len(items))
    remedy = f"Fill it; the model was trained on {trained_on}." if trained_on else "Fill it, or name other fields."
    parts = [to_numbers(_as_series(name, found[name], items), taken, source, remedy) for name in choice.numbers]
    joined = ["\n".join(str(found[name].get(item, "")) for name in choice.text) for item in items]
    return TableFeatures(
        items,
        np.concatenate(parts, axis=1) if parts else None,
        joined if choice.text else None,
        choice.numbers,
        choice.text,
        taken,
        choice.left_out,
    )


def _chosen(found: dict[str, dict[str, Any]], source: str) -> ColumnChoice:
    """Choose the fields with text; those with numbers only if there is no text, as many are ids."""
    choice = choose_columns({name: _as_series(name, values, list(values)) for name, values in found.items()})
    if choice.text:
        return ColumnChoice((), choice.text, (*choice.numbers, *choice.left_out))
    if choice.numbers:
        return choice
    there = f"It has: {listed(list(found))}" if found else "It has no fields of items"
    raise AnnotationError(
        f"{source} has no text of its items. {there}. Name a field with --text, or give other features."
    )


def _flatten(found: dict[str, dict[str, Any]], name: str, values: dict[str, Any], depth: int = 0) -> None:
    """Add a field; those of nested objects as ``name.key``, and the texts of a list as one text."""
    for item, value in values.items():
        if isinstance(value, dict) and depth < _MAX_DEPTH:
            for key, inner in value.items():
                _flatten(found, f"{name}.{key}", {item: inner}, depth + 1)
        elif isinstance(value, list):
            found.setdefault(name, {})[item] = "\n".join(filter(None, map(_text_within, value)))
        elif value is not None:
            found.setdefault(name, {})[item] = value


def _text_within(entry: Any) -> str:
    """Return the text of an entry of a list: a text, or the turn of a dialogue with its text."""
    inner = entry.get("text") if isinstance(entry, dict) else entry
    return inner if isinstance(inner, str) else ""


def _short(name: str, names: Sequence[str]) -> str:
    """Return the name of a field without the prefix that the export has."""
    if any(normalise_name(name) == normalise_name(known) for known in names):
        return name
    return next((name[len(prefix) :] for prefix in _PREFIXES if name.startswith(prefix)), name)


def _as_series(name: str, values: dict[str, Any], items: Sequence[str]) -> pl.Series:
    """Return the values of a field as numbers if all are, otherwise as text."""
    cells = [values.get(item) for item in items]
    if all(cell is None or isinstance(cell, bool | int | float) for cell in cells):
        return pl.Series(name, [None if cell is None else float(cell) for cell in cells], dtype=pl.Float64)
    return pl.Series(name, [None if cell is None else str(cell) for cell in cells], dtype=pl.String)
