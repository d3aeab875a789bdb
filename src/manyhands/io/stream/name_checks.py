"""Checks of names where a file is read in parts: free text, missing labels, spellings, several questions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from manyhands.exceptions import AnnotationError
from manyhands.io.messages import listed, shorten
from manyhands.io.read.free_text import refuse_labels
from manyhands.io.read.name_notes import may_mean_missing
from manyhands.io.read.spelling_variants import fold_class, fold_id, spelling_groups

_MOST_WORKERS = 100_000  # whose spellings are compared; it takes some microseconds for each
_REMEDY = "Names are not changed where a file is read in parts: change them in the file."


def refuse_free_text(counts: Mapping[str, int], source: str, column: str) -> None:
    """Refuse labels that are not classes, by the rule for files that are read whole.

    Parameters
    ----------
    counts : mapping of str to int
        Label -> number of its rows.
    source : str
        Name of the file.
    column : str
        Name of the label column.

    Raises
    ------
    AnnotationError
        Where the labels are free text or marks of parts of items.
    """
    names, numbers = np.array(list(counts), object), np.array(list(counts.values()), np.int64)
    refusal = refuse_labels(names, numbers, source, column)
    if refusal is not None:
        raise AnnotationError(refusal)


def notes_on_names(classes: Mapping[Any, int], workers: Sequence[Any]) -> dict[str, str]:
    """Return notes on classes that may mean a missing label, and on names that differ in spelling only.

    Parameters
    ----------
    classes : mapping
        Class -> number of its rows.
    workers : sequence
        Ids of the workers.

    Returns
    -------
    dict of str to str
        ``class_like_missing``, ``look_alike_classes`` and ``look_alike_workers``, each if there are such names.
    """
    notes = {}
    counts = {name: n for name, n in classes.items() if isinstance(name, str)}
    missing = [repr(shorten(name)) for name in counts if may_mean_missing(name)]
    if missing:
        notes["class_like_missing"] = (
            f"{len(missing)} class(es) may mean that there is no label, and were kept: {listed(missing)}. {_REMEDY}"
        )
    ids = dict.fromkeys(workers if len(workers) <= _MOST_WORKERS else [], 0)
    ids = {name: 0 for name in ids if isinstance(name, str)}
    for code, names, fold in (("classes", counts, fold_class), ("workers", ids, fold_id)):
        groups = spelling_groups(names, fold)
        if groups:
            alike = listed([" and ".join(ascii(shorten(name)) for name in group) for group in groups])
            notes[f"look_alike_{code}"] = (
                f"Some {code} differ in case, spaces or Unicode form only, and were kept apart: {alike}. {_REMEDY}"
            )
    return notes


def several_questions(names: Collection[str]) -> str:
    """Return the error about rows of several questions: which one is meant is chosen where files are read whole.

    Parameters
    ----------
    names : collection of str
        The questions.

    Returns
    -------
    str
    """
    return (
        f"The file holds answers to several questions ({listed(sorted(names)[:5])}), of which one cannot be chosen "
        f"where a file is read in parts. Give a file with the rows of one question."
    )
