"""Tables as files: those that come with manyhands in `tables/<paper>/<table>.toml`, and your own.

Reading a table imports no method.
"""

from __future__ import annotations

from pathlib import Path

from manyhands.exceptions import ParameterError
from manyhands.reproduce.keys import nearest
from manyhands.reproduce.parsing import parse_table
from manyhands.reproduce.tables import Table

_FOLDER = Path(__file__).parent / "tables"


def table_names() -> list[str]:
    """Return the names of the tables that come with manyhands, as ``paper/table``, sorted.

    Returns
    -------
    list of str
        Names for `load_table`.

    Examples
    --------
    >>> "crowding/table-1" in table_names()
    True
    """
    return sorted(f"{path.parent.name}/{path.stem}" for path in _FOLDER.glob("*/*.toml"))


def load_table(name: str | Path) -> Table:
    """Read a table that comes with manyhands, or one of your own.

    Parameters
    ----------
    name : str or Path
        One of `table_names`, or the path of a TOML file.

    Returns
    -------
    Table
        The table.

    Raises
    ------
    ParameterError
        If there is no such table, or it has a mistake.

    Examples
    --------
    >>> load_table("crowding/table-1").number
    'Table 1'
    """
    known = table_names()
    if name in known:
        return _read(_FOLDER / f"{name}.toml", str(name))
    path = Path(name)
    if path.suffix == ".toml" and not path.is_file():
        raise ParameterError(f"There is no file {str(name)!r}; tables that come with manyhands have no ending.")
    if path.suffix == ".toml":
        return _read(path, f"own/{path.stem}")
    raise ParameterError(f"There is no table {str(name)!r}{nearest(str(name), known)}.")


def _read(path: Path, name: str) -> Table:
    """Parse a file."""
    try:
        return parse_table(path.read_text(encoding="utf-8"), name)
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"The table in {path} cannot be read: {error}.") from None
