"""`manyhands report`: one HTML page that shows the labels, the workers and what to do next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manyhands import workflows
from manyhands.cli.options import AsJson, Force, Gold, Quiet, Seed, UseGold, takes_export
from manyhands.cli.printing import command_line, print_json
from manyhands.cli.show import echo, progress_bar, show_ledger
from manyhands.workflows import ExportOptions

_Out = Annotated[Path, typer.Option("-o", "--out", metavar="FILE", help="The page to write.")]
_Method = Annotated[
    str | None, typer.Option("-m", "--method", metavar="NAME", help="Aggregator, see: manyhands methods.")
]
_Answers = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Questions of manyhands ask that an expert answered; may be repeated."),
]
_Truth = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Table of items whose class is known: item, label. It only evaluates."),
]
_Compare = Annotated[bool, typer.Option("--compare", help="Fit and rank all other aggregators too.")]
_Reveal = Annotated[bool, typer.Option("--reveal", help="Show worker ids in place of pseudonyms.")]
_Key = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Secret file of the pseudonyms; by default manyhands.key beside the page."),
]
_Groups = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Table of workers and the group of each: worker, and one column.")
]
_GroupColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Column of the export that describes workers, such as their country or team."),
]
_Title = Annotated[str | None, typer.Option(metavar="TEXT", help="Name of the data.")]


@takes_export
def report(
    files: list[str],
    export: ExportOptions,
    out: _Out = Path("report.html"),
    method: _Method = None,
    gold: Gold = None,
    use_gold: UseGold = False,
    answers: _Answers = None,
    truth: _Truth = None,
    compare: _Compare = False,
    reveal: _Reveal = False,
    key: _Key = None,
    groups: _Groups = None,
    group_column: _GroupColumn = None,
    title: _Title = None,
    seed: Seed = 0,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    r"""Write one HTML page that shows the labels, the workers and what to do next.

    Of two reports, the page shows what changed from the first to the second.

    \b
    Examples:
      manyhands report export.json --question sentiment -o report.html
      manyhands report ratings.csv --truth known.csv --compare -o report.html
      manyhands report export.json --answers questions.csv -o report.html
      manyhands report ratings.csv --group-column country -o report.html
      manyhands report monday.html friday.html -o change.html
    """
    if all(workflows.is_page(name) for name in files):
        _compare_pages(files, out, force, as_json, quiet)
        return
    with progress_bar(quiet or as_json):
        made = workflows.report(
            files,
            export,
            out=out,
            method=method,
            gold=gold,
            use_gold=use_gold,
            answers=answers or (),
            truth=truth,
            compare=compare,
            reveal=reveal,
            key=key,
            groups=groups,
            group_column=group_column,
            title=title,
            command=command_line(),
            random_state=seed,
            force=force,
        )
    if as_json:
        panels = [panel.key for panel in made.report.panels]
        print_json(
            {"schema": 1, "written": list(made.written.names), "verdict": made.report.summary.title, "panels": panels}
        )
    elif not quiet:
        _show(made, out)


def _compare_pages(pages: list[str], out: Path, force: bool, as_json: bool, quiet: bool) -> None:
    """Write and print what changed between two reports."""
    found, data, written = workflows.report_change(pages, out=out, force=force)
    if as_json:
        print_json(data | {"written": list(written.names)})
    elif not quiet:
        echo(found.summary.title)
        for panel in found.panels:
            for note in panel.notes:
                echo(f"note: {note}")
        echo(f"Written: {out}")


def _show(made: workflows.ReportRun, out: Path) -> None:
    """Print the verdict, the alerts and what was written."""
    if made.run.reading is not None:
        show_ledger(made.run.reading)
    echo(made.report.summary.title)
    for alert in made.report.summary.alerts:
        echo(f"{alert.severity}: {alert.text}")
    beside = [name for name in made.written.names if name != out.name]
    echo(f"Written: {out}, {len(made.page) / 1000:,.0f} kB" + (f"; beside it {', '.join(beside)}" if beside else ""))
    if workflows.KEY in beside:
        echo(f"The pseudonyms of workers come from {workflows.KEY}: keep it, and do not send it with the page.")
