"""Entries of JSON exports with their items, for what is read beside the labels and for what is written back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from manyhands.io.formats.fields import field_of
from manyhands.io.formats.labelbox import item_of_entry
from manyhands.io.read.documents import Document, Folder, Records, Table, parse
from manyhands.io.read.json_files import as_text

Entry = dict[str, Any]
WITH_ENTRIES = ("argilla", "doccano", "labelbox", "prodigy")


def entries_with_items(document: Document, format_name: str, item: str | None) -> Iterator[tuple[str | None, Entry]]:
    """Yield every entry of an export with its item.

    Parameters
    ----------
    document : Records, Table or Folder
        An export that was read before, so that it is known to be valid.
    format_name : {"argilla", "doccano", "labelbox", "prodigy"}
        Its format.
    item : str or None
        Field with the item ids that the caller named; None for the usual one.

    Yields
    ------
    item : str or None
        The item id, as the format reads it.
    entry : dict
        The entry.
    """
    members = [parse(file) for file in document.members.values() if file.size] if isinstance(document, Folder) else []
    for member in members or [document]:
        for at, entry in enumerate(_objects(member), start=1):
            if format_name == "labelbox":
                yield item_of_entry(entry, item, member.name, at), entry
            else:
                yield as_text(_id(entry, format_name) if item is None else field_of(entry, item)), entry


def _id(entry: Entry, format_name: str) -> Any:
    """Return the id of an entry."""
    if format_name == "prodigy":
        return entry.get("_input_hash")
    if format_name == "argilla":
        return entry.get("_server_id" if entry.get("id") is None else "id")
    return entry.get("id", entry.get("doc_id"))


def _objects(document: Document) -> list[Entry]:
    """Return the objects of a JSON file, or the rows of a table."""
    if isinstance(document, Table):
        return [dict(zip(document.header, row)) for row in document.frame.iter_rows()]
    value = document.value if isinstance(document, Records) else []
    return [entry for entry in (value if isinstance(value, list) else [value]) if isinstance(entry, dict)]
