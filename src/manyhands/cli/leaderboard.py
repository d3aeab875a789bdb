"""`manyhands leaderboard`: every method on every data set, as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from manyhands.cli.options import AsJson, Force, Quiet
from manyhands.cli.printing import print_data, print_json
from manyhands.cli.reproduce import (
    Jobs,
    Only,
    Out,
    Quick,
    Retry,
    RunOptions,
    Seeds,
    ShowOnly,
    end_if_all_failed,
    measure,
    refuse_all,
    refuse_places,
    show_failures,
)
from manyhands.cli.show import say, show_table
from manyhands.workflows.outputs import claim_file, write_all

_Write = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the page here, as Markdown; else it goes to stdout.")
]


def leaderboard(
    quick: Quick = False,
    seeds: Seeds = None,
    only: Only = None,
    jobs: Jobs = None,
    retry: Retry = False,
    show_only: ShowOnly = False,
    out: Out = Path("reproduced"),
    write: _Write = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure every method on every data set that suits it, with default settings; a page of ranks and figures.

    Half an hour on two cores: it may be stopped at any time and goes on from what is in FOLDER. Data sets come from
    the folder in MANYHANDS_DATA.

    \b
    Examples:
      manyhands leaderboard --quick --only labelme --only crowd-layer
      manyhands leaderboard --write docs/results/leaderboard.md --force
    """
    from manyhands.reproduce import leaderboard as board
    from manyhands.reproduce.rendering import page
    from manyhands.reproduce.verdicts import entries

    wish = RunOptions(out, quick, seeds, only or (), jobs, retry, show_only, quiet or as_json)
    command = wish.command("manyhands leaderboard")
    with claim_file(write, force=force) as output:
        tables = board.wanted(wish.only)
        refuse_places(tables, wish)
        refuse_all(tables, wish)
        parts = [(table, *measure(table, wish)) for table in tables]
        markdown = board.to_markdown(parts, command)
        if output is not None and write is not None:
            write_all(output, {write.name: markdown.encode()})
    standings = {table.name: board.standings(entries(table, cells, records)) for table, cells, records in parts}
    if as_json:
        pages = [page(*part, command) | {"standings": [vars(s) for s in standings[part[0].name]]} for part in parts]
        print_json({"schema": 1, "tables": pages})
        return
    if write is None:
        print_data(markdown)
    if not quiet:
        for table, cells, records in parts:
            rows = [(s.row, s.rank, f"{s.n_near_best} of {s.n_sets}") for s in standings[table.name]]
            show_table(pl.DataFrame(rows, schema=["method", "mean rank", "near the best"], orient="row"), table.title)
            show_failures(page(table, cells, records, command))
        say(f"Written to {write}" if write is not None else f"Results are in {out}")
    end_if_all_failed([page(*part, command) for part in parts])
