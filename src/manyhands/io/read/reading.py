"""`read_export` and `read_annotations`: from an export to Annotations, with an account of every row."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from manyhands.annotations import Annotations
from manyhands.data_frames import is_frame, library_of
from manyhands.encoding import unpaired_surrogate
from manyhands.exceptions import AnnotationError, CrowdWarning, ParameterError
from manyhands.io.formats.fields_of_items import finish_fields
from manyhands.io.formats.group_columns import settle_groups
from manyhands.io.read.export_parts import read_parts
from manyhands.io.read.frame_types import frame_types
from manyhands.io.read.judgements import ColumnOptions
from manyhands.io.read.reading_result import Reading as Reading
from manyhands.io.read.reading_steps import make_reading
from manyhands.io.read.row_filtering import ReadOptions
from manyhands.progress_display import showing


def read_export(
    path: Any,
    *,
    item: str | None = None,
    worker: str | None = None,
    label: str | None = None,
    question: str | None = None,
    format: str | None = None,
    duplicates: str = "last",
    missing: str | Sequence[str] = (),
    combinations: bool = False,
    encoding: str | None = None,
    item_ids: Any = None,
    worker_ids: Any = None,
    classes: Any = None,
    types: Mapping[str, Callable[[str], Any]] | None = None,
    label_map: Mapping[str, str] | None = None,
    merge_spellings: bool = False,
    rare_classes: str = "drop",
    weight: str | None = None,
    label_probs: str | None = None,
    verbose: int = 1,
    item_fields: bool = False,
    times: bool = False,
    group_column: str | None = None,
) -> Reading:
    """Read an export of any supported format, and account for every row.

    The format is recognised from the content of the file. Warnings about the file are issued as `CrowdWarning` and kept
    in `Reading.notes`.

    Parameters
    ----------
    path : str, Path, data frame, or list of these
        A file, a folder, a zip or gzip file, ``"-"`` for standard input, or a data frame of pandas, polars or
        pyarrow. Files in a list are batches of one job and are read as one.
    item : str, default=None
        Column or field with the item ids, where it does not have a usual name.
    worker : str, default=None
        Column or field with the worker ids; several columns, separated by commas, for a wide table.
    label : str, default=None
        Column or field with the labels.
    question : str, default=None
        Question whose answers are read, where there are several; ``"name=choice"`` asks whether one choice of a
        multiple-choice question was selected.
    format : str, default=None
        Name of the format; None to recognise it (docs/formats.md lists the names).
    duplicates : {"last", "first", "all", "share", "error"}, default="last"
        Which label counts if a worker labelled an item several times; "share" makes the labels one vote with a share
        for each class, "error" refuses such files.
    missing : str or sequence of str, default=()
        Labels that mean "no label", beside blank cells.
    combinations : bool, default=False
        Take every combination of selected choices as one class.
    encoding : str, default=None
        Encoding of text files that are not UTF-8, such as ``"cp1252"``.
    item_ids : sequence, default=None
        Ids of all items in the wanted order, as in `Annotations.from_triples`; None for those that occur, in the
        order of their first appearance.
    worker_ids : sequence, default=None
        Ids of all workers in the wanted order.
    classes : sequence, default=None
        All classes in the wanted order.
    types : mapping of str to callable, default=None
        Conversion of ``"item"``, ``"worker"`` or ``"label"`` from text, such as ``{"label": int}``. Without it, ids and
        labels of files are text; those of a data frame keep the type of their column where it is of integers, truth
        values or floats.
    label_map : mapping of str to str, default=None
        Label in the file -> label to read instead, such as ``{"Y": "yes", "n/a": ""}``; an empty text means that there
        is no label.
    merge_spellings : bool, default=False
        Whether classes and worker ids that differ in case, outer space or Unicode form only (classes also: in final
        punctuation) become one, under the most frequent spelling. A note says what was merged or looks alike.
    rare_classes : {"drop", "keep", "error", "merge:LABEL"}, default="drop"
        What is done with the labels of a stray class: at most five labels, fewer than 1 in 20,000, never chosen by two
        workers for one item. "drop" leaves the labels out and keeps their items; a note says so.
    weight : str, default=None
        Column of a long table with the weight of each label, such as the probability that a judge gives it.
    label_probs : str, default=None
        Columns of a long table with the probability of each class, separated by commas.
    verbose : {0, 1}, default=1
        1 shows a progress bar in a terminal or notebook after two seconds, 0 does not.
    item_fields : bool, default=False
        Whether `Reading.item_fields` gets what the file says about each item: its text, its address, any column.
    times : bool, default=False
        Whether `Reading.times` gets the time of each label, where the file has times.
    group_column : str, default=None
        Column that describes workers, such as their country, for `Reading.groups`; in a Label Studio export, a field
        of the users.

    Returns
    -------
    Reading
        The annotations, the ledger, and what else the file holds.

    Raises
    ------
    AnnotationError
        If the file cannot be read, is in no supported format, or is inconsistent.
    LimitError
        If it is too large, or unpacks to too much.
    ParameterError
        If an option has a value that is not allowed.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"task": ["a", "a", "b"], "worker": ["w1", "w2", "w1"], "label": ["yes", "no", ""]})
    >>> reading = read_export(table)
    >>> reading.annotations
    Annotations(2 labels on 2 items by 2 workers, 2 classes)
    >>> print(reading.ledger)
    3 rows read, 2 kept, 1 no label
    """
    missing = (missing,) if isinstance(missing, str) else tuple(missing)
    invalid = unpaired_surrogate((item, worker, label, question, weight, label_probs, group_column, *missing))
    if invalid is not None:
        raise ParameterError(
            f"The name {invalid!r} that was given is not text: it holds an unpaired surrogate. Type it again."
        )
    column_options = ColumnOptions(item, worker, label, question, missing, weight, label_probs, group_column)
    ids = {"item": item_ids, "worker": worker_ids, "label": classes}
    read_options = ReadOptions(duplicates, missing, ids, types, label_map, merge_spellings, rare_classes, times)
    paths = path if isinstance(path, list | tuple) else [path]
    with showing(verbose):
        judgements, fields = read_parts(paths, column_options, format, encoding, item_fields)
        own_types = frame_types(paths, judgements)
        reading = make_reading(judgements, question, combinations, read_options, own_types)
        if fields is not None:
            finish_fields(fields, judgements.format, (types or own_types).get("item"))
    reading = replace(reading, encoding=encoding, item_fields=fields)
    if group_column is not None:
        renamed = reading.renamed.get("worker", {})
        groups, notes = settle_groups(judgements.groups, group_column, reading.source, renamed)
        reading = replace(reading, groups=groups, notes=reading.notes | notes)
    if is_frame(paths[0]):
        reading = replace(reading, annotations=reading.annotations.from_library(library_of(paths[0])))
    for code_word, sentence in reading.notes.items():
        warnings.warn(f"{code_word}: {sentence}", CrowdWarning, stacklevel=2)
    return reading


def read_annotations(
    path: Any,
    *,
    item: str | None = None,
    worker: str | None = None,
    label: str | None = None,
    question: str | None = None,
    format: str | None = None,
    duplicates: str = "last",
    missing: str | Sequence[str] = (),
    combinations: bool = False,
    encoding: str | None = None,
    item_ids: Any = None,
    worker_ids: Any = None,
    classes: Any = None,
    types: Mapping[str, Callable[[str], Any]] | None = None,
    label_map: Mapping[str, str] | None = None,
    merge_spellings: bool = False,
    rare_classes: str = "drop",
    weight: str | None = None,
    label_probs: str | None = None,
    verbose: int = 1,
) -> Annotations:
    """Read the labels of an export of any supported format.

    Use `manyhands.io.read_export` to also get the ledger of excluded rows, the notes and the gold labels of the file.

    Parameters
    ----------
    path : str, Path, data frame, or list of these
        A file, a folder, a zip or gzip file, ``"-"`` for standard input, or a data frame of pandas, polars or
        pyarrow. Files in a list are batches of one job and are read as one.
    item : str, default=None
        Column or field with the item ids, where it does not have a usual name.
    worker : str, default=None
        Column or field with the worker ids; several columns, separated by commas, for a wide table.
    label : str, default=None
        Column or field with the labels.
    question : str, default=None
        Question whose answers are read, where there are several; ``"name=choice"`` asks whether one choice of a
        multiple-choice question was selected.
    format : str, default=None
        Name of the format; None to recognise it (docs/formats.md lists the names).
    duplicates : {"last", "first", "all", "share", "error"}, default="last"
        Which label counts if a worker labelled an item several times; "share" makes the labels one vote with a share
        for each class, "error" refuses such files.
    missing : str or sequence of str, default=()
        Labels that mean "no label", beside blank cells.
    combinations : bool, default=False
        Take every combination of selected choices as one class.
    encoding : str, default=None
        Encoding of text files that are not UTF-8, such as ``"cp1252"``.
    item_ids : sequence, default=None
        Ids of all items in the wanted order, as in `Annotations.from_triples`; None for those that occur, in the
        order of their first appearance.
    worker_ids : sequence, default=None
        Ids of all workers in the wanted order.
    classes : sequence, default=None
        All classes in the wanted order.
    types : mapping of str to callable, default=None
        Conversion of ``"item"``, ``"worker"`` or ``"label"`` from text, such as ``{"label": int}``. Without it, ids and
        labels of files are text; those of a data frame keep the type of their column where it is of integers, truth
        values or floats.
    label_map : mapping of str to str, default=None
        Label in the file -> label to read instead, such as ``{"Y": "yes", "n/a": ""}``; an empty text means that there
        is no label.
    merge_spellings : bool, default=False
        Whether classes and worker ids that differ in case, outer space or Unicode form only (classes also: in final
        punctuation) become one, under the most frequent spelling. A note says what was merged or looks alike.
    rare_classes : {"drop", "keep", "error", "merge:LABEL"}, default="drop"
        What is done with the labels of a stray class: at most five labels, fewer than 1 in 20,000, never chosen by two
        workers for one item. "drop" leaves the labels out and keeps their items; a note says so.
    weight : str, default=None
        Column of a long table with the weight of each label, such as the probability that a judge gives it.
    label_probs : str, default=None
        Columns of a long table with the probability of each class, separated by commas.
    verbose : {0, 1}, default=1
        1 shows a progress bar in a terminal or notebook after two seconds, 0 does not.

    Returns
    -------
    Annotations
        The labels that count.

    Raises
    ------
    AnnotationError
        If the file cannot be read, is in no supported format, is inconsistent, or holds no labels of single workers.
    LimitError
        If it is too large, or unpacks to too much.
    ParameterError
        If an option has a value that is not allowed.

    Examples
    --------
    >>> import polars as pl
    >>> table = pl.DataFrame({"task": ["a", "a", "b"], "worker": ["w1", "w2", "w1"], "label": ["1", "2", "1"]})
    >>> read_annotations(table, types={"label": int}).classes
    array([1, 2])
    """
    reading = read_export(
        path,
        item=item,
        worker=worker,
        label=label,
        question=question,
        format=format,
        duplicates=duplicates,
        missing=missing,
        combinations=combinations,
        encoding=encoding,
        item_ids=item_ids,
        worker_ids=worker_ids,
        classes=classes,
        types=types,
        label_map=label_map,
        merge_spellings=merge_spellings,
        rare_classes=rare_classes,
        weight=weight,
        label_probs=label_probs,
        verbose=verbose,
    )
    if reading.refusal is not None:
        raise AnnotationError(reading.refusal)
    return reading.annotations
