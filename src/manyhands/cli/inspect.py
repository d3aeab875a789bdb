"""`manyhands inspect`: what a file holds, before anything is done with it."""

from __future__ import annotations

from typing import Any

import polars as pl

from manyhands.cli.options import AsJson, Quiet, reads
from manyhands.cli.output_targets import print_json
from manyhands.cli.show import say, show_ledger, show_table
from manyhands.io.messages import counted
from manyhands.io.overview import overview
from manyhands.io.read.reading import Reading


@reads
def inspect(files: list[str], reading: Reading, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Show what a file holds: its format, what stands where, what is left out and why, coverage and agreement.

    \b
    Examples:
      manyhands inspect export.json
      manyhands inspect export.json --question sentiment --json
      manyhands inspect batch1.csv batch2.csv --item Input.url
    """
    told = overview(reading)
    if as_json:
        print_json(told)
    elif not quiet:
        _show(reading, told)


def _show(reading: Reading, told: dict[str, Any]) -> None:
    show_ledger(reading)
    if reading.refusal is not None:
        say(reading.refusal)
        return
    if len(reading.questions) > 1:
        others = ", ".join(f"{name} ({count})" for name, count in reading.questions.items())
        say(f"Question: {reading.question}, of these (with their answers): {others}")
    say(
        f"{counted(told['n_items'], 'item')}, {counted(told['n_workers'], 'worker')}, "
        f"{counted(told['n_classes'], 'class')}; {told['labels_per_item']['mean']:g} labels per item, "
        f"{counted(told['n_unlabelled'], 'item')} without a label, {told['n_labelled_once']} with one"
    )
    if not told["n_annotations"]:
        say("No label counts, so there is nothing to aggregate yet.")
        return
    say(f"{told['density']:.2%} of all item-worker pairs are labelled; imbalance R = {told['imbalance']:.3f}")
    if told["n_components"] > 1:
        say(f"The crowd falls into {told['n_components']} groups that share no item.")
    if reading.gold:
        known = counted(len(reading.gold), "item")
        say(f"The file itself gives the right answer for {known}; aggregate --use-gold uses it.")
    labels = told["labels"]
    shares = {"class": list(labels), "labels": list(labels.values())}
    show_table(pl.DataFrame(shares).sort("labels", "class", descending=[True, False]).head(20), "Labels given")
    show_table(pl.DataFrame(told["agreement"]), "Agreement, with 95% intervals over items")
    show_table(pl.DataFrame(told["examples"]), "The first judgements that count")
