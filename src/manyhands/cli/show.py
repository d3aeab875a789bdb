"""Text and tables for people, on standard error; data goes to standard output (`printing`).

polars and `manyhands.io` are imported in functions: `doctor` prints where they cannot be loaded.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from manyhands.progress_display import showing

if TYPE_CHECKING:
    import polars as pl

    from manyhands.io.read.reading import Reading

_MOST_WORKERS = 10


def echo(sentence: str) -> None:
    """Print one line to standard error, control characters as escapes.

    Parameters
    ----------
    sentence : str
        The line.
    """
    if sys.stderr is not None:  # None if the shell closed it; print would use standard output instead
        with suppress(OSError):  # a closed pipe: there is no reader
            print(printable(sentence), file=sys.stderr, flush=True)


def printable(text: str) -> str:
    r"""Return text whose control characters are escaped, so that it cannot move the cursor or change colours.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        Printable characters only.

    Examples
    --------
    >>> printable("a\x1b[31m")
    'a\\x1b[31m'
    """
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def show_ledger(reading: Reading) -> None:
    """Print format, columns and the count of rows that were kept and left out.

    Parameters
    ----------
    reading : Reading
        What was read.
    """
    columns = ", ".join(f"{role} = {name}" for role, name in reading.columns.items())
    echo(f"{reading.source}: {reading.format}" + (f" ({columns})" if columns else ""))
    echo(str(reading.ledger))


def show_run(reading: Reading, summary: dict[str, Any], workers: pl.DataFrame) -> None:
    """Print what was read, the main figures of the result, and the workers with the most labels.

    Parameters
    ----------
    reading : Reading
        What was read.
    summary : dict
        Figures of the run, as in ``summary.json``.
    workers : polars.DataFrame
        Quality report of each worker, as in ``workers.csv``.
    """
    show_ledger(reading)
    show_figures(summary, workers)


def show_figures(summary: dict[str, Any], workers: pl.DataFrame) -> None:
    """Print the main figures of a result, and the workers with the most labels.

    Parameters
    ----------
    summary : dict
        Figures of the run, as in ``summary.json``.
    workers : polars.DataFrame
        Quality report of each worker, as in ``workers.csv``.
    """
    from manyhands.io.messages import counted

    echo(
        f"{counted(summary['n_items'], 'item')}, {counted(summary['n_workers'], 'worker')}, "
        f"{summary['labels_per_item']:g} labels per item, {counted(summary['n_classes'], 'class')}"
    )
    echo(
        f"{summary['method']}: {summary['share_above_0.9']:.0%} of the labels have a posterior of at least 0.9; "
        f"{counted(summary['n_tied'], 'tie')}, {counted(summary['n_unlabelled'], 'item')} without a label"
    )
    if "order" in summary:
        _show_order(summary)
    if summary.get("gold_contradicted"):
        items = counted(len(summary["gold_contradicted"]), "item")
        echo(f"The votes contradict the gold of {items}, such as {summary['gold_contradicted'][0]!r}: check them.")
    if summary["n_components"] > 1:
        groups = summary["n_components"]
        echo(f"The crowd consists of {groups} groups that have no item in common; compare workers within a group only.")
    busiest = workers.sort("n_labels", "worker", descending=[True, False]).head(_MOST_WORKERS)
    title = counted(len(workers), "worker")
    if len(workers) > _MOST_WORKERS:
        title = f"The {len(busiest)} of {title} with the most labels"
    show_table(_main_columns(busiest), title)
    if "flags" in workers.columns:
        show_flags(workers)


def _show_order(summary: dict[str, Any]) -> None:
    """Print the order of the classes, and the agreement of the crowd on it."""
    kappas = [(name, summary[f"{name}_kappa"]) for name in ("linear", "quadratic")]
    known = ", ".join(f"{value:.2f} with {name} weights" for name, value in kappas if value is not None)
    echo("Order of the classes: " + " < ".join(summary["order"]) + (f"; kappa {known}" if known else ""))


def _main_columns(workers: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of workers.csv that fit on a screen."""
    import polars as pl

    if "accuracy_low" not in workers.columns:
        return workers.select("worker", "n_labels", "accuracy")
    interval = pl.format("{} to {}", _with_two_decimals("accuracy_low"), _with_two_decimals("accuracy_high"))
    if "flags" not in workers.columns:
        return workers.select("worker", "n_labels", "accuracy", interval.alias("95% interval"))
    agreement = ["quadratic_kappa", "grade_bias"] if "grade_bias" in workers.columns else ["agreement"]
    seconds = ["median_seconds"] if "median_seconds" in workers.columns else []
    columns = ["worker", "n_labels", "accuracy", interval.alias("95% interval"), *agreement, *seconds, "flags"]
    return workers.select(columns)


def show_flags(workers: pl.DataFrame) -> None:
    """Print the count of every flag, and the reasons for the flagged workers.

    Parameters
    ----------
    workers : polars.DataFrame
        Quality report with the columns ``flags``, ``reasons`` and ``accuracy_high``.
    """
    import polars as pl

    from manyhands.io.messages import counted
    from manyhands.scorecards import ACCUSATIONS

    flags = workers["flags"].drop_nulls().str.split(";").explode(empty_as_null=True).value_counts(sort=True)
    if len(flags):
        counts = ", ".join(f"{count} {flag}" for flag, count in flags.iter_rows())
        echo(f"Flags: {counts} (docs/scorecards.md defines them)")
    flagged = workers.filter(pl.col("flags").is_not_null() & (pl.col("flags") != "too-few-labels"))
    if len(flagged):
        accused = pl.col("flags").str.split(";").list.set_intersection(list(ACCUSATIONS)).list.len() > 0
        shown = flagged.sort(accused, "accuracy_high", "worker", descending=[True, False, False]).head(_MOST_WORKERS)
        title = f"{counted(len(flagged), 'worker')} to check"
        title += f", the {len(shown)} to look at first" if len(flagged) > len(shown) else ""
        show_table(shown.select("worker", "n_labels", "flags", "reasons"), title)


def show_table(table: pl.DataFrame, title: str) -> None:
    """Print a data frame as a table, control characters in its cells as escapes.

    Parameters
    ----------
    table : polars.DataFrame
        What to show.
    title : str
        Line above the table.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(title=Text(printable(title)), title_justify="left")
    for name, dtype in table.schema.items():
        justify: Literal["left", "right"] = "right" if dtype.is_numeric() else "left"
        whole = name == "method"  # names of the registry are short; ids of a file may have any length
        grid.add_column(Text(printable(name)), justify=justify, overflow="fold", no_wrap=whole)
    for row in table.iter_rows():
        grid.add_row(*(Text(_format_cell(cell)) for cell in row))
    Console(stderr=True).print(grid)


def _format_cell(cell: Any) -> str:
    """Return a cell as text; numbers with three decimals."""
    if cell is None:
        return ""
    return f"{cell:.3f}" if isinstance(cell, float) else printable(str(cell))


def progress_bar(off: bool) -> Any:
    """Return a context in which progress reports are shown as bars with the remaining time.

    Parameters
    ----------
    off : bool
        Show nothing; so it is, too, if standard error is not a terminal, and in the first two seconds.

    Returns
    -------
    context manager
        Shows what `manyhands.progress.report` is called with.
    """
    return showing(0 if off else 1)


def _with_two_decimals(column: str) -> pl.Expr:
    """Return the numbers of a column as text, 0.9 as "0.90"; null where there is none."""
    import polars as pl

    return pl.col(column).map_elements("{:.2f}".format, return_dtype=pl.String)
