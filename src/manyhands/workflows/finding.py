"""`Finding`: one line of a diagnosis; and how folders are shown in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Status = Literal["ok", "note", "problem"]


@dataclass(frozen=True)
class Finding:
    """One result of `diagnose`.

    Attributes
    ----------
    key : str
        What was examined, such as "python"; keys do not change between versions.
    status : {"ok", "note", "problem"}
        "note" if something optional is missing, or something is slower or different than usual; "problem" if commands
        fail because of it.
    found : str
        What was found.
    advice : str
        What to do; empty if there is nothing to do.
    """

    key: str
    status: Status
    found: str
    advice: str = ""


def shown_path(path: str | Path) -> str:
    """Return a path in which the home folder is written as ``~``, so that a report does not contain a user's name.

    Parameters
    ----------
    path : str or Path
        Any path.

    Returns
    -------
    str
        The path for a message.
    """
    try:
        return str(Path("~") / Path(path).relative_to(Path.home()))
    except (RuntimeError, ValueError):  # no home folder; not below it
        return str(path)
