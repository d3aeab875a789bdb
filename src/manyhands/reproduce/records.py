"""Result rows on disk: one JSON line per finished cell; lines that a kill left incomplete are ignored and counted."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from manyhands import __version__, registry
from manyhands._core.writing import held
from manyhands.exceptions import ParameterError
from manyhands.reproduce.cells import Cell, revisions_of
from manyhands.reproduce.tables import DataSet, Row, Table

# ----------------------------------------------------------------------------------------------------
# Provenance of a result: versions, commit and kind of machine; never its name or a path on it.

_LIBRARIES = {"numpy": "numpy", "scipy": "scipy", "sklearn": "scikit-learn", "torch": "torch"}


@cache
def versions() -> dict[str, str | None]:
    """Return the versions of everything that may change a result."""
    version_of: dict[str, str | None] = {"manyhands": __version__, "python": platform.python_version()}
    for name, package in _LIBRARIES.items():
        try:
            version_of[name] = version(package)  # reads the metadata: importing torch takes seconds
        except PackageNotFoundError:
            version_of[name] = None
    return version_of


def machine() -> str:
    """Return cores and architecture, such as "2 cores, x86_64"."""
    n = cores()
    return f"{n} core{'s' if n != 1 else ''}, {platform.machine() or 'unknown'}"


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def checkout() -> Path | None:
    """Return the root of the checkout that this package runs from; None if it is installed."""
    package = Path(__file__).resolve().parents[1]
    root = package.parents[1]
    return root if package == root / "src" / "manyhands" else None  # installed, perhaps into another project's clone


def commit(root: Path | None = None) -> str | None:
    """Return the commit of a clone, by reading .git.

    A change that is not committed is not detected.
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
            digits, _, ref = line.partition(" ")
            if ref == name:
                return digits
    return None


Record = dict[str, Any]


@dataclass(frozen=True)
class Records:
    """Rows of a file."""

    by_key: Mapping[str, Record] = field(default_factory=dict)  # the last row of each key
    n_torn: int = 0  # number of incomplete lines

    def find(self, key: str) -> Record | None:
        """Return the row of a cell."""
        return self.by_key.get(key)


def read_records(path: str | Path) -> Records:
    """Read all complete lines of a file."""
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except FileNotFoundError:
        return Records()
    parsed = [_parsed(line) for line in lines if line.strip()]
    whole = [record for record in parsed if record is not None]
    return Records({record["key"]: record for record in whole}, len(parsed) - len(whole))


def _parsed(line: bytes) -> Record | None:
    """Return a row, None if the line is not one."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):  # incomplete, not text, or nested too deep
        return None
    return record if isinstance(record, dict) and _is_cell(record) else None


def _is_cell(record: dict[str, Any]) -> bool:
    """Return whether a line has either numeric metrics or an error, and series of numbers if any."""
    figures, peak = record.get("metrics"), record.get("peak_mb")
    numbers = isinstance(figures, dict) and all(_is_number(value) for value in figures.values())
    has_result = numbers if "metrics" in record else isinstance(record.get("error"), str)
    return (
        has_result
        and isinstance(record.get("key"), str)
        and ("error" in record) != ("metrics" in record)
        and _is_number(peak)
        and _are_series(record.get("series", {}))
    )


def _are_series(value: Any) -> bool:
    """Return whether a value has lists of numbers, or lists of such lists, or null, by name."""
    return isinstance(value, dict) and all(
        one is None or (isinstance(one, list) and all(map(_is_point, one))) for one in value.values()
    )


def _is_point(value: Any) -> bool:
    """Return whether a value is a number, null, or a list of them."""
    return all(map(_is_number, value)) if isinstance(value, list) else _is_number(value)


def _is_number(value: Any) -> bool:
    """Return whether a value is a number or null."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


@contextmanager
def appending(path: str | Path) -> Iterator[Callable[[Record], None]]:
    """Lock a file of rows while the block runs; each row is on disk when the function that is yielded returns.

    The lock ends with the process that holds it, however that ends.
    """
    path = Path(path)
    if path.is_symlink() and not path.exists():
        raise ParameterError(f"{path} is a symbolic link that points to nothing. Remove it, or give another folder.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with held(path.with_name(f".{path.name}.lock"), path):
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        try:
            _end_torn_line(descriptor)
            yield lambda record: _append(descriptor, record, path)
        finally:
            os.close(descriptor)


def _append(descriptor: int, record: Record, path: Path) -> None:
    """Write one row and wait until it is on disk."""
    line = json.dumps(record, ensure_ascii=True, allow_nan=False).encode() + b"\n"
    try:
        while line:
            line = line[os.write(descriptor, line) :]
        os.fsync(descriptor)
    except OSError as error:  # the error of a descriptor does not name its file
        raise OSError(error.errno, error.strerror, str(path)) from None


def _end_torn_line(descriptor: int) -> None:
    """End an incomplete last line, so that the next row is not appended to it."""
    size = os.lseek(descriptor, 0, os.SEEK_END)
    if size:
        os.lseek(descriptor, size - 1, os.SEEK_SET)
        if os.read(descriptor, 1) != b"\n":
            os.write(descriptor, b"\n")


# ----------------------------------------------------------------------------------------------------
# Where result rows and figures are: committed with the source in a checkout, otherwise in the current folder.

LOCAL = Path("reproduced")  # below the current folder
_ROWS = Path("docs") / "results" / "rows"
_FIGURES = Path("docs") / "results" / "reproduced"


def rows_folder(table: Table, *, quick: bool = False) -> Path:
    """Return the folder in which the result rows of a table are read and appended by default."""
    return _committed(_ROWS, table, quick) or LOCAL


def figures_folder(table: Table, *, quick: bool = False) -> Path:
    """Return the folder for the figures of a table."""
    return _committed(_FIGURES, table, quick) or LOCAL


def rows_file(table: Table, out: str | Path | None = None, *, quick: bool = False) -> Path:
    """Return the file of a table's result rows."""
    folder = rows_folder(table, quick=quick) if out is None else Path(out)
    return folder / f"{table.name.replace('/', '-')}.jsonl"


def _committed(folder: Path, table: Table, quick: bool) -> Path | None:
    """Return a folder of the checkout, for figures of tables that come with manyhands."""
    root = checkout()
    if root is None or quick or table.name.startswith("own/") or not (root / _ROWS).is_dir():
        return None
    return root / folder


# ----------------------------------------------------------------------------------------------------
# Stale result rows: those that no cell of the table uses any more, and why.


def describe_stale(table: Table, records: Records) -> list[str]:
    """Return one sentence per reason for which rows of a table's file are not used.

    Rows are never removed from the file. A row is stale if its method is not in the registry (renamed or removed), if
    the revision of a method has changed, if the table has no such data set or row, or if its settings have changed.
    """
    reasons = Counter(
        (str(record.get("row")), reason)
        for record in records.by_key.values()
        if (reason := _why_stale(table, record)) is not None
    )
    return [f"{_count(n)} of {row!r}: {reason}" for (row, reason), n in reasons.most_common()]


def _why_stale(table: Table, record: Record) -> str | None:
    """Return why no cell has the key of this row; None if one has."""
    rows = [row for row in table.measured if row.name == record.get("row")]
    sets = [dataset for dataset in table.datasets if dataset.name == record.get("dataset")]
    here = [row.on(dataset.name) for row in rows for dataset in sets]
    seed, quick = record.get("seed"), bool(record.get("quick"))
    if not isinstance(seed, int):
        return "the row does not name its seed"
    cells = [Cell(table, dataset, row.on(dataset.name), seed, quick) for dataset in sets for row in rows]
    if any(cell.key == record["key"] for cell in cells):
        return None
    method = record.get("method")
    if method not in registry.names():
        return f"there is no method {method!r} any more"
    return _changed_revision(here, record) or _changed_table(sets, rows, record)


def _changed_revision(rows: list[Row], record: Record) -> str | None:
    """Return which revision has changed, of methods that the row still uses."""
    if not isinstance(before := record.get("revisions"), dict):
        return "measured before methods had revisions"
    for row in rows:
        for method, now in revisions_of(row).items():
            if method in before and before[method] != now:
                return f"measured with revision {before[method]} of {method}, which is {now} now"
    return None


def _changed_table(sets: list[DataSet], rows: list[Row], record: Record) -> str:
    """Return what is no longer in the table, or that settings have changed."""
    if not sets:
        return f"the table has no data set {record.get('dataset')!r} any more"
    if not rows:
        return "the table has no such row any more"
    return "the data set or the parameters have changed"


def _count(n: int) -> str:
    return f"{n} stale row{'s' if n != 1 else ''}"
