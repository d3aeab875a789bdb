"""`manyhands demo`: a simulated crowd, from its labels to a comparison with the ground truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manyhands import workflows
from manyhands.cli.options import AsJson, Force, Seed
from manyhands.cli.printing import echo_stale, print_json
from manyhands.cli.show import echo

_SHOWN = 3  # flagged workers
_CONTENTS = {
    "report.html": "labels, workers and what to do next, in a browser",
    "labels.csv": "one label per item, with its posterior",
    "workers.csv": "a quality report for each worker",
    "methods.csv": "all aggregators, compared with the ground truth",
}


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
    _show(run)
    for name, content in _CONTENTS.items():
        echo(f"Open {out / name}: {content}.")
    echo_stale(run.written)
    if as_json:
        print_json({"schema": 1, "methods": run.methods.to_dicts()})
    echo(f"Written to {out}: {run.written}")


def _show(run: workflows.DemonstrationRun) -> None:
    """Print what was read, how certain the labels are, how many are right, and which workers to check."""
    summary, workers = run.summary, run.workers
    echo(f"Rows: {run.reading.ledger}.")
    echo(f"Labels: {summary['n_items']}, of which {summary['share_above_0.9']:.0%} have a posterior of at least 0.9.")
    accuracy = dict(run.methods.select("method", "accuracy").iter_rows())
    echo(
        f"Correct labels, by the ground truth of the simulation: {accuracy[summary['method']]:.1%} "
        f"({summary['method']}), {accuracy['majority-vote']:.1%} (majority-vote)."
    )
    flags = workers["flags"].drop_nulls().str.split(";").explode(empty_as_null=True).value_counts(sort=True)
    echo("Flags of workers: " + ", ".join(f"{count} {flag}" for flag, count in flags.iter_rows()) + ".")
    lowest = workers.filter(workers["flags"].is_not_null()).sort("accuracy_high", "worker").head(_SHOWN)
    for worker, flag, reason in lowest.select("worker", "flags", "reasons").iter_rows():
        echo(f"Check {worker} ({flag}): {reason}.")
