"""Options that `reproduce` and `leaderboard` share.

Quick      --quick: reduced data and training, to test that everything runs
Seeds      --seeds NUMBER
Only       --only NAME: restrict tables to some data sets and rows
Jobs       --jobs NUMBER: processes at once
Out        -o FOLDER: result rows and figures
Retry      --retry: measure failed cells again
ShowOnly   --show: measure nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from manyhands.cli.show import echo, progress_bar
from manyhands.io.messages import counted

Quick = Annotated[
    bool, typer.Option("--quick", help="Reduce data and training, to test that it runs; the figures have no meaning.")
]
Seeds = Annotated[int | None, typer.Option(min=1, metavar="NUMBER", help="Number of seeds, if not that of the table.")]
Only = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="A data set or a row to which tables are restricted; may be repeated."),
]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, metavar="NUMBER", help="Processes at once; by default as many as cores and memory allow."),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--out",
        metavar="FOLDER",
        help="Folder of result rows and figures; by default docs/results in a checkout, else reproduced.",
    ),
]
Retry = Annotated[bool, typer.Option("--retry", help="Measure cells again that failed before.")]
ShowOnly = Annotated[bool, typer.Option("--show", help="Measure nothing; show the rows that exist.")]


@contextmanager
def measuring(quiet: bool) -> Iterator[None]:
    """Show progress while cells are measured, and how to resume after an interruption.

    Parameters
    ----------
    quiet : bool
        Show no progress.
    """
    try:
        with progress_bar(quiet):
            yield
    except KeyboardInterrupt:
        echo("note: finished cells are saved; the same command resumes from there.")
        raise


def show_failures(page: dict[str, Any]) -> None:
    """Print a note for each row that failed on a data set, and how to try again.

    Parameters
    ----------
    page : dict
        Figures of a table.
    """
    from manyhands.reproduce.rendering import failures

    for sentence in failures(page):
        echo(f"note: {sentence}")
    if page["n_failed"]:
        echo(f"note: {counted(page['n_failed'], 'cell')} failed; --retry tries again.")
