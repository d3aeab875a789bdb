"""Notes on ids and classes that look alike, and on classes that may mean a missing label."""

from __future__ import annotations

import shlex
from decimal import Decimal, InvalidOperation
from typing import Any

from manyhands.annotations import Annotations
from manyhands.io.messages import find_look_alikes, listed, look_alike_note

_MISSING_WORDS = ("na", "n/a", "nan", "null", "none", "nil", "-", "?")  # texts that often mean a missing label


def notes_on_names(annotations: Annotations) -> dict[str, str]:
    """Return notes on ids and classes that look alike, and on classes that may mean a missing label.

    Parameters
    ----------
    annotations : Annotations
        The labels that were read.

    Returns
    -------
    dict of str to str
        ``look_alike_ids``, ``look_alike_classes`` and ``class_like_missing``, each if there are such names.
    """
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
        notes["look_alike_classes"] = f"Some classes differ in spelling only, and were kept apart: {listed(alike)}."
    missing_words = [name for name in texts[-1] if name.strip().casefold() in _MISSING_WORDS]
    if missing_words:
        remedy = "add " + " ".join(f"--missing {shlex.quote(name.strip())}" for name in missing_words)
        notes["class_like_missing"] = (
            f"{_kept_as_classes(missing_words)}. If that means that there is no label, {remedy}."
        )
    return notes


def _folded(name: str) -> str | Decimal:
    """Return the same value for names that differ in case, spaces, or the notation of a number only."""
    plain_name = name.strip().casefold()
    try:
        number = Decimal(plain_name)  # a float would be the same for different long numbers
    except InvalidOperation:
        return plain_name
    return number if number.is_finite() else plain_name


def _texts(values: list[Any]) -> list[str]:
    """Return the values that are text: all of them, unless another type was asked for."""
    return values if set(map(type, values)) <= {str} else [value for value in values if isinstance(value, str)]


def _kept_as_classes(names: list[str]) -> str:
    """Return the sentence about classes that may mean a missing label."""
    names_text = " and ".join(map(repr, names))
    return f"{names_text} was kept as a class" if len(names) == 1 else f"{names_text} were kept as classes"
