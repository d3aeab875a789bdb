"""Tables beside an export: features, truth, gold."""

from __future__ import annotations

from pathlib import Path

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.long import COMMON_NAMES, as_table
from manyhands.io.messages import listed, normalise_name
from manyhands.io.read.documents import Document, Folder, Records, Table, open_document

# Usual names of columns, the most usual first. The known class of an item may also be called its label.
_NAMES = {"item": COMMON_NAMES["item"], "label": (*COMMON_NAMES["gold"], *COMMON_NAMES["label"])}


def open_table(path: str | Path, what: str, document: Document | None = None) -> Table:
    """Open a file as a table.

    Parameters
    ----------
    path : str or Path
        The file.
    what : str
        What the table holds, such as ``"gold"``, for error messages.
    document : Document or None, default=None
        The file, if it was parsed before.

    Returns
    -------
    Table
        The table.

    Raises
    ------
    AnnotationError
        If the file does not exist or is not a table.
    """
    refuse_missing(path, what)
    document = open_document(path) if document is None else document
    if isinstance(document, Folder) or (isinstance(document, Records) and not document.objects):
        raise AnnotationError(f"{path} is not a table. Give a table of {what} with a row for each item.")
    return as_table(document)


def refuse_missing(path: str | Path, what: str) -> None:
    """Refuse a path that does not exist.

    Parameters
    ----------
    path : str or Path
        The path; ``"-"`` is standard input.
    what : str
        What the file holds, for the error message.

    Raises
    ------
    AnnotationError
        If it does not exist.
    """
    if str(path) != "-" and not Path(path).exists():
        raise AnnotationError(f"{path} does not exist. Give the file of {what}.")


def find_common(header: list[str], role: str) -> int | None:
    """Find a column by the usual names of its role.

    Parameters
    ----------
    header : list of str
        Names of the columns.
    role : {"item", "label"}
        What the column is for.

    Returns
    -------
    int or None
        Position of the column; None if there is none.
    """
    known = [normalise_name(name) for name in header]
    return next((known.index(normalise_name(name)) for name in _NAMES[role] if normalise_name(name) in known), None)


def column_of(table: Table, role: str) -> list[str]:
    """Return the cells of the column of a role.

    Parameters
    ----------
    table : Table
        The table.
    role : {"item", "label"}
        What the column is for.

    Returns
    -------
    list of str
        The cells; an empty text where a cell is empty.

    Raises
    ------
    AnnotationError
        If the table has no such column.
    """
    at = find_common(table.header, role)
    if at is None:
        raise AnnotationError(
            f"{table.name} has no column for the {role}. It has: {listed(table.header)}. Call it {role}."
        )
    return table.column(at).fill_null("").to_list()
