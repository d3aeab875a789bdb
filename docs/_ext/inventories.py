"""References into other projects, from lists of names that are committed.

A file such as `inventories/numpy.txt` has the address of the documentation in its first line, and then one line for
each name that our pages refer to: `domain:role name page`, where `$` stands for the name. Sphinx reads them as
inventories; nothing is downloaded, and what is not listed is no link.
"""

from __future__ import annotations

import hashlib
import zlib
from pathlib import Path

import api_pages

_TYPES = {  # words of type descriptions in docstrings -> what they name
    "ndarray": "numpy.ndarray",
    "array-like": ":term:`numpy:array_like`",
    "numpy.random.Generator": "numpy.random.Generator",
    "numpy.random.SeedSequence": "numpy.random.SeedSequence",
    "Path": "pathlib.Path",
    "bool": "bool",
    "callable": "callable",
    "dict": "dict",
    "float": "float",
    "int": "int",
    "list": "list",
    "str": "str",
    "tuple": "tuple",
}


def _own_types() -> dict[str, str]:
    """The exported classes, by name; that of the first package where two have one."""
    names: dict[str, str] = {}
    for entry in api_pages.entries():
        if entry.kind in ("class", "exception"):
            names.setdefault(entry.name, entry.path)
    return names


ALIASES = _TYPES | _own_types()


def mapping(folder: Path, scratch: Path) -> dict[str, tuple[str, str]]:
    """The option `intersphinx_mapping`: project -> its address and an inventory in Sphinx's format."""
    found = {}
    for path in sorted(folder.glob("*.txt")):
        address, *rows = [row for row in path.read_text(encoding="utf-8").splitlines() if row and row[0] != "#"]
        inventory = as_inventory(path.stem, rows)
        written = scratch / f"manyhands-{path.stem}-{hashlib.sha256(inventory).hexdigest()[:12]}.inv"
        if not written.exists():
            written.write_bytes(inventory)
        found[path.stem] = (address, str(written))
    return found


def as_inventory(project: str, rows: list[str]) -> bytes:
    """An inventory of Sphinx, version 2, of lines `domain:role name page`."""
    head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
    head += "# The remainder of this file is compressed using zlib.\n"
    lines = []
    for row in rows:
        role, name, page = row.split()
        lines.append(f"{name} {role} 1 {page} -\n")
    return head.encode() + zlib.compress("".join(lines).encode(), 9)
