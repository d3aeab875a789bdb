"""`manyhands simulate`: a simulated crowd as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manyhands import workflows
from manyhands.cli.options import AsJson, Force, Quiet, Seed
from manyhands.cli.printing import echo_stale, print_data, print_json, require_stdout
from manyhands.cli.show import echo
from manyhands.simulate import ATTACKS, KINDS


def simulate(
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Folder for ratings, truth and workers.")] = None,
    items: Annotated[int, typer.Option(help="Number of items.")] = 400,
    workers: Annotated[int, typer.Option(help="Number of workers.")] = 40,
    classes: Annotated[int, typer.Option(help="Number of classes.")] = 2,
    labels_per_item: Annotated[float, typer.Option(help="Mean number of labels per item.")] = 5,
    accuracy: Annotated[float, typer.Option(help="Mean accuracy of good workers.")] = 0.8,
    spread: Annotated[float, typer.Option(help="Standard deviation of their accuracy.")] = 0.1,
    kind: Annotated[str, typer.Option(help=f"Error model of good workers: {', '.join(KINDS)}.")] = "honest",
    bad: Annotated[str, typer.Option(help=f"Behaviour of bad workers: {', '.join(ATTACKS)}.")] = "random",
    bad_share: Annotated[float, typer.Option(help="Share of bad workers.")] = 0.0,
    seed: Seed = 0,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    r"""Simulate a crowd: ratings.csv, the ground truth, and which workers are bad.

    Without -o the ratings go to stdout.

    \b
    Examples:
      manyhands simulate -o crowd/ --items 1000 --classes 4 --bad constant --bad-share 0.3
      manyhands simulate | manyhands aggregate - -o out/
    """
    if out is None:
        require_stdout()
    run = workflows.simulate(
        items,
        workers,
        classes,
        labels_per_item,
        kind=kind,
        accuracy=accuracy,
        spread=spread,
        bad=bad,
        bad_share=bad_share,
        random_state=seed,
        out=out,
        force=force,
    )
    echo_stale(run.written)
    if as_json:
        print_json(run.summary)
    elif out is None:
        print_data(run.ratings)
    if out is not None and not quiet and not as_json:
        echo(f"Written to {out}: {run.written}")
