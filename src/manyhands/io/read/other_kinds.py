"""Labels that are not classes of whole items: spans, boxes, relations, free text, rankings; found, named, not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from manyhands.io.messages import listed, shorten

SPANS, BOXES, POLYGONS, KEYPOINTS = "spans", "boxes", "polygons", "keypoints"
MASKS, RELATIONS, FREE_TEXT, RANKINGS = "masks", "relations", "free text", "rankings"
OTHERS = "labels of parts of items"
_READ = "manyhands reads labels of whole items: choices, ratings, taxonomies, numbers."
_AS_ITEMS = "To compare the classes of parts, write a table in which each part is an item: item, worker, label."
_REMEDIES = {
    FREE_TEXT: "To compare texts, group them into classes first: a table with item, worker, label.",
    RANKINGS: "To compare rankings, make each pair an item, whose label is the preferred one.",
}
# Keys of a mark -> its kind, the most particular first; all keys of a set must be there.
_BY_KEYS: tuple[tuple[frozenset[str], str], ...] = tuple(
    (frozenset(keys.split()), kind)
    for keys, kind in (
        ("from_id to_id", RELATIONS),
        ("head child", RELATIONS),
        ("head tail", RELATIONS),
        ("rank", RANKINGS),
        ("ranker", RANKINGS),
        ("rle", MASKS),
        ("mask", MASKS),
        ("counts size", MASKS),
        ("points", POLYGONS),
        ("vertices", POLYGONS),
        ("polygon", POLYGONS),
        ("line", POLYGONS),
        ("width height", BOXES),
        ("bbox", BOXES),
        ("bounding_box", BOXES),
        ("xmin xmax", BOXES),
        ("radiusX radiusY", BOXES),
        ("sequence", BOXES),
        ("x y", KEYPOINTS),
        ("point", KEYPOINTS),
        ("start end", SPANS),
        ("startOffset endOffset", SPANS),
        ("start_offset end_offset", SPANS),
        ("token_start token_end", SPANS),
        ("globalOffsets", SPANS),
        ("location", SPANS),
        ("ranges", SPANS),
        ("instant", SPANS),
    )
)


def kind_of_mark(value: Any) -> str | None:
    """Return what kind of mark a JSON value is.

    Parameters
    ----------
    value : object
        An object that marks a part of an item, or a list of such objects.

    Returns
    -------
    str or None
        One of the kinds of this module; None for anything that is not a mark.

    Examples
    --------
    >>> kind_of_mark({"start": 0, "end": 4, "labels": ["PER"]})
    'spans'
    >>> kind_of_mark([{"left": 1, "top": 2, "width": 9, "height": 9, "label": "cat"}])
    'boxes'
    >>> kind_of_mark({"choices": ["a"]}) is None
    True
    """
    entries = value if isinstance(value, list) else [value]
    for entry in entries:
        if isinstance(entry, Mapping):
            return next((kind for keys, kind in _BY_KEYS if keys <= entry.keys()), None)
        if isinstance(entry, list) and len(entry) == 3 and [type(part) for part in entry[:2]] == [int, int]:
            return SPANS  # [start, end, label]
    return None


class OtherKinds:
    """Counts what an export has beside classes of whole items.

    Examples
    --------
    >>> found = OtherKinds()
    >>> found.add("spans", "ner")
    >>> found.add("free text", "comment")
    >>> print(found)
    spans (ner) and free text (comment)
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self._found: dict[str, Counter[str]] = {}

    def add(self, kind: str, name: str | None = None) -> None:
        """Count one mark or text.

        Parameters
        ----------
        kind : str
            One of the kinds of this module.
        name : str or None, default=None
            The question that it answers, where the export names one.
        """
        counts = self._found.setdefault(kind, Counter())
        if name:
            counts[name] += 1

    def __bool__(self) -> bool:
        """Return whether anything was found."""
        return bool(self._found)

    def __str__(self) -> str:
        """Return what was found, with the names of its questions."""
        parts = [f"{kind} ({_names(names)})" if names else kind for kind, names in self._found.items()]
        return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"

    def notes(self, source: str) -> dict[str, str]:
        """Return the note on what was not read, for an export that has classes as well.

        Parameters
        ----------
        source : str
            Name of the file.

        Returns
        -------
        dict of str to str
            ``not_read``, if there is something.
        """
        return {"not_read": f"{source} also has {self}, which were not read: {_READ}"} if self else {}

    def refusal(self, source: str) -> str:
        """Return the sentence for an export that has nothing else.

        Parameters
        ----------
        source : str
            Name of the file.

        Returns
        -------
        str
            What was found, what can be read, and what to do.
        """
        remedies = dict.fromkeys(_REMEDIES.get(kind, _AS_ITEMS) for kind in self._found)
        return f"{source} has only {self}, not classes of whole items. {_READ} {' '.join(remedies)}"


def _names(names: Iterable[str]) -> str:
    """Return the names of questions."""
    return listed([shorten(name) for name in names])
