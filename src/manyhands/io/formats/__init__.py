"""Step 3 of reading: one module per annotation tool or table layout, which finds what is where in its exports.

Each module begins with two functions: ``recognise(document)`` returns the name of the document's format, or None if it
is not one of this module; ``read(document, format_name, options)`` returns the `Judgements`. Below them stand the parts
of the export, from the outside to the inside. A new format is a module of this kind and a line in `FORMATS`.

Tools: appen argilla doccano ground_truth label_studio labelbox mturk prodigy scale toloka
Published data sets: lists
Layouts: long (a row per judgement), wide (a column per worker), survey (a row per worker), words (no header)
Shared by several: fields (fields of JSON objects, uploaded columns, tasks that show several items)
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from manyhands._core.spelling import suggest
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.documents import READABLE, Document, Folder, Table
from manyhands.io.formats import wide
from manyhands.io.formats.long import blank_repeated_headers
from manyhands.io.judgements import ColumnOptions, Judgements

# Module -> names of its formats. Modules are asked in this order: exports that carry marks of one tool come before
# tables that any program may have written.
FORMATS: dict[str, tuple[str, ...]] = {
    "label_studio": ("label-studio", "label-studio-min", "label-studio-csv"),
    "mturk": ("mturk", "mturk-api"),
    "ground_truth": ("ground-truth",),
    "toloka": ("toloka", "toloka-api"),
    "appen": ("appen",),
    "prodigy": ("prodigy",),
    "doccano": ("doccano",),
    "argilla": ("argilla-1", "argilla"),
    "labelbox": ("labelbox",),
    "scale": ("scale",),
    "lists": ("lists", "lewidi", "peerannot", "counts"),
    "words": ("matrix", "nltk"),
    "survey": ("survey",),
    "wide": ("wide",),
    "long": ("long",),
}
_LAYOUTS = ("words", "survey", "wide", "long")  # modules that recognise tables of any program
NAMES = {name: module for module, names in FORMATS.items() for name in names}  # name of a format -> its module


class Format(Protocol):
    """Interface of the modules of this package."""

    def recognise(self, document: Document) -> str | None:
        """Return the name of the document's format, or None if it is not one of this module."""

    def read(self, document: Document, format_name: str, options: ColumnOptions) -> Judgements:
        """Return the judgements of a document in this format."""


def check_format(name: str) -> None:
    """Refuse a format that does not exist."""
    if name not in NAMES:
        raise ParameterError(f"There is no format called {name!r}.{suggest(name, sorted(NAMES))}")


def read_document(document: Document, options: ColumnOptions, format_name: str | None = None) -> Judgements:
    """Read the judgements of a document."""
    document = blank_repeated_headers(document) if isinstance(document, Table) else document
    judgements = _read(document, options, format_name)
    if isinstance(document, Table) and document.notes:
        judgements.notes = document.notes | judgements.notes
    return judgements


def _read(document: Document, options: ColumnOptions, format_name: str | None) -> Judgements:
    """Read a document with the module of its format."""
    if format_name is not None:
        check_format(format_name)
        return _module(NAMES[format_name]).read(document, format_name, options)
    if options.item and options.worker and options.label:  # all three columns are named: a long table
        return _module("long").read(document, "long", options)
    if wide.names_workers(document, options):
        return wide.read(document, "wide", options)
    for name in FORMATS:
        module = _module(name)
        recognised_name = module.recognise(document)
        if recognised_name is not None:
            return module.read(document, recognised_name, options)
    raise AnnotationError(
        f"{document.name} is in no format that manyhands supports. It reads {READABLE}; see docs/formats.md."
    )


def recognised(document: Document, *, layouts: bool = True) -> str | None:
    """Return the name of a document's format."""
    modules = (_module(name) for name in FORMATS if layouts or name not in _LAYOUTS)
    return next((name for module in modules if (name := module.recognise(document)) is not None), None)


def _module(name: str) -> Format:
    """Import a module of this package."""
    return cast(Format, import_module(f"manyhands.io.formats.{name}"))


def recognises_folder(folder: Folder) -> bool:
    """Whether a folder is one export as a whole, rather than several files."""
    return any(_module(name).recognise(folder) is not None for name in FORMATS)
