"""`manyhands alt-test`: whether a model may replace the annotators."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manyhands import workflows
from manyhands.cli.kind_options import Kinds, Machines
from manyhands.cli.options import AsJson, Force, Key, Pseudonyms, Quiet, takes_export
from manyhands.cli.printing import echo_stale, print_data, print_json, require_stdout
from manyhands.cli.show import echo, show_ledger
from manyhands.io.messages import counted
from manyhands.io.write.results import to_csv
from manyhands.workflows import ExportOptions, KindOptions

_Epsilon = Annotated[
    float,
    typer.Option(
        metavar="SHARE",
        help="By how much the model may be worse because it costs less: 0.2 where annotators are experts, 0.15 where "
        "they are trained, 0.1 for a crowd.",
    ),
]
_Level = Annotated[
    str, typer.Option(metavar="LEVEL", help="How answers are compared: nominal (equal or not), ordinal, interval.")
]
_Alpha = Annotated[float, typer.Option(metavar="SHARE", help="False discovery rate of the tests.")]
_MinItems = Annotated[
    int, typer.Option(metavar="NUMBER", help="Items that an annotator must share with the model and another annotator.")
]
_Out = Annotated[Path | None, typer.Option("-o", "--out", metavar="FOLDER", help="Folder for the tables.")]


@takes_export
def alt_test(
    files: list[str],
    export: ExportOptions,
    machines: Machines = None,
    kinds: Kinds = None,
    epsilon: _Epsilon = 0.1,
    level: _Level = "nominal",
    alpha: _Alpha = 0.05,
    min_items: _MinItems = 30,
    out: _Out = None,
    pseudonyms: Pseudonyms = False,
    key: Key = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    r"""Test whether a model may replace the annotators: whether it is as close to the others as each of them.

    The alternative annotator test of Calderon, Reichart and Dror (2025). It needs some fifty items that two annotators
    or more and the model labelled. Without -o one row per model goes to stdout as CSV.

    \b
    Examples:
      manyhands alt-test ratings.csv --machines gpt-4o,llama
      manyhands alt-test stars.csv --machines "gpt-*" --ordinal --epsilon 0.2 -o test/
    """
    if out is None:
        require_stdout()
    run = workflows.assess_replacement(
        files,
        export,
        KindOptions(machines or (), kinds),
        epsilon=epsilon,
        level=level,
        alpha=alpha,
        min_items=min_items,
        pseudonyms=pseudonyms,
        key=key,
        out=out,
        force=force,
    )
    echo_stale(run.written)
    if as_json:
        print_json(run.summary)
    elif out is None:
        print_data(to_csv(run.tables["alt_test.csv"]))
    if quiet or as_json:
        return
    show_ledger(run.reading)
    for test in run.tests:
        echo(str(test))
    left_out = len({worker for test in run.tests for worker in test.left_out})
    if left_out:
        echo(f"{counted(left_out, 'annotator')} with fewer than {min_items} such items were left out.")
    if out is not None:
        echo(f"Written to {out}: {run.written}")
