"""Tables of the truth: an item and its class in each row."""

from __future__ import annotations

from pathlib import Path

from manyhands.exceptions import AnnotationError
from manyhands.io.documents import open_document
from manyhands.io.formats.long import COMMON_NAMES, as_table
from manyhands.io.names import listed, plain, shorten

_LABELS = (*COMMON_NAMES["gold"], *COMMON_NAMES["label"])


def read_truth(path: str | Path, *, rows_in_order: bool = False) -> dict[str, str]:
    """{item: class}; rows without a class are passed over, and in order an item is the number of its row, from 0."""
    table = as_table(open_document(path))
    labels = table.column(_find(table.header, _LABELS, "label", path)).fill_null("").to_list()
    if rows_in_order:
        items = [str(row) for row in range(len(labels))]
    else:
        items = table.column(_find(table.header, COMMON_NAMES["item"], "item", path)).fill_null("").to_list()
    known: dict[str, str] = {}
    for row, (item, label) in enumerate(zip(items, labels), start=1):
        if label.strip() and known.setdefault(item, label) != label:
            said = f"both {shorten(known[item])!r} and {shorten(label)!r}"
            raise AnnotationError(f"{path}, row {row} after the header: {shorten(item)!r} is said to be {said}.")
    if not known:
        raise AnnotationError(f"{path} names no class for any item, so there is no truth in it.")
    return known


def _find(header: list[str], names: tuple[str, ...], role: str, path: str | Path) -> int:
    known = [plain(name) for name in header]
    for name in names:
        if plain(name) in known:
            return known.index(plain(name))
    raise AnnotationError(f"{path} has no column for the {role}. It has: {listed(header)}. Call it {names[0]}.")
