"""Columns by name: the column that an option names, found whatever its spelling."""

from __future__ import annotations

from collections.abc import Sequence

from manyhands.exceptions import AnnotationError
from manyhands.io.messages import listed, normalise_name, shorten


def find_column(header: Sequence[str], wanted: str, role: str, source: str) -> int:
    """Find the column that the caller named; case, spaces, hyphens and underscores do not matter.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.
    wanted : str
        The name that was given.
    role : str
        What the column is for, such as ``"item"``; it is also the name of the option.
    source : str
        Name of the file, for error messages.

    Returns
    -------
    int
        Position of the column.

    Raises
    ------
    AnnotationError
        If there is no such column, or more than one.
    """
    found = [at for at, name in enumerate(header) if name == wanted]
    found = found or [at for at, name in enumerate(header) if normalise_name(name) == normalise_name(wanted)]
    if not found:
        raise AnnotationError(
            f"Column {shorten(wanted)!r} is not in {source}. It has: {listed(header)}. {column_hint(role)}"
        )
    return single_column(header, found, role, source)


def single_column(header: Sequence[str], found: Sequence[int], role: str, source: str) -> int:
    """Return the only column found for a role.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.
    found : sequence of int
        Positions of the columns that were found; not empty.
    role : str
        What the column is for.
    source : str
        Name of the file, for error messages.

    Returns
    -------
    int
        Position of the column.

    Raises
    ------
    AnnotationError
        If several were found: only the caller knows which is meant.
    """
    if len(found) > 1:
        alike = list(dict.fromkeys(header[at] for at in found))
        alike_names = " and ".join(repr(shorten(name)) for name in alike)
        remedy = column_hint(role) if len(alike) == len(found) else "Rename all but one."
        raise AnnotationError(f"{source} has {len(found)} columns for the {role}, called {alike_names}. {remedy}")
    return found[0]


def column_hint(role: str) -> str:
    """Return the end of an error message: how to name a column.

    Parameters
    ----------
    role : str
        What the column is for.

    Returns
    -------
    str
        A sentence.
    """
    return f"Name the right one with --{role} COLUMN ({role.replace('-', '_')}= in Python)."
