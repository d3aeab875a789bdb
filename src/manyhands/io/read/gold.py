"""Gold: tables of items whose label is known."""

from __future__ import annotations

import warnings
from pathlib import Path

from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.io.messages import counted, listed, shorten
from manyhands.io.read.truth import read_truth


def read_gold(path: str | Path, annotations: Annotations) -> dict[str, str]:
    """{item: class} of a table with a column for the item and one for its label; rows without a label are passed over.

    Items that are not among the annotations and classes that nobody named are left out and counted in a warning; if
    nothing is left, or an item has two labels, the table is refused.
    """
    return _usable(path, read_truth(path, what="gold"), annotations)


def _usable(path: str | Path, known: dict[str, str], annotations: Annotations) -> dict[str, str]:
    """What the annotations can use; the rest is told."""
    items, classes = set(annotations.item_ids.tolist()), set(annotations.classes.tolist())
    here = {item: label for item, label in known.items() if item in items}
    if not here:
        raise AnnotationError(
            f"{path} names no item of the export: it has {listed(list(known))}; the export has items such as "
            f"{shorten(str(annotations.item_ids[0]))!r}."
        )
    usable = {item: label for item, label in here.items() if label in classes}
    if not usable:
        new = sorted(set(here.values()))
        raise AnnotationError(
            f"{path} names classes that no worker gave: {listed(new)}. There are: {listed(sorted(classes))}."
        )
    left_out = {"not in the export": len(known) - len(here), "of a class that nobody gave": len(here) - len(usable)}
    excluded = " and ".join(f"{counted(n, 'item')} {why}" for why, n in left_out.items() if n)
    if excluded:
        warnings.warn(f"gold_left_out: Left out of {path}: {excluded}.", CrowdWarning, stacklevel=3)
    return usable
