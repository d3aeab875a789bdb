"""Step 3 of reading: one module per annotation tool or table layout, which finds what is where in its exports.

Each module has ``recognise(document)``, which returns the name of the format or None, and
``read(document, format_name, options)``, which returns the `Judgements`. Modules are asked in the order of `_MODULES`:
exports that carry marks of one tool come before tables that any program may have written.

Tools: appen argilla doccano ground_truth label_studio labelbox mturk prodigy scale toloka
Layouts: long (a row per judgement), wide (a column per worker), survey (a row per worker), lists, vote_counts, words
Beside the labels: fields_of_items and item_field_tables (what a file says about items), item_entries (entries by item)
Shared: fields (JSON objects), grids (wide and survey), item_columns and numbered_items (uploaded columns of a task)
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.formats import wide
from manyhands.io.formats.repeated_headers import blank_repeated_headers
from manyhands.io.read.documents import READABLE, Document, Folder, Table
from manyhands.io.read.judgements import ColumnOptions, Judgements
from manyhands.spelling import suggest

_MODULES = (
    "label_studio",
    "mturk",
    "ground_truth",
    "toloka",
    "appen",
    "prodigy",
    "doccano",
    "argilla",
    "labelbox",
    "scale",
    "lists",
    "words",
    "survey",
    "wide",
    "long",
)
_LAYOUTS = ("words", "survey", "wide", "long")
NAMES: dict[str, str] = {  # name of a format -> the module that reads it
    "appen": "appen",
    "argilla": "argilla",
    "counts": "lists",
    "doccano": "doccano",
    "ground-truth": "ground_truth",
    "label-studio": "label_studio",
    "label-studio-csv": "label_studio",
    "label-studio-min": "label_studio",
    "labelbox": "labelbox",
    "lewidi": "lists",
    "lists": "lists",
    "long": "long",
    "matrix": "words",
    "mturk": "mturk",
    "mturk-api": "mturk",
    "nltk": "words",
    "peerannot": "lists",
    "prodigy": "prodigy",
    "scale": "scale",
    "survey": "survey",
    "toloka": "toloka",
    "toloka-api": "toloka",
    "wide": "wide",
}


class Format(Protocol):
    """Interface of the modules of this package."""

    def recognise(self, document: Document) -> str | None:
        """Return the name of the document's format, or None if it is not one of this module."""

    def read(self, document: Document, format_name: str, options: ColumnOptions) -> Judgements:
        """Return the judgements of a document in this format."""


def read_document(document: Document, options: ColumnOptions, format_name: str | None = None) -> Judgements:
    """Read the judgements of a document.

    Parameters
    ----------
    document : Table, Records, Words or Folder
        A parsed file or folder.
    options : ColumnOptions
        Columns and question that the caller named.
    format_name : str or None, default=None
        Name of the format; None to recognise it.

    Returns
    -------
    Judgements
        One row per judgement.

    Raises
    ------
    AnnotationError
        If the format is unknown, or the document inconsistent.
    ParameterError
        If there is no format of this name.
    """
    document = blank_repeated_headers(document) if isinstance(document, Table) else document
    judgements = _read(document, options, format_name)
    if isinstance(document, Table) and document.notes:
        judgements.notes = document.notes | judgements.notes
    return judgements


def _read(document: Document, options: ColumnOptions, format_name: str | None) -> Judgements:
    """Read a document with the module of its format."""
    if format_name is not None:
        if format_name not in NAMES:
            raise ParameterError(f"There is no format called {format_name!r}.{suggest(format_name, sorted(NAMES))}")
        return _module(NAMES[format_name]).read(document, format_name, options)
    if options.item and options.worker and options.label:  # all three columns are named: a long table
        return _module("long").read(document, "long", options)
    if wide.names_workers(document, options):
        return wide.read(document, "wide", options)
    for name in _MODULES:
        module = _module(name)
        found = module.recognise(document)
        if found is not None:
            return module.read(document, found, options)
    raise AnnotationError(
        f"{document.name} is in no format that manyhands supports. It reads {READABLE}; see docs/formats.md."
    )


def recognised(document: Document, *, layouts: bool = True) -> str | None:
    """Return the name of a document's format.

    Parameters
    ----------
    document : Table, Records, Words or Folder
        A parsed file or folder.
    layouts : bool, default=True
        Whether layouts count that any table may have: a row per judgement, a column or a row per worker, words.

    Returns
    -------
    str or None
        Name of the format; None if no module recognises it.
    """
    names = [name for name in _MODULES if layouts or name not in _LAYOUTS]
    return next((found for name in names if (found := _module(name).recognise(document)) is not None), None)


def _module(name: str) -> Format:
    """Import a module of this package."""
    return cast(Format, import_module(f"manyhands.io.formats.{name}"))


def recognises_folder(folder: Folder) -> bool:
    """Whether a folder is one export as a whole, rather than several files.

    Parameters
    ----------
    folder : Folder
        The folder.

    Returns
    -------
    bool
        True if a format recognises it.
    """
    return any(_module(name).recognise(folder) is not None for name in _MODULES)
