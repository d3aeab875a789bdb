"""`manyhands leaderboard`: every method on every data set, as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from manyhands.cli.options import AsJson, Force, OnDevice, Quiet
from manyhands.cli.printing import print_data, print_json
from manyhands.cli.run_options import Jobs, Only, Out, Quick, Retry, Seeds, ShowOnly, measuring, show_failures
from manyhands.cli.show import echo, show_table

_Write = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the page here, as Markdown; otherwise it goes to stdout.")
]


def leaderboard(
    quick: Quick = False,
    seeds: Seeds = None,
    only: Only = None,
    jobs: Jobs = None,
    device: OnDevice = None,
    retry: Retry = False,
    show_only: ShowOnly = False,
    out: Out = None,
    write: _Write = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    r"""Measure every method on every data set that suits it, with default settings; a page of ranks and metrics.

    Half an hour on two cores: it may be stopped at any time and resumes from the rows in FOLDER. Data sets are read
    from the folder in MANYHANDS_DATA.

    \b
    Examples:
      manyhands leaderboard --quick --only labelme --only crowd-layer
      manyhands leaderboard --write docs/results/leaderboard.md --force
    """
    from manyhands.reproduce.workflow import RunOptions, measure_leaderboard, require_results

    options = RunOptions(out, quick, seeds, only or (), jobs, retry, show_only, device)
    with measuring(quiet or as_json):
        run = measure_leaderboard(options, write=write, force=force)
    pages = [
        page | {"standings": [vars(standing) for standing in run.standings[name]]} for name, page in run.pages.items()
    ]
    if as_json:
        print_json({"schema": 1, "tables": pages})
        return
    if write is None:
        print_data(run.markdown)
    if not quiet:
        for table in run.tables:
            rows = [
                (s.row, s.rank, f"{s.interval[0]:.1f} to {s.interval[1]:.1f}", f"{s.n_near_best} of {s.n_sets}")
                for s in run.standings[table.name]
            ]
            columns = ["method", "mean rank", "90% interval", "near the best"]
            show_table(pl.DataFrame(rows, schema=columns, orient="row"), table.title)
            show_failures(run.pages[table.name])
        if write is not None:
            echo(f"Written to {write}")
    require_results(pages)
