"""The files of one export, each read by its format, and joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from manyhands.exceptions import AnnotationError
from manyhands.io.formats import read_document
from manyhands.io.formats.fields_of_items import add_fields
from manyhands.io.formats.group_columns import count_groups
from manyhands.io.formats.weight_columns import refuse_unused
from manyhands.io.read.concatenation import concatenate
from manyhands.io.read.documents import Document, Folder, open_document, parse
from manyhands.io.read.item_fields import ItemFields
from manyhands.io.read.judgements import ColumnOptions, Judgements
from manyhands.progress import report
from manyhands.writing import MANIFEST

_RESULTS = {"labels.csv", "workers.csv", "summary.json", MANIFEST}


def read_parts(
    paths: Sequence[Any], column_options: ColumnOptions, format: str | None, encoding: str | None, with_fields: bool
) -> tuple[Judgements, ItemFields | None]:
    """Read the files of an export, and join their judgements.

    Parameters
    ----------
    paths : sequence of str, Path or data frame
        Files, folders or frames; batches of one job.
    column_options : ColumnOptions
        Columns and the question that the caller named.
    format : str or None
        Name of the format; None to recognise it.
    encoding : str or None
        Encoding of text files that are not UTF-8.
    with_fields : bool
        Whether the fields of the items are collected.

    Returns
    -------
    judgements : Judgements
        The rows of all files.
    fields : ItemFields or None
        The fields of the items, if they were asked for.

    Raises
    ------
    AnnotationError
        If a file cannot be read, or there is none.
    """
    parts: list[Judgements] = []
    fields = ItemFields() if with_fields else None
    for at, path in enumerate(paths):
        report(at, len(paths) + 1, "reading files")
        for document in _documents(path, encoding):
            parts.append(read_document(document, column_options, format))
            if parts[-1].weight is None:
                refuse_unused(column_options, parts[-1].format, parts[-1].source)
            if column_options.group_column is not None:
                parts[-1].groups.append(count_groups(document, parts[-1], column_options.group_column))
            if fields is not None:
                add_fields(fields, document, parts[-1], column_options)
            del document  # the next one takes its memory
    if not parts:
        shown = paths[0] if len(paths) == 1 else list(paths)
        raise AnnotationError(f"{shown} holds no files to read. Give the path of an export.")
    report(len(paths), len(paths) + 1, "reading files")
    return concatenate(parts), fields


def _documents(path: Any, encoding: str | None) -> list[Document]:
    """Return one document, or the files of a folder that is not an export as a whole."""
    from manyhands.io.formats import recognises_folder

    document = open_document(path, encoding)
    if not isinstance(document, Folder) or recognises_folder(document):
        return [document]
    _refuse_results(document)
    return [parse(source, encoding) for source in document.members.values() if source.size]


def _refuse_results(folder: Folder) -> None:
    """Refuse a folder that `manyhands aggregate` wrote: its tables have no labels of workers."""
    if folder.members.keys() >= _RESULTS:
        raise AnnotationError(
            f"{folder.name} has the results of manyhands aggregate, not the labels of workers. Name the file that was "
            f"aggregated; to read one of the results all the same, name that file."
        )
