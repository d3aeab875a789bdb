"""Where a figure comes from: versions, the commit, and what kind of machine; never its name or a path of it."""

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
    """The version of everything that may show in a result; None for what is not installed."""
    found: dict[str, str | None] = {"manyhands": __version__, "python": platform.python_version()}
    for name, package in _LIBRARIES.items():
        try:
            found[name] = version(package)  # asks the metadata: importing torch takes seconds
        except PackageNotFoundError:
            found[name] = None
    return found


def machine() -> str:
    """Cores and architecture, such as "2 cores, x86_64"."""
    n = cores()
    return f"{n} core{'s' if n != 1 else ''}, {platform.machine() or 'unknown'}"


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def commit(root: Path | None = None) -> str | None:
    """The commit of the clone that this package runs from, by reading .git; None where it is installed.

    A change that was not committed does not show here.
    """
    if root is None:
        package = Path(__file__).resolve().parents[1]
        root = package.parents[1]
        if package != root / "src" / "manyhands":  # installed, perhaps into another project's clone
            return None
    try:
        own = _git_folder(root / ".git")
        return None if own is None else _resolve(own, (own / "HEAD").read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError):
        return None


def _git_folder(path: Path) -> Path | None:
    """The folder itself, or for a worktree the one that its file names."""
    if path.is_dir():
        return path
    if not path.is_file():
        return None
    _, _, named = path.read_text(encoding="utf-8").strip().partition("gitdir: ")
    return path.parent / named if named else None


def _resolve(own: Path, head: str) -> str | None:
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
