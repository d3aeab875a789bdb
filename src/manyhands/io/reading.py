"""`read_export` and `read_annotations`: from an export to Annotations, with an account of every row.

The file: the result (`Reading`); the two functions; data frames that were passed instead of annotations; then the steps
in their order: files and judgements (`_read_parts`), types of a data frame, `_make_reading`, the question. Step 5, the
rows, is in `row_filtering`. Last, `measure_files` estimates how many rows a file has.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from manyhands._core.encoding import is_missing, unpaired_surrogate
from manyhands._core.progress import report, showing
from manyhands._core.writing import MANIFEST
from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError, CrowdWarning, ParameterError, SeveralChoicesError
from manyhands.frames import as_known_frame, is_frame, library_of
from manyhands.io.documents import Document, Folder, open_document, parse
from manyhands.io.formats import read_document, recognises_folder
from manyhands.io.formats.long import refuse_unused
from manyhands.io.item_fields import ItemFields, add_fields, count_groups, finish_fields, settle_groups
from manyhands.io.judgements import (
    NON_WORKER_REASONS,
    ORDER,
    ColumnOptions,
    Judgements,
    check_verdicts,
    note_on_verdicts,
)
from manyhands.io.messages import counted, find_question, listed
from manyhands.io.parquet_limits import FOOTER, Reader, ThriftError
from manyhands.io.row_filtering import (
    Ledger,
    ReadOptions,
    Rows,
    Selection,
    code_rows,
    filter_rows,
    notes_on_names,
    refuse_labels,
)
from manyhands.io.sources import GZIP, PARQUET

if TYPE_CHECKING:
    from manyhands.metrics.position_bias import PositionBias
    from manyhands.trust.machines import WorkerKind


@dataclass(frozen=True)
class Reading:
    """Result of reading an export.

    Attributes
    ----------
    annotations : Annotations
        The labels that count. With a `refusal` there are none, or they are no classes.
    columns : dict of str to str
        Where item, worker, label, time and gold were found in the file.
    ledger : Ledger
        Number of rows read, kept, and excluded by reason.
    notes : dict of str to str
        Warnings about the file: code -> sentence.
    source : str, default=""
        Name of the file.
    format : str, default="long"
        Name of the format that was recognised or given (docs/formats.md).
    question : str, default=""
        The question whose answers are the labels.
    questions : dict of str to int
        Number of rows that answer each question of the file.
    gold : dict
        Items whose label is known according to the file: item -> label.
    workers_known : bool, default=True
        False if the file counts votes without naming the workers.
    refusal : str or None, default=None
        Why no annotations can be read from this file; None if they can.
    encoding : str or None, default=None
        The text encoding that the caller named.
    renamed : dict of str to dict, default={}
        Role ("label", "worker") -> {spelling in the file: name}, for names that a map or merged spellings changed.
    kinds : dict of str to WorkerKind, default={}
        What the file says of workers: people or machines; worker as text -> kind.
    item_fields : ItemFields or None, default=None
        What the file says about each item; None unless it was asked for.
    times : ndarray of shape (n_annotations,) of int64 or None, default=None
        Microseconds since 1970 of each annotation, negative where it is unknown; None without times, and unless they
        were asked for.
    working_time : dict of object to ndarray, default={}
        Worker id -> seconds that they spent on each of their labels, where the file tells.
    groups : dict of str to str, default={}
        What a column of the file says of workers, such as their country: worker as text -> group; empty unless a
        column was named.
    left_out_workers : tuple of str, default=()
        Workers of the file whose labels do not count because the caller leaves them out.
    left_out_items : frozenset of str, default=frozenset()
        Items of the file that the caller leaves out.
    position_bias : dict of object to PositionBias, default={}
        Worker id -> how their verdicts depend on the order of presentation; empty unless the labels are pairwise
        verdicts with that order.
    """

    annotations: Annotations
    columns: dict[str, str]
    ledger: Ledger
    notes: dict[str, str] = field(default_factory=dict)
    source: str = ""
    format: str = "long"
    question: str = ""
    questions: dict[str, int] = field(default_factory=dict)
    gold: dict[Any, Any] = field(default_factory=dict)
    workers_known: bool = True
    refusal: str | None = None
    encoding: str | None = None
    renamed: dict[str, dict[str, str]] = field(default_factory=dict)
    kinds: dict[str, WorkerKind] = field(default_factory=dict)
    item_fields: ItemFields | None = None
    times: npt.NDArray[np.int64] | None = None
    working_time: dict[Any, npt.NDArray[np.float64]] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    left_out_workers: tuple[str, ...] = ()
    left_out_items: frozenset[str] = frozenset()
    position_bias: dict[Any, PositionBias] = field(default_factory=dict)


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
    abstain: str | Sequence[str] = (),
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
    exclude_workers: str | Sequence[str] = (),
    only_workers: str | Sequence[str] = (),
    exclude_items: str | Sequence[str] = (),
    only_items: str | Sequence[str] = (),
    verdicts: str | None = None,
    time: str | None = None,
    seconds: str | None = None,
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
        A file, a folder, a zip or gzip file, ``"-"`` for standard input, or a data frame of pandas, polars,
        pyarrow or another library that narwhals knows. Files in a list are batches of one job and are read as one.
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
    abstain : str or sequence of str, default=()
        Labels that mean that the worker looked and gave no label, as a labelling function that does not fire. They are
        no class, their items are kept, and the ledger counts them as ``abstained``.
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
    exclude_workers : str or sequence of str, default=()
        Workers whose labels are left out: ids, patterns such as ``"gpt-*"``, or files with one id per line. The ledger
        counts their rows as ``excluded_worker``.
    only_workers : str or sequence of str, default=()
        Workers whose labels alone count.
    exclude_items : str or sequence of str, default=()
        Items that are left out, with their labels; the ledger counts their rows as ``excluded_item``.
    only_items : str or sequence of str, default=()
        Items that alone are read.
    verdicts : {"position", "answer"}, default=None
        What the label of a pairwise verdict names in a table with a column of the presentation order (``order``,
        ``swapped`` or ``position``): the place of the answer or the answer itself. Labels of both orders count, and
        name answers by their place in the original order. None refuses such a table, unless its labels tell.
    time : str, default=None
        Column of a long table with the time of each label, where it does not have a usual name.
    seconds : str, default=None
        Column of a long table with the seconds that each label took, where it does not have a usual name.
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
    abstain = (abstain,) if isinstance(abstain, str) else tuple(abstain)
    names = (item, worker, label, question, weight, label_probs, group_column, time, seconds, *missing, *abstain)
    invalid = unpaired_surrogate(names)
    if invalid is not None:
        raise ParameterError(
            f"The name {invalid!r} that was given is not text: it holds an unpaired surrogate. Type it again."
        )
    check_verdicts(verdicts)
    no_label = missing + abstain  # of a matrix, either says that -1 is no sign of its own
    columns = item, worker, label, question, no_label, weight, label_probs, group_column, verdicts, time, seconds
    column_options = ColumnOptions(*columns)
    ids = {"item": item_ids, "worker": worker_ids, "label": classes}
    given = (exclude_workers, only_workers, exclude_items, only_items)
    selection = Selection(*((names,) if isinstance(names, str) else tuple(map(str, names)) for names in given))
    read_options = ReadOptions(
        duplicates, missing, abstain, ids, types, label_map, merge_spellings, rare_classes, times, selection
    )
    given_paths = path if isinstance(path, list | tuple) else [path]
    paths = [as_known_frame(part) if is_frame(part) else part for part in given_paths]  # lazy ones: evaluated once
    with showing(verbose):
        judgements, fields = _read_parts(paths, column_options, format, encoding, item_fields)
        own_types = _frame_types(paths, judgements)
        reading = _make_reading(judgements, question, combinations, read_options, own_types)
        if fields is not None:
            finish_fields(fields, judgements.format, (types or own_types).get("item"))
    reading = replace(reading, encoding=encoding, item_fields=fields)
    if group_column is not None:
        renamed = reading.renamed.get("worker", {})
        groups, notes = settle_groups(judgements.groups, group_column, reading.source, renamed)
        reading = replace(reading, groups=groups, notes=reading.notes | notes)
    if is_frame(paths[0]):
        reading = replace(reading, annotations=reading.annotations.with_frame_library(library_of(given_paths[0])))
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
    abstain: str | Sequence[str] = (),
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
    exclude_workers: str | Sequence[str] = (),
    only_workers: str | Sequence[str] = (),
    exclude_items: str | Sequence[str] = (),
    only_items: str | Sequence[str] = (),
    verdicts: str | None = None,
    time: str | None = None,
    seconds: str | None = None,
    verbose: int = 1,
) -> Annotations:
    """Read the labels of an export of any supported format.

    Use `manyhands.io.read_export` to also get the ledger of excluded rows, the notes and the gold labels of the file.

    Parameters
    ----------
    path : str, Path, data frame, or list of these
        A file, a folder, a zip or gzip file, ``"-"`` for standard input, or a data frame of pandas, polars,
        pyarrow or another library that narwhals knows. Files in a list are batches of one job and are read as one.
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
    abstain : str or sequence of str, default=()
        Labels that mean that the worker looked and gave no label, as a labelling function that does not fire. They are
        no class, their items are kept, and the ledger counts them as ``abstained``.
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
    exclude_workers : str or sequence of str, default=()
        Workers whose labels are left out: ids, patterns such as ``"gpt-*"``, or files with one id per line. The ledger
        counts their rows as ``excluded_worker``.
    only_workers : str or sequence of str, default=()
        Workers whose labels alone count.
    exclude_items : str or sequence of str, default=()
        Items that are left out, with their labels; the ledger counts their rows as ``excluded_item``.
    only_items : str or sequence of str, default=()
        Items that alone are read.
    verdicts : {"position", "answer"}, default=None
        What the label of a pairwise verdict names in a table with a column of the presentation order (``order``,
        ``swapped`` or ``position``): the place of the answer or the answer itself. Labels of both orders count, and
        name answers by their place in the original order. None refuses such a table, unless its labels tell.
    time : str, default=None
        Column of a long table with the time of each label, where it does not have a usual name.
    seconds : str, default=None
        Column of a long table with the seconds that each label took, where it does not have a usual name.
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
        abstain=abstain,
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
        exclude_workers=exclude_workers,
        only_workers=only_workers,
        exclude_items=exclude_items,
        only_items=only_items,
        verdicts=verdicts,
        time=time,
        seconds=seconds,
        verbose=verbose,
    )
    if reading.refusal is not None:
        raise AnnotationError(reading.refusal)
    return reading.annotations


# ----------------------------------------------------------------------------------------------------
# Labels of a data frame that was passed where `Annotations` are expected.

_OPTIONS = "mh.read_annotations(df, item=..., worker=..., label=...)"


def read_frame(frame: Any) -> Annotations:
    """Read a data frame with the default options of `manyhands.read_annotations`."""
    try:
        reading = read_export(frame)
    except AnnotationError as error:
        if "mh.read_annotations(" in str(error):
            raise
        raise AnnotationError(
            f"{error} {_OPTIONS} takes the names of columns and other options; pass on what it returns."
        ) from None
    if reading.refusal is not None:
        raise AnnotationError(reading.refusal)
    if reading.format == "wide":
        workers = listed([str(worker) for worker in reading.annotations.worker_ids])
        warnings.warn(
            f"wide_frame: The data frame was read as one column per worker ({workers}). If that is wrong, name the "
            f"columns: {_OPTIONS}.",
            CrowdWarning,
            stacklevel=2,
        )
    return reading.annotations


# ----------------------------------------------------------------------------------------------------
# Steps 1 to 3: the files of an export, each opened, parsed and read by its format, and joined.

_RESULTS = {"labels.csv", "workers.csv", "summary.json", MANIFEST}


def _read_parts(
    paths: Sequence[Any], column_options: ColumnOptions, format: str | None, encoding: str | None, with_fields: bool
) -> tuple[Judgements, ItemFields | None]:
    """Read the files of an export, and join their judgements."""
    parts: list[Judgements] = []
    fields = ItemFields() if with_fields else None
    for at, path in enumerate(paths):
        report(at, len(paths) + 1, "reading files")
        for document in _documents(path, encoding):
            parts.append(read_document(document, column_options, format))
            if parts[-1].swapped is None and parts[-1].weight is None:
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


# ----------------------------------------------------------------------------------------------------
# Step 3, several files: the batches of one job as one table of judgements.


def concatenate(parts: Sequence[Judgements]) -> Judgements:
    """Concatenate the judgements of several files of one format."""
    first = parts[0]
    if len(parts) == 1:
        return first
    for part in parts[1:]:
        _refuse_unlike(first, part)
    questions = list(dict.fromkeys(name for part in parts for name in part.answers))
    other_columns = [part.other_columns for part in parts if part.other_columns is not None]
    return Judgements(
        f"{first.source} and {len(parts) - 1} more",
        first.format,
        item=pl.concat([part.item.rename("item") for part in parts]),
        worker=pl.concat([part.worker.rename("worker") for part in parts]),
        answers={name: _concatenate_answers(parts, name) for name in questions},
        reason=_concatenate_column([part.reason for part in parts], parts, pl.String),
        time=_concatenate_column([part.time for part in parts], parts, pl.Int64),
        weight=_concatenate_column([part.weight for part in parts], parts, pl.Float64),
        seconds=_concatenate_column([part.seconds for part in parts], parts, pl.Float64),
        swapped=_concatenate_column([part.swapped for part in parts], parts, pl.Boolean),
        names_first=_concatenate_column([part.names_first for part in parts], parts, pl.Boolean),
        mapping=first.mapping,
        gold=_concatenate_gold(parts),
        notes=_concatenate_notes(parts),
        workers_known=all(part.workers_known for part in parts),
        refusal=next((part.refusal for part in parts if part.refusal), None),
        other_columns=pl.concat(other_columns, how="diagonal") if len(other_columns) == len(parts) else None,
        kinds={worker: kind for part in reversed(parts) for worker, kind in part.kinds.items()},
        groups=[counts for part in parts for counts in part.groups],
        files=tuple(piece for part in parts for piece in part.files or ((part.source, len(part), None),)),
    )


def _refuse_unlike(first: Judgements, part: Judgements) -> None:
    """Refuse files that cannot be one: of two formats, with items from two columns, or with numbered items."""
    if part.format != first.format:
        raise AnnotationError(
            f"{first.source} is {first.format}, but {part.source} is {part.format}. Read one format at a time."
        )
    items = [one.mapping.get("item") for one in (first, part)]
    if items[0] != items[1]:
        raise AnnotationError(
            f"Items are {items[0]} in {first.source}, but {items[1]} in {part.source}. Name one with `item=`."
        )
    if first.items_numbered or part.items_numbered:
        raise AnnotationError(
            f"The items of {first.source} and {part.source} have only numbers and no ids, so they may clash. "
            "Join the files, or give their items ids."
        )


def _concatenate_gold(parts: Sequence[Judgements]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the known answers of all files; where two files differ, either answer counts as right."""
    gold: dict[str, dict[str, tuple[str, ...]]] = {}
    for part in parts:
        for question, gold_of_items in part.gold.items():
            of_question = gold.setdefault(question, {})
            for item, right in gold_of_items.items():
                of_question[item] = tuple(dict.fromkeys(of_question.get(item, ()) + right))
    return gold


def _concatenate_notes(parts: Sequence[Judgements]) -> dict[str, str]:
    """Return the first sentence of each code, and the number of files with a different one."""
    sentences_of: dict[str, list[str]] = {}
    for part in parts:
        for code, sentence in part.notes.items():
            sentences_of.setdefault(code, []).append(sentence)
    notes = {}
    for code, sentences in sentences_of.items():
        others = len(sentences) - 1 if len(set(sentences)) > 1 else 0
        notes[code] = sentences[0] + (f" (Similar notes on {counted(others, 'more file')}.)" if others else "")
    return notes


def _concatenate_answers(parts: Sequence[Judgements], question: str) -> pl.Series:
    """Concatenate the answers to one question; text becomes lists where any part has lists."""
    columns = [part.answers.get(question) for part in parts]
    lists = any(column is not None and column.dtype != pl.String for column in columns)
    if not lists:
        joined_column = _concatenate_column(columns, parts, pl.String)
        assert joined_column is not None
        return joined_column
    wrapped = [
        column if column is None or column.dtype != pl.String else pl.Series(_in_lists(column)) for column in columns
    ]
    joined_lists = _concatenate_column(wrapped, parts, pl.List(pl.String))
    assert joined_lists is not None
    return joined_lists


def _in_lists(column: pl.Series) -> pl.Series:
    """Return each text as a list of one."""
    return pl.Series([None if answer is None else [answer] for answer in column], dtype=pl.List(pl.String))


def _concatenate_column(
    columns: Sequence[pl.Series | None], parts: Sequence[Judgements], dtype: Any
) -> pl.Series | None:
    """Concatenate a column; nulls for a part that has none, None if no part has one."""
    if all(column is None for column in columns):
        return None
    whole = [
        pl.Series("", [None] * len(part), dtype=dtype) if column is None else column.rename("").cast(dtype)
        for column, part in zip(columns, parts)
    ]
    return pl.concat(whole)


# ----------------------------------------------------------------------------------------------------
# Types of ids and labels in a data frame: every cell is read as text, and numbers come back as numbers.
#
# integers, and floats that are all whole      int
# other floats                                 float
# truth values                                 bool
# anything else, mixtures and other formats    text

_Converter = Callable[[str], Any]


def _frame_types(frames: Sequence[Any], judgements: Judgements) -> dict[str, _Converter]:
    """Return how ids and labels that were read from data frames become values of their own type again."""
    if not all(map(is_frame, frames)):
        return {}
    converters_of: dict[str, set[_Converter | None]] = {}
    for frame in frames:
        for role, convert in _types_of(frame, judgements).items():
            converters_of.setdefault(role, set()).add(convert)
    only = {role: converters.pop() for role, converters in converters_of.items() if len(converters) == 1}
    return {role: convert for role, convert in only.items() if convert is not None}


def _can_convert(values: pl.Series, convert: _Converter) -> bool:
    """Return whether each of some texts can be converted; blank ones do not matter."""
    try:
        _ = [convert(text) for text in values.to_list() if text.strip()]
    except ValueError:
        return False
    return True


def _types_of(frame: Any, judgements: Judgements) -> dict[str, _Converter | None]:
    """Return the conversion of each role in one frame; None is text."""
    names = list(frame.columns)
    place = {str(name): at for at, name in enumerate(names)}
    mapping = judgements.mapping
    if judgements.format == "long":
        return {role: _kind(_column(frame, place.get(mapping.get(role, "")))) for role in ("item", "worker", "label")}
    if judgements.format != "wide":
        return {}
    others = [at for at, name in enumerate(names) if str(name) not in (mapping.get("item"), mapping.get("gold"))]
    kinds = {_kind(_column(frame, at)) for at in others}
    numbered = all(isinstance(names[at], int) for at in others)
    return {
        "item": _kind(_column(frame, place.get(mapping.get("item", "")))),
        "worker": int if numbered else None,
        "label": kinds.pop() if len(kinds) == 1 else None,
    }


def _column(frame: Any, at: int | None) -> Any:
    """Return one column; None where there is none."""
    if at is None:
        return None
    return frame.to_series(at) if isinstance(frame, pl.DataFrame) else frame.iloc[:, at]


def _kind(column: Any) -> _Converter | None:
    """Return the conversion of a column from text; None is text."""
    if column is None:
        return None
    if isinstance(column, pl.Series):
        dtype = column.dtype
        kind = "i" if dtype.is_integer() else "f" if dtype.is_float() else "b" if dtype == pl.Boolean else "O"
    else:
        kind = getattr(column.dtype, "kind", "O")
    if kind in "iu":
        return int
    if kind == "b":
        return _truth_value
    if kind == "f":
        numbers = column.to_numpy() if isinstance(column, pl.Series) else column.to_numpy(np.float64, na_value=np.nan)
        return _number(numbers)
    return None if isinstance(column, pl.Series) else _kind_of_values(column.to_list())


def _number(numbers: Any) -> _Converter:
    """Return int where all numbers are whole, which missing values turned into floats; otherwise float."""
    numbers_there = numbers[~np.isnan(numbers)]
    return int if bool(np.all(np.isfinite(numbers_there) & (numbers_there == np.round(numbers_there)))) else float


def _kind_of_values(values: Iterable[Any]) -> _Converter | None:
    """Return the conversion of Python objects: text as soon as one of them is text."""
    kinds: set[type] = set()
    for value in values:
        if isinstance(value, str):
            return None
        if isinstance(value, bool | np.bool_ | int | np.integer):
            kinds.add(bool if isinstance(value, bool | np.bool_) else int)
        elif not is_missing(value):
            return None
    conversion: Mapping[type, _Converter] = {bool: _truth_value, int: int}
    return conversion[kinds.pop()] if len(kinds) == 1 else None


def _truth_value(text: str) -> bool:
    """Return the truth value that was written as text."""
    if text not in ("true", "false"):
        raise ValueError(f"{text!r} is neither true nor false")
    return text == "true"


# ----------------------------------------------------------------------------------------------------
# Steps 4 and 5: the question, the rows that count, and the notes, put together.


def _make_reading(
    judgements: Judgements,
    question: str | None,
    combinations: bool,
    read_options: ReadOptions,
    own_types: Mapping[str, Callable[[str], Any]],
) -> Reading:
    """Select the question, filter the rows, and collect the notes."""
    questions = judgements.questions or describe_questions(judgements)
    if judgements.refusal is not None and not judgements.answers:
        name, gold, labels = "", {}, pl.Series([None] * len(judgements), dtype=pl.String)
    else:
        name, labels = select_question(judgements, question, combinations, read_options.missing)
        gold = gold_of_question(judgements, name, combinations)
        judgements, labels = drop_other_questions(judgements, labels)
    rows = code_rows(judgements, labels, read_options)
    read_options = _with_own_types(read_options, rows, own_types)
    del labels
    judgements.release()
    renamed_labels = rows.renamed.get("label", {})
    gold = {at: new for at, label in gold.items() if (new := renamed_labels.get(label, label)).strip()}
    kept = filter_rows(judgements, rows, read_options, set(gold.values()))
    annotations = kept.annotations
    column = judgements.mapping.get(ORDER, "")
    verdict_notes = note_on_verdicts(kept.position_bias, column) if kept.position_bias else {}
    counts = np.bincount(annotations.label, minlength=annotations.n_classes)
    chosen = read_options.selection
    gold_of_items = _convert_gold(gold, read_options)
    if chosen.exclude_items or chosen.only_items:
        items = set(annotations.item_ids.tolist())
        gold_of_items = {item: label for item, label in gold_of_items.items() if item in items}
    left_out: set[str] = set()
    if chosen.exclude_workers or chosen.only_workers:
        left_out = set(rows.values("worker").to_list()) - set(map(str, annotations.worker_ids.tolist()))
    without: set[str] = set()
    if chosen.exclude_items or chosen.only_items:
        without = set(rows.values("item").to_list()) - set(map(str, annotations.item_ids.tolist()))
    return Reading(
        annotations,
        judgements.mapping,
        kept.ledger,
        judgements.notes | rows.notes | kept.notes | verdict_notes | notes_on_names(annotations),
        judgements.source,
        judgements.format,
        name,
        questions,
        gold_of_items,
        judgements.workers_known,
        judgements.refusal or refuse_labels(annotations.classes, counts, judgements.source, name),
        renamed=rows.renamed,
        times=kept.times,
        working_time=kept.working_time,
        position_bias=kept.position_bias,
        kinds={rows.renamed.get("worker", {}).get(name, name): kind for name, kind in judgements.kinds.items()},
        left_out_workers=tuple(sorted(left_out)),
        left_out_items=frozenset(without),
    )


def _with_own_types(
    read_options: ReadOptions, rows: Rows, own_types: Mapping[str, Callable[[str], Any]]
) -> ReadOptions:
    """Return the options with the types of a data frame, where the caller names neither types nor text as ids."""
    if read_options.types is not None:
        return read_options
    ids_by_caller = {role: ids for role, ids in (read_options.ids or {}).items() if ids is not None}
    kept = {
        role: convert
        for role, convert in own_types.items()
        if not any(isinstance(value, str) for value in ids_by_caller.get(role, ()))
        and _can_convert(rows.values(role), convert)
    }
    return replace(read_options, types=kept or None)


def _convert_gold(gold: dict[str, str], read_options: ReadOptions) -> dict[Any, Any]:
    """Convert gold labels to the types that were asked for; what cannot be converted is left out."""
    types = read_options.types or {}
    read_item, read_label = types.get("item", str), types.get("label", str)
    typed = {}
    for item, label in gold.items():
        with suppress(TypeError, ValueError):
            typed[read_item(item)] = read_label(label)
    return typed


# ----------------------------------------------------------------------------------------------------
# Step 4: which question of an export is meant, and how several choices in one answer become one label.

YES, NO = "yes", "no"  # the two classes of a question about one choice
JOINT = " + "  # joins the choices of a combination


def select_question(
    judgements: Judgements, question: str | None, combinations: bool = False, missing: Sequence[str] = ()
) -> tuple[str, pl.Series]:
    """Return the name of the question that is meant, and its answers as text.

    ``"topic=refund"`` asks for each answer to ``topic`` whether ``refund`` is among its choices. Without a name, the
    only question of the file is taken.
    """
    name, option = _find(judgements, question)
    answers = judgements.answers[name]
    if answers.dtype == pl.String and option is None:
        return name, answers
    choices = _choices(answers, missing)
    if option is not None:
        return f"{name}={option}", _is_chosen(judgements, name, option, choices)
    if combinations:
        return name, choices.list.sort().list.join(JOINT)
    several = (choices.list.len() > 1) & _ordinary(judgements)
    if several.any():
        options = _options(choices)
        raise SeveralChoicesError(
            f"{judgements.source}: {int(several.sum())} answer(s) to {name!r} have several choices. "
            f"Ask about one choice with `question=` ({listed([f'{name}={o}' for o in options])}), "
            "take every combination as a class of its own with `combinations=True`, or aggregate all choices into one "
            "table: aggregate with `by_choice=True`.",
            name,
            options,
        )
    return name, choices.list.first()


def gold_of_question(judgements: Judgements, chosen: str, combinations: bool) -> dict[str, str]:
    """Return the known labels of the selected question; items with several right answers are left out."""
    name, option = _find(judgements, chosen)
    right_answers = judgements.gold.get(name, {})
    if option is not None:
        sure = {item: right for item, right in right_answers.items() if option not in right or len(right) == 1}
        return {item: YES if option in right else NO for item, right in sure.items()}
    if combinations and judgements.answers[name].dtype != pl.String:
        return {item: JOINT.join(sorted(set(right))) for item, right in right_answers.items()}
    return {item: right[0] for item, right in right_answers.items() if len(right) == 1}


def drop_other_questions(judgements: Judgements, labels: pl.Series) -> tuple[Judgements, pl.Series]:
    """Drop rows of models, drafts and reviewers that answer other questions only.

    A worker who submitted a response without answering the question has left it unanswered, which is counted in the
    ledger; a model that was never asked has not.
    """
    if judgements.reason is None or len(judgements.answers) < 2:
        return judgements, labels
    answered = [_is_answered(column) for column in judgements.answers.values()]
    elsewhere = labels.is_null() & reduce(or_, answered)
    keep = ~(judgements.reason.is_in(_OF_ONE_QUESTION).fill_null(False) & elsewhere)
    return (judgements, labels) if keep.all() else (_filtered(judgements, keep), labels.filter(keep))


def _filtered(judgements: Judgements, keep: pl.Series) -> Judgements:
    """Keep some of the rows; their lines in the file are then not known any more."""
    return replace(
        judgements,
        item=judgements.item.filter(keep),
        worker=judgements.worker.filter(keep),
        answers={name: column.filter(keep) for name, column in judgements.answers.items()},
        reason=None if judgements.reason is None else judgements.reason.filter(keep),
        time=None if judgements.time is None else judgements.time.filter(keep),
        seconds=None if judgements.seconds is None else judgements.seconds.filter(keep),
        weight=None if judgements.weight is None else judgements.weight.filter(keep),
        swapped=None if judgements.swapped is None else judgements.swapped.filter(keep),
        names_first=None if judgements.names_first is None else judgements.names_first.filter(keep),
        other_columns=None if judgements.other_columns is None else judgements.other_columns.filter(keep),
        files=(),
    )


_OF_ONE_QUESTION = [*NON_WORKER_REASONS, "draft"]


def describe_questions(judgements: Judgements) -> dict[str, int]:
    """Return the number of rows that answer each question.

    Parameters
    ----------
    judgements : Judgements
        The rows.

    Returns
    -------
    dict of str to int
        Question -> number of rows.
    """
    return {name: int(_is_answered(column).sum()) for name, column in judgements.answers.items()}


def _is_answered(column: pl.Series) -> pl.Series:
    """Return where a column of answers has at least one choice."""
    return column.is_not_null() if column.dtype == pl.String else column.list.len().fill_null(0) > 0


def _ordinary(judgements: Judgements) -> pl.Series:
    """Return the rows that are submitted answers of workers, as far as the format knows."""
    if judgements.reason is None:
        return pl.Series([True]).new_from_index(0, len(judgements))
    return judgements.reason.is_null()


def _find(judgements: Judgements, question: str | None) -> tuple[str, str | None]:
    """Return the name of an existing question, and the choice that was asked about."""
    names = list(judgements.answers)
    if question is None:
        if not names:
            raise AnnotationError(f"{judgements.source} holds no answers, so there is nothing to read.")
        ordinary = _ordinary(judgements)
        names = [name for name in names if (_is_answered(judgements.answers[name]) & ordinary).any()] or names
        if len(names) == 1:
            return names[0], None
    return find_question(question, names, judgements.source)


def _choices(answers: pl.Series, missing: Sequence[str]) -> pl.Series:
    """Return the distinct choices of every answer, without blanks and missing words; null where none is left."""
    lists = pl.select(pl.concat_list(answers)).to_series() if answers.dtype == pl.String else answers
    not_missing = pl.element().filter(
        pl.element().is_not_null()
        & (pl.element().str.strip_chars() != "")
        & ~pl.element().str.strip_chars().is_in([word.strip() for word in missing])
    )
    table = pl.DataFrame({"lists": lists}).select(
        pl.col("lists").list.eval(not_missing).list.unique(maintain_order=True)
    )
    return table.select(pl.when(pl.col("lists").list.len() > 0).then(pl.col("lists"))).to_series()


def _is_chosen(judgements: Judgements, name: str, option: str, choices: pl.Series) -> pl.Series:
    """Return "yes" or "no" for each answer: whether it contains the choice."""
    options = _options(choices)
    if option not in options:
        raise AnnotationError(
            f"{judgements.source}: no answer to {name!r} has the choice {option!r}. Choices: {listed(options)}."
        )
    chosen = pl.DataFrame({"choices": choices}).select(pl.col("choices").list.contains(option)).to_series()
    return chosen.replace_strict({True: YES, False: NO}, default=None, return_dtype=pl.String)


def _options(choices: pl.Series) -> list[str]:
    """Return all choices that occur, sorted."""
    return sorted(choices.explode().unique().drop_nulls().to_list())


# ----------------------------------------------------------------------------------------------------
# How many rows a file has, without reading it: from the footer of a Parquet file, or from the first lines of text.

_SAMPLE = 1 << 20  # bytes of text from which the length of a line is estimated
_MAX_FOOTER = 1 << 28  # bytes; an estimate needs no more
_PARQUET_ROW = 4  # bytes of a row of a Parquet file whose footer cannot be read, packed


class FileSize(NamedTuple):
    """Size of the files of an export."""

    n_rows: int  # rows; an estimate for text files
    n_bytes: int
    unpacked: int  # bytes without gzip; an estimate for gzip files


def measure_files(files: Sequence[str | Path]) -> FileSize | None:
    """Estimate the number of rows of files and folders."""
    if any(str(name) == "-" for name in files):
        return None
    try:
        sizes = [_measure(path) for name in files for path in _files_of(Path(name))]
    except OSError:
        return None
    return FileSize(*(sum(column) for column in zip(*sizes))) if sizes else None


def _files_of(path: Path) -> Iterator[Path]:
    """Yield a file, or the files of a folder."""
    if path.is_dir():
        yield from (inner for inner in sorted(path.rglob("*")) if inner.is_file())
    else:
        yield path


def _measure(path: Path) -> FileSize:
    """Return the size of one file."""
    n_bytes = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_SAMPLE)
        if head.startswith(PARQUET):
            file.seek(max(n_bytes - 8, 0))
            length = int.from_bytes(file.read(4), "little")
            file.seek(max(n_bytes - 8 - length, 0))
            footer = file.read(length) if length <= _MAX_FOOTER else b""
            return FileSize(_rows_in_footer(footer, n_bytes), n_bytes, n_bytes)
    unpacked = n_bytes
    if head.startswith(GZIP):
        unpacker = zlib.decompressobj(wbits=31)
        try:
            text = unpacker.decompress(head, 4 * _SAMPLE)
        except zlib.error:
            text = b""
        used = len(head) - len(unpacker.unconsumed_tail) - len(unpacker.unused_data)
        unpacked = int(n_bytes * max(len(text) / max(used, 1), 1.0))
        head = text
    lines = max(head.count(b"\n"), 1)
    return FileSize(int(unpacked * lines / max(len(head), 1)), n_bytes, unpacked)


def _rows_in_footer(footer: bytes, n_bytes: int) -> int:
    """Return the number of rows that a footer states; reading the file checks whether it is true."""
    try:
        n_rows: int = Reader(footer, 0, len(footer)).struct(FOOTER)[3]
    except ThriftError:
        return n_bytes // _PARQUET_ROW
    return max(n_rows, 0)
