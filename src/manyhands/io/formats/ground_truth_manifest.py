"""The manifest of a Ground Truth job: JSON lines, one data object each, with what the job made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from manyhands.exceptions import AnnotationError
from manyhands.io.read.column_lookup import find_column
from manyhands.io.read.documents import Records
from manyhands.io.read.json_files import as_text
from manyhands.io.read.judgements import Collector, ColumnOptions, Judgements

_SOURCES = ("source-ref", "source")
_BY_NUMBER = ("index", "datasetObjectId")  # what a user calls the number of the object
_LINES_LOOKED_AT = 1000  # the first lines may be those that nobody labelled
_METADATA = "-metadata"


class Manifest:
    """What the items of a job are called: item 0 is what the first line holds."""

    def __init__(self, lines: Sequence[dict[str, Any]], name: str = "the manifest") -> None:
        self.lines = lines
        self.name = name

    def items(self, answered: set[str], wanted: str | None) -> tuple[dict[str, str], str, dict[str, str]]:
        """The item of every line by its number, in whose words, and what a person should know.

        Numbers stay numbers where the manifest cannot name every item by one name of its own.
        """
        by_number = {str(at): str(at) for at in range(len(self.lines))}
        location = "the number of the data object"
        if wanted is not None and wanted not in _BY_NUMBER and not self.lines:
            raise AnnotationError(f"There is no manifest that could name the items by {wanted!r}. Leave --item out.")
        if not answered <= by_number.keys():
            code = {"foreign_manifest": f"{self.name} has no line for some objects, so it was not used to name items."}
            return {}, location, code if self.lines else {}
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
        keys = list(dict.fromkeys(key for line in self.lines for key in line))
        return keys[find_column(keys, wanted, "item", self.name)]


def is_manifest(document: Records) -> bool:
    """Lines with a source, of which some have an attribute and the metadata that Ground Truth writes beside it."""
    if not names_sources(document):
        return False
    looked_at = document.objects[:_LINES_LOOKED_AT]
    return "source-ref" in looked_at[0] or any(_attributes(line) for line in looked_at)


def names_sources(document: Records) -> bool:
    """Whether every line has a source: enough where the file stands in the place of a manifest."""
    return bool(document.objects) and all(any(key in line for key in _SOURCES) for line in document.objects)


def read_manifest(document: Records, options: ColumnOptions) -> Judgements:
    """One row per line and attribute; they are what was made of the answers, or of none."""
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
    """The attributes of a line that a job wrote, each with its metadata; chained jobs leave several."""
    found = {}
    for key, value in line.items():
        if key.endswith(_METADATA) and isinstance(value, dict) and ("human-annotated" in value or "job-name" in value):
            found[key.removesuffix(_METADATA)] = value
    return found
