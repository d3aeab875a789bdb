"""`manyhands simulate`: a made-up crowd as files, to try things on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from manyhands.cli.options import AsJson, Force, Quiet, Seed
from manyhands.cli.output_targets import claimed, folder_target, print_data, print_json, write_output
from manyhands.cli.show import say
from manyhands.io.overview import describe_crowd
from manyhands.io.write.results import to_csv
from manyhands.io.write.triples import triples_frame
from manyhands.simulate import ATTACKS, KINDS, Crowd, make_crowd

_FILES = ("ratings.csv", "truth.csv", "planted_workers.csv")


def simulate(
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Folder for ratings, truth and workers.")] = None,
    items: Annotated[int, typer.Option(help="How many items.")] = 400,
    workers: Annotated[int, typer.Option(help="How many workers.")] = 40,
    classes: Annotated[int, typer.Option(help="How many classes.")] = 2,
    labels_per_item: Annotated[float, typer.Option(help="How many labels an item gets on average.")] = 5,
    accuracy: Annotated[float, typer.Option(help="Of honest workers.")] = 0.8,
    spread: Annotated[float, typer.Option(help="Standard deviation of their accuracy.")] = 0.1,
    kind: Annotated[str, typer.Option(help=f"How honest workers err: {', '.join(KINDS)}.")] = "honest",
    bad: Annotated[str, typer.Option(help=f"What bad workers do: {', '.join(ATTACKS)}.")] = "random",
    bad_share: Annotated[float, typer.Option(help="The share of bad workers.")] = 0.0,
    seed: Seed = 0,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Make up a crowd: ratings.csv, the truth behind them, and which workers are bad.

    Without -o the ratings go to stdout.

    \b
    Examples:
      manyhands simulate -o crowd/ --items 1000 --classes 4 --bad constant --bad-share 0.3
      manyhands simulate | manyhands aggregate - -o out/
    """
    with claimed(folder_target(out, _FILES), force) as output:
        crowd = make_crowd(
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
        )
        ratings = to_csv(triples_frame(crowd.annotations, unanswered=False))
        written = "" if output is None else write_output(output, {"ratings.csv": ratings} | _planted(crowd))
    if as_json:
        names = written.split(", ") if written else []
        print_json({"schema": 1, "written": names} | describe_crowd(crowd.annotations))
    elif out is None:
        print_data(ratings)
    if out is not None and not quiet and not as_json:
        say(f"Written to {out}: {written}")


def _planted(crowd: Crowd) -> dict[str, bytes]:
    names = crowd.annotations
    truth = pl.DataFrame({"item": [str(i) for i in names.item_ids.tolist()], "label": names.classes[crowd.truth]})
    workers = pl.DataFrame({"worker": [str(w) for w in names.worker_ids.tolist()], "bad": crowd.is_bad})
    return {"truth.csv": to_csv(truth), "planted_workers.csv": to_csv(workers)}
