"""`manyhands agree`: how far workers agree, overall and by class, pair and item."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from manyhands import metrics
from manyhands.annotations import Annotations
from manyhands.cli.jobs import refuse_unusable
from manyhands.cli.options import AsJson, Force, Key, Pseudonyms, Quiet, Seed, SpreadsheetSafe, reads_into
from manyhands.cli.output_targets import Target, folder_target, print_data, print_json, write_output
from manyhands.cli.show import say, show_ledger, show_table
from manyhands.exceptions import LimitError, ParameterError
from manyhands.io.overview import describe_agreement, describe_reading
from manyhands.io.read.reading import Reading
from manyhands.io.write.json_values import to_json
from manyhands.io.write.pseudonyms import pseudonymise
from manyhands.io.write.results import class_names, to_csv
from manyhands.io.write.spreadsheet import guard_table
from manyhands.writing import Output

_RESAMPLES = "How many resamples of the items make the intervals."
_KNOWN_LEVELS = ("nominal", "ordinal", "interval")
_LEVELS = "nominal (any classes), ordinal (in order) or interval (numbers)"
_FILES = ("agreement.csv", "agreement.json", "classes.csv", "items.csv", "pairs.csv")


def _target(given: dict[str, Any]) -> Target | None:
    _ranks(given["level"], given["order"])
    return folder_target(given["out"], _FILES)


@reads_into(_target)
def agree(
    files: list[str],
    reading: Reading,
    output: Output | None,
    level: Annotated[str, typer.Option(metavar="LEVEL", help=f"What the classes are: {_LEVELS}.")] = "nominal",
    order: Annotated[str | None, typer.Option(metavar="A,B,C", help="Ordinal classes from low to high.")] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="FOLDER", help="Folder for the tables.")] = None,
    bootstrap: Annotated[int, typer.Option(min=0, metavar="NUMBER", help=_RESAMPLES)] = 1000,
    pseudonyms: Pseudonyms = False,
    key: Key = None,
    spreadsheet_safe: SpreadsheetSafe = False,
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
    if pseudonyms or key is not None:
        reading, _ = pseudonymise(reading, key)
    annotations = reading.annotations
    options = {"n_bootstrap": bootstrap, "random_state": seed}
    overall = pl.DataFrame(describe_agreement(annotations, level, _ranks(level, order), **options))
    by_class, by_pair = _by_class(annotations, bootstrap, seed), _by_pair(annotations)
    tables = {"agreement.csv": overall, "classes.csv": by_class, "pairs.csv": by_pair}
    told = {"schema": 1} | describe_reading(reading) | {name[:-4]: table.to_dicts() for name, table in tables.items()}
    if output is not None:
        tables["items.csv"] = _by_item(annotations)
        safe = {name: guard_table(table) for name, table in tables.items()} if spreadsheet_safe else tables
        contents = {name: to_csv(table) for name, table in safe.items()}
        written = write_output(output, contents | {"agreement.json": to_json(told)})
    if as_json:
        print_json(told)
    elif out is None:
        print_data(to_csv(overall))
    if not quiet and not as_json:
        show_ledger(reading)
        show_table(overall, "Agreement, with 95% intervals over items")
        show_table(by_class, "Alpha of each class against the rest")
        show_table(by_pair.head(10), f"Of {len(by_pair)} pairs of workers, those who share most items")
        if output is not None:
            say(f"Written to {out}: {written}")


def _ranks(level: str, order: str | None) -> list[str] | None:
    """The classes in their order, where one is given, once both options are known to make sense together."""
    if level not in _KNOWN_LEVELS:
        raise ParameterError(f"--level is {level!r}; it may be {_LEVELS}.")
    if order is not None and level != "ordinal":
        raise ParameterError("--order is for ordinal classes: add --level ordinal.")
    return None if order is None else [name.strip() for name in order.split(",")]


def _by_class(annotations: Annotations, bootstrap: int, seed: int) -> pl.DataFrame:
    names = class_names(annotations.classes)
    try:
        found = metrics.class_agreement(annotations, n_bootstrap=bootstrap, random_state=seed)
    except LimitError as error:
        say(f"note: {error}")
        return pl.DataFrame(schema={"class": pl.String, "alpha": pl.Float64})
    figures = {"alpha": found.value, "low": found.low, "high": found.high}
    rounded = {name: pl.Series(values).fill_nan(None) for name, values in figures.items()}
    return pl.DataFrame({"class": names} | rounded | {"n_labels": found.n_labels})


def _by_pair(annotations: Annotations) -> pl.DataFrame:
    try:
        found = metrics.pair_agreement(annotations)
    except LimitError as error:
        say(f"note: {error}")
        return pl.DataFrame(schema={"worker": pl.String, "other": pl.String, "n_shared": pl.Int64})
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
