"""Labels and worker ids brought to one spelling: a map from the caller, then names that differ in spelling only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from unicodedata import normalize

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands.io.messages import listed, shorten
from manyhands.io.read.spelling_variants import fold_class, fold_id, spelling_groups
from manyhands.io.read.text_encoding import Coded

Renamed = dict[str, dict[str, str]]
Mask = npt.NDArray[np.bool_]

_FOLDS: dict[str, Callable[[str], str]] = {"label": fold_class, "worker": fold_id}
_PLURALS = {"label": "classes", "worker": "worker ids"}
_CODES = {"label": "classes", "worker": "workers"}
_MOST_GROUPS = 5  # in a note
_DIFFERENCE = {
    "label": "case, spaces, Unicode form or final punctuation",
    "worker": "case, spaces or Unicode form",
}


@dataclass(frozen=True)
class Cleaned:
    """Columns after cleaning.

    Attributes
    ----------
    coded : dict of str to Coded
        Role -> codes and distinct values.
    renamed : dict of str to dict
        Role ("label", "worker") -> {spelling in the file: name}, for the names that changed.
    notes : dict of str to str
        What was merged, and what looks alike and was kept apart: code -> sentence.
    """

    coded: dict[str, Coded]
    renamed: Renamed = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)


def clean(
    coded: Mapping[str, Coded], counting: Mask | slice, label_map: Mapping[str, str], merge_spellings: bool
) -> Cleaned:
    """Apply the map of labels, then find names that differ in spelling only, and merge them on request.

    Parameters
    ----------
    coded : mapping of str to Coded
        Columns by role.
    counting : ndarray of bool of shape (n_rows,), or slice
        The rows that the format does not exclude; spellings of classes elsewhere do not matter. Workers are those of
        all rows: a worker who only skipped items is the same worker.
    label_map : mapping of str to str
        Label in the file -> label to read instead; an empty text means that there is no label.
    merge_spellings : bool
        Whether classes and worker ids that differ in spelling only become one.

    Returns
    -------
    Cleaned
        Columns, renamed values, and notes.
    """
    columns, renamed, notes = dict(coded), {"label": dict[str, str](), "worker": dict[str, str]()}, dict[str, str]()
    if label_map:
        texts = columns["label"].values.to_list()
        given = {text: new for text in texts if (new := _mapped(text, label_map)) != text}
        columns["label"] = rename(columns["label"], given)
        renamed["label"] |= given
        unused = [name for name in label_map if name not in texts and name not in {t.strip() for t in texts}]
        if unused:
            names = listed([repr(shorten(name)) for name in unused])
            notes["label_map_unused"] = f"The label map names labels that the export does not have: {names}."
    for role, fold in _FOLDS.items():
        groups = spelling_groups(_counts(columns[role], counting if role == "label" else slice(None)), fold)
        if not groups:
            continue
        if merge_spellings:
            chosen = {other: names[0] for names in groups for other in names[1:]}
            columns[role] = rename(columns[role], chosen)
            earlier = {old: chosen.get(new, new) for old, new in renamed[role].items()}
            renamed[role] = chosen | earlier
        notes |= _note(role, groups, merge_spellings)
    return Cleaned(columns, {role: names for role, names in renamed.items() if names}, notes)


def rename(column: Coded, names: Mapping[str, str]) -> Coded:
    """Give values new names; values that get the same name become one.

    Parameters
    ----------
    column : Coded
        Codes and distinct values.
    names : mapping of str to str
        Value -> new name; others stay.

    Returns
    -------
    Coded
        The new codes; values are sorted again.

    Examples
    --------
    >>> codes, values = rename(Coded(np.array([0, 1, 2, -1], np.int32), pl.Series(["NO", "no", "yes"])), {"NO": "no"})
    >>> codes.tolist(), values.to_list()
    ([0, 0, 1, -1], ['no', 'yes'])
    """
    if not names:
        return column
    new = [names.get(text, text) for text in column.values.to_list()]
    values = sorted(set(new))
    place = {text: code for code, text in enumerate(values)}
    code: npt.NDArray[np.int32] = np.array([*(place[text] for text in new), -1], np.int32)  # code -1, null, stays
    return Coded(code[column.codes], pl.Series(values, dtype=pl.String))


def _mapped(text: str, label_map: Mapping[str, str]) -> str:
    """Return the label to read for a text: the map may name it with or without outer space."""
    return label_map.get(text, label_map.get(text.strip(), text))


def _counts(column: Coded, rows: Mask | slice) -> dict[str, int]:
    """Return the number of rows of each value that occurs in these rows, blank ones left out."""
    codes = column.codes[rows]
    counts = np.bincount(codes[codes >= 0], minlength=len(column.values)).tolist()
    return {text: n for text, n in zip(column.values.to_list(), counts) if n and text.strip()}


def _note(role: str, groups: Sequence[Sequence[str]], merged: bool) -> dict[str, str]:
    """Return the note on names that differ in spelling only."""
    n_names = sum(map(len, groups))
    shown = _several([_joined(names) for names in groups])
    if merged:
        what = f"{n_names} spellings of {_PLURALS[role]} were merged into {len(groups)}"
        each = _several([f"{_joined(names[1:])} into {shorten(names[0])!r}" for names in groups])
        return {f"merged_{_CODES[role]}": f"{what}, the most frequent spelling of each: {each}."}
    remedy = "Add --merge-spellings to merge them (in Python: merge_spellings=True)"
    by_map = ", or --map FILE with columns from,to to rename some of them" if role == "label" else ""
    return {
        f"look_alike_{_CODES[role]}": f"{n_names} {_PLURALS[role]} differ in {_DIFFERENCE[role]} only, and were kept "
        f"apart: {shown}. {remedy}{by_map}."
    }


def _several(groups: Sequence[str]) -> str:
    """Return the first groups, and the number of the others."""
    more = f"; and {len(groups) - _MOST_GROUPS} more" if len(groups) > _MOST_GROUPS else ""
    return "; ".join(groups[:_MOST_GROUPS]) + more


def _joined(names: Sequence[str]) -> str:
    """Return names that can be told apart: with escapes where they look the same."""
    look_the_same = len({normalize("NFKC", name) for name in names}) < len(names)
    return " and ".join((ascii if look_the_same else repr)(shorten(name)) for name in names)
