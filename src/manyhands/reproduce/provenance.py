"""Provenance of a result: versions, commit and kind of machine; never its name or a path on it."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from manyhands import __version__

_LIBRARIES = {"numpy": "numpy", "scipy": "scipy", "sklearn": "scikit-learn", "torch": "torch"}


@cache
def versions() -> dict[str, str | None]:
    """Return the versions of everything that may change a result.

    Returns
    -------
    dict of str to str or None
        Package -> version; None for what is not installed.
    """
    found: dict[str, str | None] = {"manyhands": __version__, "python": platform.python_version()}
    for name, package in _LIBRARIES.items():
        try:
            found[name] = version(package)  # reads the metadata: importing torch takes seconds
        except PackageNotFoundError:
            found[name] = None
    return found


def machine() -> str:
    """Return cores and architecture, such as "2 cores, x86_64".

    Returns
    -------
    str
        A description without names.
    """
    n = cores()
    return f"{n} core{'s' if n != 1 else ''}, {platform.machine() or 'unknown'}"


def cores() -> int:
    """Return the number of cores that this process may use.

    Returns
    -------
    int
        At least 1.
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def checkout() -> Path | None:
    """Return the root of the checkout that this package runs from; None if it is installed.

    Returns
    -------
    Path or None
        The folder above ``src/manyhands``.
    """
    package = Path(__file__).resolve().parents[1]
    root = package.parents[1]
    return root if package == root / "src" / "manyhands" else None  # installed, perhaps into another project's clone


def commit(root: Path | None = None) -> str | None:
    """Return the commit of a clone, by reading .git.

    A change that is not committed is not detected.

    Parameters
    ----------
    root : Path or None, default=None
        The clone; None is the one that this package runs from.

    Returns
    -------
    str or None
        40 hexadecimal digits; None if there is no clone.
    """
    root = checkout() if root is None else root
    if root is None:
        return None
    try:
        own = _git_folder(root / ".git")
        return None if own is None else _resolve(own, (own / "HEAD").read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError):
        return None


def _git_folder(path: Path) -> Path | None:
    """Return the folder itself, or for a worktree the one that its file names."""
    if path.is_dir():
        return path
    if not path.is_file():
        return None
    _, _, named = path.read_text(encoding="utf-8").strip().partition("gitdir: ")
    return path.parent / named if named else None


def _resolve(own: Path, head: str) -> str | None:
    """Return the commit that HEAD points to, by a loose or a packed reference."""
    if not head.startswith("ref: "):
        return head or None
    name = head.removeprefix("ref: ")
    pointer = own / "commondir"  # a worktree shares its branches with the clone it belongs to
    common = own / pointer.read_text(encoding="utf-8").strip() if pointer.is_file() else own
    for folder in (own, common):
        if (folder / name).is_file():
            return (folder / name).read_text(encoding="utf-8").strip()
    packed = common / "packed-refs"
    if packed.is_file():
        for line in packed.read_text(encoding="utf-8").splitlines():
            found, _, ref = line.partition(" ")
            if ref == name:
                return found
    return None
