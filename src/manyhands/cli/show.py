"""Words and tables for a person; all of it to stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import polars as pl

from manyhands.io.tables import Reading
from manyhands.progress import listening

_MOST_WORKERS = 10


def show_run(reading: Reading, told: dict[str, Any], workers: pl.DataFrame, out: Path | None) -> None:
    """What was read, what came out, and the workers with the most labels."""
    columns = ", ".join(f"{role} = {name}" for role, name in reading.columns.items())
    say(f"{reading.ledger} ({columns})")
    say(
        f"{told['n_items']} items, {told['n_workers']} workers, {told['labels_per_item']} labels per item, "
        f"{told['n_classes']} classes"
    )
    say(
        f"{told['method']}: {told['share_above_0.9']:.0%} of the labels are at least 0.9 sure; "
        f"{told['n_tied']} ties, {told['n_unlabelled']} items without a label"
    )
    if told["n_components"] > 1:
        groups = told["n_components"]
        say(f"The crowd falls into {groups} groups that share no item; compare workers within a group only.")
    # Recalls per class are in workers.csv; here they would squeeze the names.
    busiest = workers.sort("n_labels", "worker", descending=[True, False]).head(_MOST_WORKERS)[:, :3]
    show_table(busiest, f"The {len(busiest)} busiest of {len(workers)} workers")
    if out is not None:
        say(f"Written to {out}: labels.csv, workers.csv, summary.json")


def show_table(table: pl.DataFrame, title: str) -> None:
    """A data frame as a table on the terminal; control characters in its cells are shown, not obeyed."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(title=title, title_justify="left")
    for name, dtype in table.schema.items():
        grid.add_column(printable(name), justify="right" if dtype.is_numeric() else "left")
    for row in table.iter_rows():
        grid.add_row(*(Text(f"{cell:.3f}" if isinstance(cell, float) else printable(str(cell))) for cell in row))
    Console(stderr=True).print(grid)


def printable(text: str) -> str:
    """Text that cannot move the cursor or change colours."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def say(sentence: str) -> None:
    print(printable(sentence), file=sys.stderr)


def progress_bar(off: bool) -> Any:
    """A bar that follows EM, on a terminal only."""
    return nullcontext() if off or not sys.stderr.isatty() else _bar()


@contextmanager
def _bar() -> Iterator[None]:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        tasks: dict[str, Any] = {}

        def listener(done: int, total: int, what: str) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], completed=done, total=total)

        with listening(listener):
            yield
