"""Lines above the header of a table: a title, a date, blank lines, as people write them in spreadsheets."""

from __future__ import annotations

from collections.abc import Sequence

LOOKED_AT = 20  # rows at the top of a table that are searched for the header
_FEWEST = 3  # cells of a row of a table: item, worker, label


def count_title_rows(rows: Sequence[Sequence[str | None]]) -> int:
    """Return how many rows at the top of a table are a title rather than the names of columns.

    Rows with at most one cell are a title if a row below has three cells or more.

    Parameters
    ----------
    rows : sequence of sequence of (str or None)
        The first rows of the table.

    Returns
    -------
    int
        Number of rows above the header; 0 for an ordinary table.

    Examples
    --------
    >>> count_title_rows([["Votes of May", None, None], ["item", "worker", "label"], ["1", "ann", "yes"]])
    1
    >>> count_title_rows([["item", "worker", "label"], ["1", "", ""]])
    0
    """
    filled = [sum(bool(cell and cell.strip()) for cell in row) for row in rows]
    header = next((at for at, count in enumerate(filled) if count > 1), None)
    return header if header and filled[header] >= _FEWEST else 0


def title_note(line: int, header: Sequence[str]) -> dict[str, str]:
    """Return the note on a header that is not in the first line.

    Parameters
    ----------
    line : int
        Line or row of the header, from 1.
    header : sequence of str
        The names in it.

    Returns
    -------
    dict of str to str
        ``header_line``.
    """
    names = ", ".join(name for name in header[:5] if name)
    return {
        "header_line": f"The names of the columns were taken from line {line} ({names}); lines above it are a title."
    }
