"""Gold: items whose class is known, from a table and from the export itself."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from pathlib import Path
from typing import Any

from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.io.messages import counted
from manyhands.io.read.gold import read_gold
from manyhands.io.read.reading import Reading


def collect_gold(
    reading: Reading, file: str | Path | None, use_own: bool, with_features: Collection[str] = ()
) -> dict[Any, Any]:
    """Return the known class of each gold item; a table takes precedence over the export.

    Parameters
    ----------
    reading : Reading
        The export, which may itself contain known answers.
    file : str, Path or None
        Table with a column of items and a column of their classes.
    use_own : bool
        Whether to use the known answers of the export.
    with_features : collection of str, default=()
        Items that have features, whose gold is used even if no worker labelled them.

    Returns
    -------
    dict
        {item: class}, limited to classes of the export and to items of the export or with features.

    Raises
    ------
    AnnotationError
        If the export has no known answers and they are to be used, or the table has none that can be used.

    Warns
    -----
    CrowdWarning
        If known answers were left out, or table and export contradict each other.
    """
    if use_own and not reading.gold:
        raise AnnotationError(f"{reading.source} contains no known answers, so --use-gold has nothing to use.")
    classes = set(reading.annotations.classes.tolist())
    own = {item: label for item, label in reading.gold.items() if label in classes} if use_own else {}
    if use_own and len(own) < len(reading.gold):
        left_out = counted(len(reading.gold) - len(own), "known answer")
        _warn(f"gold_left_out: {left_out} of the export name classes that no worker used, and were left out.")
    renamed = reading.renamed.get("label")
    given = read_gold(file, reading.annotations, renamed, with_features) if file is not None else {}
    contradicted = [item for item in given if reading.gold.get(item, given[item]) != given[item]]
    if contradicted:
        items = counted(len(contradicted), "item")
        _warn(f"gold_differs: {items} of {file} have another known answer in the export, such as {contradicted[0]!r}.")
    return own | given


def _warn(sentence: str) -> None:
    warnings.warn(sentence, CrowdWarning, stacklevel=4)
