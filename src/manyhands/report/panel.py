"""`Panel`: one finding with its picture and its table; `Table`, `Chips` and `Bar`: what a table shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from manyhands.report.picture_data import Picture

_MOST_CHIPS = 12  # classes of one item
SEVERITIES = ("alert", "warning", "note")  # the most severe first


@dataclass(frozen=True)
class Chips:
    """Votes of one item, the most frequent class first.

    Attributes
    ----------
    votes : tuple of (str, int)
        Class and its number of votes.
    """

    votes: tuple[tuple[str, int], ...]
    drawn_as: ClassVar[str] = "chips"

    def __str__(self) -> str:
        return ", ".join(f"{name} {count}" for name, count in self.votes)


def chips(names: Sequence[str], votes: Sequence[int]) -> Chips:
    """Return the votes of an item.

    Parameters
    ----------
    names : sequence of str
        Names of the classes.
    votes : sequence of int
        Number of votes for each.

    Returns
    -------
    Chips
        The most frequent class first; beyond twelve classes, the rest as one.
    """
    order = sorted((k for k, count in enumerate(votes) if count), key=lambda k: (-votes[k], k))
    found = [(names[k], int(votes[k])) for k in order[:_MOST_CHIPS]]
    rest = order[_MOST_CHIPS:]
    if rest:
        found.append((f"{len(rest)} more", sum(int(votes[k]) for k in rest)))
    return Chips(tuple(found))


@dataclass(frozen=True)
class Bar:
    """A share that a table shows as a bar beside its number.

    Attributes
    ----------
    share : float
        From 0 to 1.
    """

    share: float
    drawn_as: ClassVar[str] = "bar"

    def __str__(self) -> str:
        return f"{self.share:.3f}"


@dataclass(frozen=True)
class Table:
    """A table of a panel.

    Attributes
    ----------
    caption : str
        What the rows are.
    columns : tuple of str
        Names of the columns.
    rows : tuple of tuple
        Cells: text, numbers, None, `Chips` or `Bar`.
    n_rows : int or None, default=None
        Number of rows before the table was cut; None if it is whole.
    full : str or None, default=None
        Where all rows are, if the table was cut.
    is_open : bool, default=False
        Whether the page shows the table at once, and not after a click.
    short : str, default=""
        What is shown in place of the caption while the table is closed; the caption without it.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    n_rows: int | None = None
    full: str | None = None
    is_open: bool = False
    short: str = ""

    @property
    def n_left_out(self) -> int:
        """Number of rows that are not shown."""
        return 0 if self.n_rows is None else max(self.n_rows - len(self.rows), 0)

    @property
    def numeric(self) -> tuple[bool, ...]:
        """Whether each column holds numbers, which are aligned to the right."""
        columns = ([row[at] for row in self.rows if row[at] is not None] for at in range(len(self.columns)))
        return tuple(bool(cells) and all(_is_number(cell) for cell in cells) for cells in columns)


@dataclass(frozen=True)
class Alert:
    """Something that a reader should know or do.

    Attributes
    ----------
    severity : {"alert", "warning", "note"}
        How urgent it is.
    text : str
        One sentence.
    count : int or None, default=None
        How many items, workers or rows it concerns.
    panel : str or None, default=None
        Key of the panel that shows more.
    """

    severity: str
    text: str
    count: int | None = None
    panel: str | None = None


@dataclass(frozen=True)
class Panel:
    """One finding: a sentence, how to read the picture, the picture and the numbers behind it.

    Attributes
    ----------
    key : str
        Name of the panel, an anchor of the page.
    title : str
        The finding, one sentence.
    how_to_read : str
        What the picture shows.
    n : str
        What the finding is based on, such as ``"1,000 items"``.
    svg : tuple of Picture, default=()
        Pictures, as SVG elements that take their colours from the page, with the data that they show.
    table : tuple of Table, default=()
        The same numbers, and more.
    notes : tuple of str, default=()
        Limits of the finding and what to do about it.
    values : dict, default={}
        The main numbers, for programs and tests.
    alerts : tuple of Alert, default=()
        What the head of the page says about this panel.
    parts : tuple of Panel, default=()
        Smaller panels inside this one, such as the card of each worker.
    """

    key: str
    title: str
    how_to_read: str
    n: str
    svg: tuple[Picture, ...] = ()
    table: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)
    alerts: tuple[Alert, ...] = ()
    parts: tuple[Panel, ...] = ()

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the panel with its own style."""
        from manyhands.report.page.fragment import panels_html

        return panels_html([self])


def cut(rows: Sequence[Any], most: int) -> tuple[tuple[Any, ...], int | None]:
    """Return the first rows, and the number of all if some are left out.

    Parameters
    ----------
    rows : sequence
        All rows.
    most : int
        Largest number to keep.

    Returns
    -------
    rows : tuple
        The first of them.
    n_rows : int or None
        Number of all rows; None if none was left out.
    """
    return tuple(rows[:most]), (len(rows) if len(rows) > most else None)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Bar) and not isinstance(value, bool)
