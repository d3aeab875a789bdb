"""Gold: tables of items whose label is known."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from pathlib import Path

from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.io.messages import counted, listed, shorten
from manyhands.io.read.truth import read_truth


def read_gold(
    path: str | Path,
    annotations: Annotations,
    renamed: Mapping[str, str] | None = None,
    with_features: Collection[str] = (),
) -> dict[str, str]:
    """Read a table of items and their known labels.

    Rows without a label are skipped. Items that are neither among the annotations nor have features, and classes that
    no worker used, are left out and counted in a warning.

    Parameters
    ----------
    path : str or Path
        A table with a column for the item and one for its label.
    annotations : Annotations
        The labels of the crowd.
    renamed : mapping of str to str or None, default=None
        Spelling of a label in the export -> name under which it was read; gold labels follow it.
    with_features : collection of str, default=()
        Items that have features: a classifier learns from their gold even if no worker labelled them.

    Returns
    -------
    dict of str to str
        Item -> class, as `fit(gold=...)` takes it.

    Raises
    ------
    AnnotationError
        If nothing in the table can be used, or if an item has two labels.

    Warns
    -----
    CrowdWarning
        If rows were left out.
    """
    known = read_truth(path, what="gold")
    spelled = {item: (renamed or {}).get(label, label) for item, label in known.items()}
    return _usable(path, spelled, annotations, with_features)


def _usable(
    path: str | Path, known: dict[str, str], annotations: Annotations, with_features: Collection[str]
) -> dict[str, str]:
    """Return the labels that the annotations and features can use, and warn about the others."""
    items, classes = {*annotations.item_ids.tolist(), *with_features}, set(annotations.classes.tolist())
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
    nowhere = "neither in the export nor in the features" if with_features else "not in the export"
    left_out = {nowhere: len(known) - len(here), "of a class that no worker gave": len(here) - len(usable)}
    excluded = " and ".join(f"{counted(n, 'item')} {why}" for why, n in left_out.items() if n)
    if excluded:
        warnings.warn(f"gold_left_out: Left out of {path}: {excluded}.", CrowdWarning, stacklevel=3)
    return usable
