"""`manyhands demo`: a simulated crowd, from its labels to a comparison with the ground truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manyhands import workflows
from manyhands.cli.options import AsJson, Force, Seed
from manyhands.cli.printing import echo_stale, print_json
from manyhands.cli.show import echo, show_run, show_table


def demo(
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for the files.")] = Path("demo"),
    seed: Seed = 0,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    r"""Simulate a crowd, aggregate its labels, and compare all aggregators with the ground truth.

    \b
    Examples:
      manyhands demo
      manyhands demo -o somewhere/ --seed 7
    """
    run = workflows.demonstrate(out, random_state=seed, force=force)
    echo("A simulated crowd: 1000 pictures, 60 workers, 4 labels per picture; 3 of 10 workers answer at random.")
    echo(f"$ manyhands aggregate {out / 'ratings.csv'} -o {out}")
    show_run(run.reading, run.summary, run.workers)
    echo_stale(run.written)
    show_table(run.methods, "All aggregators, compared with the ground truth (also in methods.csv)")
    if as_json:
        print_json({"schema": 1, "methods": run.methods.to_dicts()})
    echo(f"Written to {out}: {run.written}")
