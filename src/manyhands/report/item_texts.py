"""Which field of the export says what an item is, and its values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from manyhands.report.run import Run
from manyhands.report.wording import visible

_USUAL = ("text", "sentence", "content", "body", "review", "comment", "title", "question", "prompt", "image", "url")
_N_TRIED = 200


def item_texts(run: Run, rows: Sequence[int]) -> tuple[str, dict[int, str]]:
    """Return the field with the items' text or address, and its values for some items.

    Pictures are never loaded: of an item that is a picture, its address is shown as text.

    Parameters
    ----------
    run : Run
        The run.
    rows : sequence of int
        Positions of the items.

    Returns
    -------
    field : str
        Name of the field; "" if there is none.
    texts : dict of int to str
        Position -> text.
    """
    fields = None if run.reading is None else run.reading.item_fields
    if fields is None or not len(fields):
        return "", {}
    name = max(fields.fields, key=lambda field: _score(field, fields.values(field)))
    values = fields.values(name)
    ids = run.annotations.item_ids
    found = {row: values.get(str(ids[row])) for row in rows}
    return visible(name, 40), {row: str(value) for row, value in found.items() if value is not None}


def _score(name: str, values: dict[str, Any]) -> tuple[float, float]:
    """Return how likely a field is the one to show: a usual name, then the length of its text."""
    usual = -_USUAL.index(name.lower()) if name.lower() in _USUAL else -len(_USUAL) - 1
    sample = [str(value) for value, _ in zip(values.values(), range(_N_TRIED)) if isinstance(value, str)]
    return float(usual), sum(map(len, sample)) / max(len(sample), 1)
