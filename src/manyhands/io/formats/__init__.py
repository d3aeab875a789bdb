"""One file per family of formats: how to know it, and what stands where in it.

Each module has `recognise(document)`, the name of the format or None, and `read(document, format_name, wishes)`.
The order matters: what carries the marks of one tool comes before tables that anyone may have written.
"""

from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.formats import wide
from manyhands.io.read.documents import READABLE, Document, Folder
from manyhands.io.read.judgements import ColumnOptions, Judgements

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
NAMES: dict[str, str] = {  # format -> the module that reads it
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
    """What a module of this package offers."""

    def recognise(self, document: Document) -> str | None: ...

    def read(self, document: Document, format_name: str, options: ColumnOptions) -> Judgements: ...


def read_document(document: Document, options: ColumnOptions, format_name: str | None = None) -> Judgements:
    """The judgements of a document, in the format that was named or recognised."""
    if format_name is not None:
        if format_name not in NAMES:
            raise ParameterError(f"There is no format called {format_name!r}. There are: {', '.join(sorted(NAMES))}.")
        return _module(NAMES[format_name]).read(document, format_name, options)
    if options.item and options.worker and options.label:  # who names all three columns means a plain table
        return _module("long").read(document, "long", options)
    if wide.names_workers(document, options):
        return wide.read(document, "wide", options)
    for name in _MODULES:
        module = _module(name)
        found = module.recognise(document)
        if found is not None:
            return module.read(document, found, options)
    raise AnnotationError(
        f"{document.name} is in no format that manyhands knows. It reads {READABLE}; see docs/formats.md."
    )


def _module(name: str) -> Format:
    return cast(Format, import_module(f"manyhands.io.formats.{name}"))


def recognises_folder(folder: Folder) -> bool:
    """Whether a folder is an export as a whole, rather than files that are each one."""
    return any(_module(name).recognise(folder) is not None for name in _MODULES)
