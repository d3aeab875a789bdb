"""`read_item_fields`: the fields of items alone, from an export or from a table of items."""

from __future__ import annotations

from typing import Any

from manyhands.exceptions import AnnotationError, SeveralQuestionsError
from manyhands.io.formats import read_document, recognised
from manyhands.io.formats.fields_of_items import add_fields, finish_fields
from manyhands.io.formats.long import as_table, has_roles
from manyhands.io.messages import listed
from manyhands.io.read.column_lookup import find_column
from manyhands.io.read.companion_tables import find_common
from manyhands.io.read.documents import Document, Folder, Table, open_document, parse
from manyhands.io.read.item_fields import ItemFields
from manyhands.io.read.judgements import ColumnOptions


def read_item_fields(path: Any, *, item: str | None = None, encoding: str | None = None) -> ItemFields:
    """Read what a file says about each item.

    Parameters
    ----------
    path : str, Path or data frame
        An export of an annotation tool, a table of labels, or a table with a row for each item.
    item : str or None, default=None
        Column or field with the item ids; None for the usual one of the format.
    encoding : str or None, default=None
        Encoding of text files that are not UTF-8.

    Returns
    -------
    ItemFields
        The fields.

    Raises
    ------
    AnnotationError
        If the file cannot be read, or a table has no column of item ids.
    """
    found, format_name = ItemFields(), "items"
    for document in _documents(path, encoding):
        exported = _export_format(document)
        if exported is None:
            _add_items(found, as_table(document), item)
        else:
            format_name = _add_export(found, document, exported, item)
    finish_fields(found, format_name)
    return found


def fields_of_export(document: Document, item: str | None, named: bool) -> ItemFields | None:
    """Return the fields of the items of an export of a tool, or of a table of labels with several rows per item.

    Parameters
    ----------
    document : Document
        A parsed file.
    item : str or None
        Field with the item ids that the caller named.
    named : bool
        Whether the caller named columns; then a table of labels is a table like any other.

    Returns
    -------
    ItemFields or None
        The fields; None for a table of items.
    """
    exported = _export_format(document)
    if exported is None or (exported == "long" and (named or not _repeats_items(as_table(document), item))):
        return None
    found = ItemFields()
    finish_fields(found, _add_export(found, document, exported, item))
    return found


def _export_format(document: Document) -> str | None:
    """Return the format of an export; None for a table of items, which has no labels of workers."""
    found = recognised(document, layouts=False)
    if found is not None:
        return found
    header = document.header if isinstance(document, Table) else list(getattr(document, "first", {}))
    return "long" if has_roles(header) else None


def _repeats_items(table: Table, item: str | None) -> bool:
    """Whether an item has several rows."""
    at = find_common(table.header, "item") if item is None else find_column(table.header, item, "item", table.name)
    ids = None if at is None else table.column(at).drop_nulls()
    return ids is not None and ids.n_unique() < len(ids)


def _documents(path: Any, encoding: str | None) -> list[Document]:
    """Return one document, or the files of a folder that is not an export as a whole."""
    document = open_document(path, encoding)
    if not isinstance(document, Folder) or recognised(document) is not None:
        return [document]
    return [parse(source, encoding) for source in document.members.values() if source.size]


def _add_export(found: ItemFields, document: Document, format_name: str, item: str | None) -> str:
    """Add the fields of an export; they do not depend on the question."""
    options = ColumnOptions(item=item)
    try:
        judgements = read_document(document, options, format_name)
    except SeveralQuestionsError as error:
        options = ColumnOptions(item=item, question=error.questions[0])
        judgements = read_document(document, options, format_name)
    add_fields(found, document, judgements, options)
    return judgements.format


def _add_items(found: ItemFields, table: Table, item: str | None) -> None:
    """Add the columns of a table with a row for each item."""
    at = find_common(table.header, "item") if item is None else find_column(table.header, item, "item", table.name)
    if at is None:
        raise AnnotationError(
            f"{table.name} has no column that looks like ids of items. It has: {listed(table.header)}. Call it item."
        )
    others = [place for place in range(len(table.header)) if place != at]
    found.add_columns(table.column(at), [(table.header[place], table.original(place)) for place in others])
