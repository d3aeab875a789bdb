"""`read`: from an export to Annotations, with an account of every row."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from inspect import signature
from typing import Any

import polars as pl

from manyhands.annotations import Annotations
from manyhands.encoding import half_pair
from manyhands.exceptions import AnnotationError, CrowdWarning, ParameterError
from manyhands.io.formats import read_document
from manyhands.io.messages import find_look_alikes, listed, look_alike_note
from manyhands.io.read.documents import Document, Folder, open_document, parse
from manyhands.io.read.judgements import ColumnOptions, Judgements, joined
from manyhands.io.read.ledger import Ledger
from manyhands.io.read.question_selection import (
    describe_questions,
    drop_other_questions,
    gold_of_question,
    select_question,
)
from manyhands.io.read.row_filtering import ReadOptions, code_rows, filter_rows
from manyhands.writing import MANIFEST

_RESULTS = {"labels.csv", "workers.csv", "summary.json", MANIFEST}
_LIKE_NOTHING = ("na", "n/a", "nan", "null", "none", "nil", "-", "?")  # words that often stand for a missing label


@dataclass(frozen=True)
class Reading:
    """Annotations, where they stood in the file, what became of every row, and what a person should know.

    Attributes
    ----------
    source, format, question : the file, what it was recognised as, and the question whose answers these are
    columns : where item, worker, label and the like stood
    questions : how many rows answer each question of the file
    gold : the items whose answer the file itself says is known
    workers_known : False where votes were counted without saying whose they are
    refusal : what cannot be done with this file, where nothing can; `annotations` are then empty
    encoding : the one that was asked for
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
) -> Reading:
    """Read an export of any known format.

    Parameters
    ----------
    path : a file, a folder, a zip, a list of files (batches of one job), "-" for standard input, or a data frame
    item, worker, label : the columns or fields to take them from, where they are not the usual ones
    question : which question's answers to read, where there are several; `name=choice` asks about one of many choices
    format : the name of the format, where it is not to be recognised (docs/formats.md)
    duplicates : which of a worker's answers to an item counts: last, first, all, or error to refuse them
    missing : labels that mean that there is none, beside blank cells
    combinations : take every combination of choices as a class, where several may be chosen
    encoding : of text files that are not UTF-8
    item_ids, worker_ids, classes : as in `Annotations.from_triples`: the caller's own, in his order
    types : what to read as other than text, such as {"label": int}
    """
    missing = (missing,) if isinstance(missing, str) else tuple(missing)
    odd = half_pair((item, worker, label, question, *missing))
    if odd is not None:
        raise ParameterError(
            f"The name {odd!r} that was given is not text: it holds half a surrogate pair. Type it anew."
        )
    columns_wanted = ColumnOptions(item, worker, label, question, missing)
    settings = ReadOptions(duplicates, missing, {"item": item_ids, "worker": worker_ids, "label": classes}, types)
    several = isinstance(path, list | tuple)
    documents = (document for one in (path if several else [path]) for document in _documents(one, encoding))
    parts = [read_document(document, columns_wanted, format) for document in documents]
    if not parts:
        raise AnnotationError(f"{path} holds no files to read. Give the path of an export.")
    judgements = joined(parts)
    del parts  # so that their text can be let go
    reading = replace(_settled(judgements, question, combinations, settings), encoding=encoding)
    for code_word, sentence in reading.notes.items():
        warnings.warn(f"{code_word}: {sentence}", CrowdWarning, stacklevel=2)
    return reading


def read_annotations(path: Any, **options: Any) -> Annotations:
    """Read the labels of an export of any known format as `Annotations`.

    Parameters and errors are those of `manyhands.io.read_export`, which also tells what became of every row.
    """
    reading = read_export(path, **options)
    if reading.refusal is not None:
        raise AnnotationError(reading.refusal)
    return reading.annotations


read_annotations.__doc__ = f"{read_annotations.__doc__}\n{(read_export.__doc__ or '').partition(chr(10))[2]}"
read_annotations.__signature__ = signature(read_export).replace(return_annotation=Annotations)  # type: ignore[attr-defined]


def _documents(path: Any, encoding: str | None) -> list[Document]:
    """One document, or the files of a folder that is no format of its own."""
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


def _settled(judgements: Judgements, question: str | None, combinations: bool, settings: ReadOptions) -> Reading:
    """The question that is meant, the rows that count, and the notes on them."""
    questions = judgements.questions or describe_questions(judgements)
    if judgements.refusal is not None and not judgements.answers:
        name, gold, labels = "", {}, pl.Series([None] * len(judgements), dtype=pl.String)
    else:
        name, labels = select_question(judgements, question, combinations, settings.missing)
        gold = gold_of_question(judgements, name, combinations)
        judgements, labels = drop_other_questions(judgements, labels)
    rows = code_rows(judgements, labels, settings)
    del labels
    judgements.release()
    annotations, ledger = filter_rows(judgements, rows, settings)
    return Reading(
        annotations,
        judgements.mapping,
        ledger,
        judgements.notes | _notes_on_names(annotations),
        judgements.source,
        judgements.format,
        name,
        questions,
        _typed(gold, settings),
        judgements.workers_known,
        judgements.refusal,
    )


def _typed(gold: dict[str, str], settings: ReadOptions) -> dict[Any, Any]:
    """Gold in the types that were asked for; what cannot be read as such is nobody's answer."""
    types = settings.types or {}
    read_item, read_label = types.get("item", str), types.get("label", str)
    typed = {}
    for item, label in gold.items():
        with suppress(TypeError, ValueError):
            typed[read_item(item)] = read_label(label)
    return typed


def _notes_on_names(annotations: Annotations) -> dict[str, str]:
    """Ids and classes that a person may have meant otherwise."""
    notes = {}
    ids = (annotations.item_ids, annotations.worker_ids, annotations.classes)
    texts = [_texts(values.tolist()) for values in ids]
    pairs = [pair for values in texts if not "".join(values).isascii() for pair in find_look_alikes(values)]
    if pairs:
        notes["look_alike_ids"] = look_alike_note(pairs)
    folded: dict[str | Decimal, list[str]] = {}
    for name in texts[-1]:
        folded.setdefault(_folded(name), []).append(name)
    alike = [" and ".join(map(repr, names)) for names in folded.values() if len(names) > 1]
    if alike:
        notes["look_alike_classes"] = f"Some classes look like the same one, and were kept apart: {listed(alike)}."
    nothings = [name for name in texts[-1] if name.strip().casefold() in _LIKE_NOTHING]
    if nothings:
        remedy = "add " + " ".join(f"--missing {shlex.quote(name.strip())}" for name in nothings)
        notes["class_like_nothing"] = (
            f"{_kept_as_classes(nothings)}. Where that means that there is no label, {remedy}."
        )
    return notes


def _folded(name: str) -> str | Decimal:
    """The same for names that differ in case, spaces, or in how a number is written."""
    plain_name = name.strip().casefold()
    try:
        number = Decimal(plain_name)  # a float would be the same for different long numbers
    except InvalidOperation:
        return plain_name
    return number if number.is_finite() else plain_name


def _texts(values: list[Any]) -> list[str]:
    """Those that are text: all of them, unless another type was asked for."""
    return values if set(map(type, values)) <= {str} else [value for value in values if isinstance(value, str)]


def _kept_as_classes(names: list[str]) -> str:
    said = " and ".join(map(repr, names))
    return f"{said} was kept as a class" if len(names) == 1 else f"{said} were kept as classes"
