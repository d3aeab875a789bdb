"""Tables that stand beside an export: features, truth, gold."""

from __future__ import annotations

from pathlib import Path

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.long import COMMON_NAMES, as_table
from manyhands.io.messages import listed, normalise_name
from manyhands.io.read.documents import Folder, Records, Table, open_document

# The names that a column may have, the likeliest first. What is known of an item may be called its label, too.
_NAMES = {"item": COMMON_NAMES["item"], "label": (*COMMON_NAMES["gold"], *COMMON_NAMES["label"])}


def open_table(path: str | Path, what: str) -> Table:
    """The table at a path; `what` is what the sentences call it."""
    refuse_missing(path, what)
    document = open_document(path)
    if isinstance(document, Folder) or (isinstance(document, Records) and not document.objects):
        raise AnnotationError(f"{path} is not a table. Give a table of {what} with a row for each item.")
    return as_table(document)


def refuse_missing(path: str | Path, what: str) -> None:
    """A sentence that says which of the user's files is not there."""
    if str(path) != "-" and not Path(path).exists():
        raise AnnotationError(f"{path} does not exist. Give the file of {what}.")


def find_common(header: list[str], role: str) -> int | None:
    """The place of the column that is called what a role ("item", "label") is usually called."""
    known = [normalise_name(name) for name in header]
    return next((known.index(normalise_name(name)) for name in _NAMES[role] if normalise_name(name) in known), None)


def column_of(table: Table, role: str) -> list[str]:
    """The cells of the column of a role; what is missing is empty."""
    at = find_common(table.header, role)
    if at is None:
        raise AnnotationError(
            f"{table.name} has no column for the {role}. It has: {listed(table.header)}. Call it {role}."
        )
    return table.column(at).fill_null("").to_list()
