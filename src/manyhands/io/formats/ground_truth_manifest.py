"""The manifest of a Ground Truth job: JSON lines, one data object each, with its consolidated label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from manyhands.exceptions import AnnotationError
from manyhands.io.read.column_lookup import find_column
from manyhands.io.read.documents import Records
from manyhands.io.read.json_files import as_text
from manyhands.io.read.judgements import Collector, ColumnOptions, Judgements

_SOURCES = ("source-ref", "source")
_BY_NUMBER = ("index", "datasetObjectId")  # names of the number of the object as an item
_LINES_LOOKED_AT = 1000  # lines that are searched; the first ones may have no label
_METADATA = "-metadata"


class Manifest:
    """Names of the items of a job: item 0 is in the first line.

    Parameters
    ----------
    lines : sequence of dict
        The lines.
    name : str, default="the manifest"
        Name of the file, for messages.
    """

    def __init__(self, lines: Sequence[dict[str, Any]], name: str = "the manifest") -> None:
        """Keep the lines."""
        self.lines = lines
        self.name = name

    def items(self, answered: set[str], wanted: str | None) -> tuple[dict[str, str], str, dict[str, str]]:
        """Return the name of every item.

        Items keep their numbers if the manifest cannot name each of them by a name of its own.

        Parameters
        ----------
        answered : set of str
            Numbers of the objects that have answers.
        wanted : str or None
            Key that the caller named as the item.

        Returns
        -------
        names : dict of str to str
            Number -> name.
        location : str
            Where the names are from, for the mapping.
        notes : dict of str to str
            A note if the manifest was not used.
        """
        by_number = {str(at): str(at) for at in range(len(self.lines))}
        location = "the number of the data object"
        if wanted is not None and wanted not in _BY_NUMBER and not self.lines:
            raise AnnotationError(f"There is no manifest that could name the items by {wanted!r}. Leave --item out.")
        if not answered <= by_number.keys():
            message = f"{self.name} has no line for some objects, so it was not used to name items."
            return {}, location, {"manifest_mismatch": message} if self.lines else {}
        if wanted in _BY_NUMBER or not self.lines:
            return by_number, location, {}
        keys = _SOURCES if wanted is None else (self._find(wanted),)
        found = [next((as_text(line[key]) for key in keys if line.get(key) is not None), None) for line in self.lines]
        names = [name for name in found if name and name.strip()]
        if len(names) < len(found) or len(set(names)) < len(names):
            message = f"{self.name} names some items twice or not at all, so items are called by their number."
            return by_number, location, {"items_by_number": message}
        used = [key for key in keys if any(key in line for line in self.lines)]
        return dict(zip(by_number, names)), " or ".join(used) + " in the manifest", {}

    def _find(self, wanted: str) -> str:
        """Return the key that the caller named."""
        keys = list(dict.fromkeys(key for line in self.lines for key in line))
        return keys[find_column(keys, wanted, "item", self.name)]


def is_manifest(document: Records) -> bool:
    """Whether a file is the manifest of a job: lines with a source, some with an attribute and its metadata.

    Parameters
    ----------
    document : Records
        A parsed file.

    Returns
    -------
    bool
        True if it is.
    """
    if not names_sources(document):
        return False
    looked_at = document.objects[:_LINES_LOOKED_AT]
    return "source-ref" in looked_at[0] or any(_attributes(line) for line in looked_at)


def names_sources(document: Records) -> bool:
    """Whether every line has a source, which is enough for a file in the place of a manifest.

    Parameters
    ----------
    document : Records
        A parsed file.

    Returns
    -------
    bool
    """
    return bool(document.objects) and all(any(key in line for key in _SOURCES) for line in document.objects)


def read_manifest(document: Records, options: ColumnOptions) -> Judgements:
    """Read one row per line and attribute; these are consolidated labels, which cannot be aggregated.

    Parameters
    ----------
    document : Records
        The manifest.
    options : ColumnOptions
        Columns that the caller named.

    Returns
    -------
    Judgements
        Rows with the reason "aggregated" or "prediction", and a refusal.
    """
    rows = Collector()
    items, location, notes = Manifest(document.objects, document.name).items(set(), options.item)
    for item, line in zip(items.values(), document.objects):
        attributes = _attributes(line)
        for metadata in attributes.values():
            by_machine = metadata.get("human-annotated") == "no"
            rows.add(item, None, {}, "prediction" if by_machine else "aggregated")
        if not attributes:
            rows.add(item, None, {})
    refusal = (
        f"{document.name} holds one consolidated label per item and not the workers' answers, so nothing can be "
        "aggregated. Give the job's folder with annotations/worker-response in it."
    )
    mapping = {"item": location, "label": "<attribute>-metadata.class-name"}
    return rows.judgements(document.name, "ground-truth", mapping=mapping, notes=notes, refusal=refusal)


def _attributes(line: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the attributes of a line that a job wrote, each with its metadata; chained jobs write several."""
    found = {}
    for key, value in line.items():
        if key.endswith(_METADATA) and isinstance(value, dict) and ("human-annotated" in value or "job-name" in value):
            found[key.removesuffix(_METADATA)] = value
    return found
