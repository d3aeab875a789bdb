"""Gold: tables of items whose label is known."""

from __future__ import annotations

import warnings
from pathlib import Path

from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.io.documents import open_document
from manyhands.io.formats.long import COMMON_NAMES, as_table
from manyhands.io.names import counted, listed, plain, shorten

_LABEL_NAMES = (*COMMON_NAMES["gold"], *COMMON_NAMES["label"])


def read_gold(path: str | Path, annotations: Annotations) -> dict[str, str]:
    """{item: class} of a table with a column for the item and one for its label; rows without a label are passed over.

    Items that are not among the annotations and classes that nobody named are left out and counted in a warning; if
    nothing is left, or an item has two labels, the table is refused.
    """
    table = as_table(open_document(path))
    place = {role: _find(table.header, names, role, str(path)) for role, names in _ROLES.items()}
    known: dict[str, str] = {}
    items, labels = (table.column(place[role]).fill_null("").to_list() for role in ("item", "label"))
    for row, (item, label) in enumerate(zip(items, labels)):
        if not label.strip():
            continue
        if known.setdefault(item, label) != label:
            said = f"both {shorten(known[item])!r} and {shorten(label)!r}"
            raise AnnotationError(f"{table.place(row)}: {shorten(item)!r} is said to be {said}.")
    return _usable(path, known, annotations)


_ROLES = {"item": COMMON_NAMES["item"], "label": _LABEL_NAMES}


def _find(header: list[str], names: tuple[str, ...], role: str, path: str) -> int:
    plain_header = [plain(name) for name in header]
    for name in names:
        if plain(name) in plain_header:
            return plain_header.index(plain(name))
    raise AnnotationError(f"{path} has no column for the {role}. It has: {listed(header)}. Call it {names[0]}.")


def _usable(path: str | Path, known: dict[str, str], annotations: Annotations) -> dict[str, str]:
    """What the annotations can use; the rest is told."""
    items, classes = set(annotations.item_ids.tolist()), set(annotations.classes.tolist())
    if not known:
        raise AnnotationError(f"{path} names no label for any item, so there is no gold in it.")
    here = {item: label for item, label in known.items() if item in items}
    if not here:
        raise AnnotationError(
            f"{path} names no item of the export: it has {listed(list(known))}; the export has items such as "
            f"{shorten(str(annotations.item_ids[0]))!r}."
        )
    usable = {item: label for item, label in here.items() if label in classes}
    if not usable:
        new = sorted(set(here.values()))
        raise AnnotationError(
            f"{path} names classes that no worker gave: {listed(new)}. There are: {listed(sorted(classes))}."
        )
    left_out = {"not in the export": len(known) - len(here), "of a class that nobody gave": len(here) - len(usable)}
    said = " and ".join(f"{counted(n, 'item')} {why}" for why, n in left_out.items() if n)
    if said:
        warnings.warn(f"gold_left_out: Of {path}, {said} were left out.", CrowdWarning, stacklevel=3)
    return usable
