"""Where result rows and figures are: committed with the source in a checkout, otherwise in the current folder."""

from __future__ import annotations

from pathlib import Path

from manyhands.reproduce.provenance import checkout
from manyhands.reproduce.tables import Table

LOCAL = Path("reproduced")  # below the current folder
_ROWS = Path("docs") / "results" / "rows"
_FIGURES = Path("docs") / "results" / "reproduced"


def rows_folder(table: Table, *, quick: bool = False) -> Path:
    """Return the folder in which the result rows of a table are read and appended by default.

    Parameters
    ----------
    table : Table
        The table.
    quick : bool, default=False
        Whether it is a quick run, whose figures have no meaning and are not committed.

    Returns
    -------
    Path
        ``docs/results/rows`` of the checkout that this package runs from, for tables that come with manyhands;
        ``reproduced`` in the current folder otherwise.
    """
    return _committed(_ROWS, table, quick) or LOCAL


def figures_folder(table: Table, *, quick: bool = False) -> Path:
    """Return the folder for the figures of a table.

    Parameters
    ----------
    table : Table
        The table.
    quick : bool, default=False
        Whether it is a quick run.

    Returns
    -------
    Path
        ``docs/results/reproduced`` in a checkout, ``reproduced`` otherwise, as `rows_folder`.
    """
    return _committed(_FIGURES, table, quick) or LOCAL


def rows_file(table: Table, out: str | Path | None = None, *, quick: bool = False) -> Path:
    """Return the file of a table's result rows.

    Parameters
    ----------
    table : Table
        The table.
    out : str, Path or None, default=None
        Its folder; None is `rows_folder`.
    quick : bool, default=False
        Whether it is a quick run.

    Returns
    -------
    Path
        ``<folder>/<paper>-<table>.jsonl``.
    """
    folder = rows_folder(table, quick=quick) if out is None else Path(out)
    return folder / f"{table.name.replace('/', '-')}.jsonl"


def _committed(folder: Path, table: Table, quick: bool) -> Path | None:
    """Return a folder of the checkout, for figures of tables that come with manyhands."""
    root = checkout()
    if root is None or quick or table.name.startswith("own/") or not (root / _ROWS).is_dir():
        return None
    return root / folder
