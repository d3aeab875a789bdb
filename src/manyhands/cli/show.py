"""Words and tables for a person; all of it to stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, Literal

import polars as pl

from manyhands.io.messages import counted
from manyhands.io.read.reading import Reading
from manyhands.progress import listening

_MOST_WORKERS = 10
_CANNOT_TELL = "too-few-labels"
_LONG = 3600  # seconds over which speed is averaged for the time left; a step may take minutes
_MANY_LABELS = 20  # checked ones; who cannot be told from a guesser after so many is worth a look


def show_ledger(reading: Reading) -> None:
    """What the file is, what stands where, and what became of every row."""
    columns = ", ".join(f"{role} = {name}" for role, name in reading.columns.items())
    say(f"{reading.source}: {reading.format}" + (f" ({columns})" if columns else ""))
    say(str(reading.ledger))


def show_run(reading: Reading, told: dict[str, Any], workers: pl.DataFrame) -> None:
    """What was read, what came out, and the workers with the most labels."""
    show_ledger(reading)
    say(
        f"{counted(told['n_items'], 'item')}, {counted(told['n_workers'], 'worker')}, "
        f"{told['labels_per_item']:g} labels per item, {counted(told['n_classes'], 'class')}"
    )
    say(
        f"{told['method']}: {told['share_above_0.9']:.0%} of the labels are at least 0.9 sure; "
        f"{counted(told['n_tied'], 'tie')}, {counted(told['n_unlabelled'], 'item')} without a label"
    )
    if told["gold_contradicted"]:
        said = counted(len(told["gold_contradicted"]), "item")
        say(f"The votes contradict the gold of {said}, such as {told['gold_contradicted'][0]!r}: worth a look.")
    if told["n_components"] > 1:
        groups = told["n_components"]
        say(f"The crowd falls into {groups} groups that share no item; compare workers within a group only.")
    busiest = workers.sort("n_labels", "worker", descending=[True, False]).head(_MOST_WORKERS)
    title = counted(len(workers), "worker")
    show_table(_brief(busiest), f"The {len(busiest)} busiest of {title}" if len(workers) > _MOST_WORKERS else title)
    if "flags" in workers.columns:
        show_flags(workers)


def _brief(workers: pl.DataFrame) -> pl.DataFrame:
    """The part of the scorecards that fits on a screen; all of it is in workers.csv."""
    if "flags" not in workers.columns:
        return workers.select("worker", "n_labels", "accuracy")
    interval = pl.format("{} to {}", pl.col("accuracy_low").round(2), pl.col("accuracy_high").round(2))
    return workers.select("worker", "n_labels", "accuracy", interval.alias("95% sure"), "agreement", "flags")


def show_flags(workers: pl.DataFrame) -> None:
    """How many workers have which flag, and why those have it who should be looked at."""
    flags = workers["flags"].drop_nulls().str.split(";").explode(empty_as_null=True).value_counts(sort=True)
    if len(flags):
        said = ", ".join(f"{count} {flag}" for flag, count in flags.iter_rows())
        say(f"Flags: {said} (docs/scorecards.md says what they mean, and what they do not)")
    known_well = (pl.col("flags") != _CANNOT_TELL) | (pl.col("n_checked") >= _MANY_LABELS)
    suspect = workers.filter(pl.col("flags").is_not_null() & known_well)
    if len(suspect):
        worst = suspect.sort("accuracy_high", "worker").head(_MOST_WORKERS)
        title = f"{counted(len(suspect), 'worker')} to look at"
        title += f", the {len(worst)} worst" if len(suspect) > len(worst) else ""
        show_table(worst.select("worker", "n_labels", "flags", "reasons"), title)


def show_table(table: pl.DataFrame, title: str) -> None:
    """A data frame as a table on the terminal; control characters in its cells are shown, not obeyed."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(title=Text(printable(title)), title_justify="left")
    for name, dtype in table.schema.items():
        justify: Literal["left", "right"] = "right" if dtype.is_numeric() else "left"
        grid.add_column(Text(printable(name)), justify=justify, overflow="fold")
    for row in table.iter_rows():
        grid.add_row(*(Text(_shown(cell)) for cell in row))
    Console(stderr=True).print(grid)


def _shown(cell: Any) -> str:
    if cell is None:
        return ""
    return f"{cell:.3f}" if isinstance(cell, float) else printable(str(cell))


def printable(text: str) -> str:
    """Text that cannot move the cursor or change colours."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def say(sentence: str) -> None:
    if sys.stderr is not None:  # as Python has it where the shell closed it; print would take standard output instead
        with suppress(OSError):  # nobody is left to be told
            print(printable(sentence), file=sys.stderr, flush=True)


def progress_bar(off: bool) -> Any:
    """A bar that follows long work and says how much time is left, on a terminal only."""
    return nullcontext() if off or sys.stderr is None or not sys.stderr.isatty() else _bar()


@contextmanager
def _bar() -> Iterator[None]:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, speed_estimate_period=_LONG) as progress:
        tasks: dict[str, Any] = {}

        def listener(done: int, total: int, what: str) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(escape(printable(what)), total=total)
            progress.update(tasks[what], completed=done, total=total)

        with listening(listener):
            yield
