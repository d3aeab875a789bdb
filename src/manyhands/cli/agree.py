"""`manyhands agree`: how far workers agree, overall and by class, pair and item."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from manyhands import metrics
from manyhands.annotations import Annotations
from manyhands.cli.jobs import refuse_unusable
from manyhands.cli.options import AsJson, Force, Quiet, Seed, reads
from manyhands.cli.show import print_json, say, show_ledger, show_table
from manyhands.io.overview import describe_agreement, describe_reading
from manyhands.io.plain import to_json
from manyhands.io.reading import Reading
from manyhands.io.results import class_names, to_csv
from manyhands.writing import write_files

_LEVELS = "nominal (any classes), ordinal (in order) or interval (numbers)"


@reads
def agree(
    files: list[str],
    reading: Reading,
    level: Annotated[str, typer.Option(help=f"What the classes are: {_LEVELS}.")] = "nominal",
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Folder for the tables.")] = None,
    bootstrap: Annotated[int, typer.Option(help="How many resamples of the items make the intervals.")] = 1000,
    seed: Seed = 0,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure agreement: per cent, Fleiss' kappa and Krippendorff's alpha with 95% intervals; by class, pair and item.

    Without -o the overall figures go to stdout as CSV.

    \b
    Examples:
      manyhands agree export.json --question sentiment
      manyhands agree stars.csv --level ordinal -o agreement/
    """
    refuse_unusable(reading, "agree")
    annotations = reading.annotations
    overall = pl.DataFrame(describe_agreement(annotations, level, n_bootstrap=bootstrap, random_state=seed))
    by_class, by_pair = _by_class(annotations, bootstrap, seed), _by_pair(annotations)
    tables = {"agreement.csv": overall, "classes.csv": by_class, "pairs.csv": by_pair}
    told = {"schema": 1} | describe_reading(reading) | {name[:-4]: table.to_dicts() for name, table in tables.items()}
    if out is not None:
        contents = {name: to_csv(table) for name, table in (tables | {"items.csv": _by_item(annotations)}).items()}
        write_files(out, contents | {"agreement.json": to_json(told)}, force=force)
    if as_json:
        print_json(told)
    elif out is None:
        sys.stdout.write(to_csv(overall).decode())
    if not quiet and not as_json:
        show_ledger(reading)
        show_table(overall, "Agreement, with 95% intervals over items")
        show_table(by_class, "Alpha of each class against the rest")
        show_table(by_pair.head(10), f"Of {len(by_pair)} pairs of workers, those who share most items")
        if out is not None:
            say(f"Written to {out}: agreement.csv, agreement.json, classes.csv, items.csv, pairs.csv")


def _by_class(annotations: Annotations, bootstrap: int, seed: int) -> pl.DataFrame:
    found = metrics.class_agreement(annotations, n_bootstrap=bootstrap, random_state=seed)
    figures = {"alpha": found.value, "low": found.low, "high": found.high}
    rounded = {name: pl.Series(values).fill_nan(None) for name, values in figures.items()}
    return pl.DataFrame({"class": class_names(annotations.classes)} | rounded | {"n_labels": found.n_labels})


def _by_pair(annotations: Annotations) -> pl.DataFrame:
    found = metrics.pair_agreement(annotations)
    names = [str(worker) for worker in annotations.worker_ids.tolist()]
    table = pl.DataFrame(
        {
            "worker": [names[w] for w in found.a],
            "other": [names[w] for w in found.b],
            "n_shared": found.n_shared,
            "agreement": found.agreement,
            "cohen_kappa": pl.Series(found.kappa).fill_nan(None),
        }
    )
    return table.sort("n_shared", "worker", "other", descending=[True, False, False])


def _by_item(annotations: Annotations) -> pl.DataFrame:
    items = [str(item) for item in annotations.item_ids.tolist()]
    agreement = pl.Series(metrics.item_agreement(annotations)).fill_nan(None)
    return pl.DataFrame({"item": items, "n_labels": annotations.n_labels, "agreement": agreement})
