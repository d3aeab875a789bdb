"""`manyhands agree`: inter-annotator agreement, overall and by class, pair and item."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from manyhands import workflows
from manyhands.cli.kind_options import Kinds, Machines
from manyhands.cli.options import AsJson, Force, Gold, Key, Pseudonyms, Quiet, Seed, SpreadsheetSafe, takes_export
from manyhands.cli.printing import echo_stale, print_data, print_json, require_stdout
from manyhands.cli.show import echo, show_ledger, show_table
from manyhands.io.write.results import to_csv
from manyhands.workflows import AgreementRun, ExportOptions, KindOptions
from manyhands.workflows.agreement_report import LEVELS

_LEVELS = ", ".join(f"{name} ({meaning})" for name, meaning in LEVELS.items())

_Level = Annotated[str, typer.Option(metavar="LEVEL", help=f"Level of measurement of the classes: {_LEVELS}.")]
_Out = Annotated[Path | None, typer.Option("-o", "--out", metavar="FOLDER", help="Folder for the tables.")]
_Bootstrap = Annotated[
    int, typer.Option(min=0, metavar="NUMBER", help="Number of bootstrap resamples of the items for the intervals.")
]


_Effective = Annotated[
    bool,
    typer.Option(
        "--effective",
        help="Also compute how many independent votes the votes of people and of machines are worth, if they err "
        "together.",
    ),
]


@takes_export
def agree(
    files: list[str],
    export: ExportOptions,
    level: _Level = "nominal",
    out: _Out = None,
    effective: _Effective = False,
    machines: Machines = None,
    kinds: Kinds = None,
    gold: Gold = None,
    bootstrap: _Bootstrap = 1000,
    pseudonyms: Pseudonyms = False,
    key: Key = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    seed: Seed = 0,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    r"""Measure agreement: per cent, Fleiss' kappa and Krippendorff's alpha with 95% intervals; by class, pair and item.

    With --ordinal also kappa with linear and quadratic weights, overall and by pair.

    Without -o the overall figures go to stdout as CSV.

    \b
    Examples:
      manyhands agree export.json --question sentiment
      manyhands agree stars.csv --ordinal -o agreement/
      manyhands agree ratings.csv --order bad,ok,good
      manyhands agree panel.csv --effective --machines "gpt-*"
    """
    if out is None:
        require_stdout()
    run = workflows.measure_agreement(
        files,
        export,
        level=level,
        n_bootstrap=bootstrap,
        pseudonyms=pseudonyms,
        key=key,
        spreadsheet_safe=spreadsheet_safe,
        random_state=seed,
        effective=effective,
        kinds=KindOptions(machines or (), kinds),
        gold=gold,
        out=out,
        force=force,
    )
    echo_stale(run.written)
    if as_json:
        print_json(run.summary)
    elif out is None:
        print_data(to_csv(run.tables["agreement.csv"]))
    if not quiet and not as_json:
        _show(run, out)


def _show(run: AgreementRun, out: Path | None) -> None:
    """Print the tables to standard error."""
    pairs = run.tables["pairs.csv"]
    show_ledger(run.reading)
    show_table(run.tables["agreement.csv"], "Agreement, with 95% intervals over items")
    show_table(run.tables["classes.csv"], "Krippendorff's alpha of each class against all others")
    if "effective_votes.csv" in run.tables:
        for row in run.tables["effective_votes.csv"].iter_rows(named=True):
            echo(_sentence(row))
    show_table(pairs.head(10), f"Of {len(pairs)} pairs of workers, those with most items in common")
    if out is not None:
        echo(f"Written to {out}: {run.written}")


def _sentence(row: dict[str, Any]) -> str:
    """Return what the votes of one group are worth."""
    if row["correlation"] is None:
        return f"{row['group']}: no two workers can be compared with a third, so the worth of their votes is unknown."
    interval = "" if row["low"] is None else f" (95% interval {row['low']:.2f} to {row['high']:.2f})"
    return (
        f"{row['group']}: {row['votes']:.3g} votes per item are worth {row['effective_votes']:.2g} independent ones"
        f"{interval}; errors against: {row['reference']}"
    )
