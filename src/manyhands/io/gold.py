"""Gold: tables of items whose label is known."""

from __future__ import annotations

from pathlib import Path

from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError
from manyhands.io.documents import open_document
from manyhands.io.formats.long import COMMON_NAMES, as_table
from manyhands.io.names import listed, plain, shorten

_LABEL_NAMES = (*COMMON_NAMES["gold"], *COMMON_NAMES["label"])


def read_gold(path: str | Path, annotations: Annotations) -> dict[str, str]:
    """{item: class} of a table with a column for the item and one for its label; rows without a label are passed over.

    Items that are not among the annotations, classes nobody named, and two labels for one item are refused.
    """
    table = as_table(open_document(path))
    place = {role: _find(table.header, names, role, str(path)) for role, names in _ROLES.items()}
    known: dict[str, str] = {}
    items, labels = (table.column(place[role]).fill_null("").to_list() for role in ("item", "label"))
    for row, (item, label) in enumerate(zip(items, labels), start=1):
        if not label.strip():
            continue
        if known.setdefault(item, label) != label:
            said = f"both {shorten(known[item])!r} and {shorten(label)!r}"
            raise AnnotationError(f"{path}, row {row} after the header: {shorten(item)!r} is said to be {said}.")
    _refuse_unknown(path, known, annotations)
    return known


_ROLES = {"item": COMMON_NAMES["item"], "label": _LABEL_NAMES}


def _find(header: list[str], names: tuple[str, ...], role: str, path: str) -> int:
    plain_header = [plain(name) for name in header]
    for name in names:
        if plain(name) in plain_header:
            return plain_header.index(plain(name))
    raise AnnotationError(f"{path} has no column for the {role}. It has: {listed(header)}. Call it {names[0]}.")


def _refuse_unknown(path: str | Path, known: dict[str, str], annotations: Annotations) -> None:
    items, classes = set(annotations.item_ids.tolist()), set(annotations.classes.tolist())
    if not known:
        raise AnnotationError(f"{path} names no label for any item, so there is no gold in it.")
    strange = [item for item in known if item not in items]
    if strange:
        raise AnnotationError(
            f"{path} names {len(strange)} item(s) that are not in the export: {listed(strange)}. "
            f"The export has items such as {shorten(str(annotations.item_ids[0]))!r}."
        )
    new = sorted({label for label in known.values() if label not in classes})
    if new:
        raise AnnotationError(
            f"{path} names classes that no worker gave: {listed(new)}. There are: {listed(sorted(classes))}."
        )
