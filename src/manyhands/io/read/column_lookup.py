"""Columns by name: the column that an option names, found whatever its spelling."""

from __future__ import annotations

from collections.abc import Sequence

from manyhands.exceptions import AnnotationError
from manyhands.io.messages import listed, normalise_name, shorten


def find_column(header: Sequence[str], wanted: str, role: str, source: str) -> int:
    """The place of the column that the user named; case, spaces, hyphens and underscores do not matter."""
    found = [at for at, name in enumerate(header) if name == wanted]
    found = found or [at for at, name in enumerate(header) if normalise_name(name) == normalise_name(wanted)]
    if not found:
        raise AnnotationError(
            f"Column {shorten(wanted)!r} is not in {source}. It has: {listed(header)}. {column_hint(role)}"
        )
    return single_column(header, found, role, source)


def single_column(header: Sequence[str], found: Sequence[int], role: str, source: str) -> int:
    """The one column that was found for a role; of several, only the user can tell which is meant."""
    if len(found) > 1:
        alike = list(dict.fromkeys(header[at] for at in found))
        sentences_of = " and ".join(repr(shorten(name)) for name in alike)
        remedy = column_hint(role) if len(alike) == len(found) else "Rename all but one."
        raise AnnotationError(f"{source} has {len(found)} columns for the {role}, called {sentences_of}. {remedy}")
    return found[0]


def column_hint(role: str) -> str:
    """What to do where a column cannot be told."""
    return f"Name the right one with --{role} COLUMN ({role}= in Python)."
