"""The steps of reading after the files are parsed: question, rows that count, notes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from manyhands.io.read.frame_types import can_convert
from manyhands.io.read.free_text import refuse_labels
from manyhands.io.read.judgements import Judgements
from manyhands.io.read.name_notes import notes_on_names
from manyhands.io.read.question_selection import (
    describe_questions,
    drop_other_questions,
    gold_of_question,
    select_question,
)
from manyhands.io.read.reading_result import Reading
from manyhands.io.read.row_filtering import ReadOptions, Rows, code_rows, filter_rows


def make_reading(
    judgements: Judgements,
    question: str | None,
    combinations: bool,
    read_options: ReadOptions,
    own_types: Mapping[str, Callable[[str], Any]],
) -> Reading:
    """Select the question, filter the rows, and collect the notes.

    Parameters
    ----------
    judgements : Judgements
        The rows of all files.
    question : str or None
        The question that the caller named.
    combinations : bool
        Take every combination of selected choices as one class.
    read_options : ReadOptions
        Options of the caller.
    own_types : mapping of str to callable
        Role -> conversion from text, from the types of a data frame.

    Returns
    -------
    Reading
    """
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
    annotations, ledger, stray_notes, label_times, working_time = filter_rows(
        judgements, rows, read_options, set(gold.values())
    )
    counts = np.bincount(annotations.label, minlength=annotations.n_classes)
    return Reading(
        annotations,
        judgements.mapping,
        ledger,
        judgements.notes | rows.notes | stray_notes | notes_on_names(annotations),
        judgements.source,
        judgements.format,
        name,
        questions,
        _convert_gold(gold, read_options),
        judgements.workers_known,
        judgements.refusal or refuse_labels(annotations.classes, counts, judgements.source, name),
        renamed=rows.renamed,
        times=label_times,
        working_time=working_time,
        kinds={rows.renamed.get("worker", {}).get(name, name): kind for name, kind in judgements.kinds.items()},
    )


def _with_own_types(
    read_options: ReadOptions, rows: Rows, own_types: Mapping[str, Callable[[str], Any]]
) -> ReadOptions:
    """Return the options with the types of a data frame, where the caller names neither types nor text as ids."""
    if read_options.types is not None:
        return read_options
    given = {role: ids for role, ids in (read_options.ids or {}).items() if ids is not None}
    kept = {
        role: convert
        for role, convert in own_types.items()
        if not any(isinstance(value, str) for value in given.get(role, ())) and can_convert(rows.values(role), convert)
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
