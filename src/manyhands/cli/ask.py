"""`manyhands ask`: questions to an expert, as a file or in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manyhands import workflows
from manyhands.cli.options import AsJson, Force, Quiet, Seed, SpreadsheetSafe, takes_export
from manyhands.cli.printing import print_data, print_json, require_stdout
from manyhands.cli.questionnaire import fill_in
from manyhands.cli.show import echo, progress_bar, show_ledger
from manyhands.exceptions import ParameterError
from manyhands.io.messages import counted
from manyhands.workflows import ExportOptions
from manyhands.workflows.asking import AskRun, Questionnaire

_Number = Annotated[
    int | None, typer.Option("-n", "--number", metavar="NUMBER", help="Number of questions; by default 20, or 50.")
]
_Purpose = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="What the answers are to decide: method (20 items on which the methods disagree) or confidence (50 "
        "items at random, for calibration, accuracy and guarantees).",
    ),
]
_Out = Annotated[Path | None, typer.Option("-o", "--out", metavar="FILE", help="File to write, a CSV.")]
_Interactive = Annotated[
    bool, typer.Option("--interactive", help="Ask here, one item at a time; answers are saved in the file of -o.")
]


@takes_export
def ask(
    files: list[str],
    export: ExportOptions,
    number: _Number = None,
    out: _Out = None,
    purpose: _Purpose = "method",
    interactive: _Interactive = False,
    spreadsheet_safe: SpreadsheetSafe = False,
    seed: Seed = 0,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    r"""Draw the items whose answers help most, and write them as a table that a person can fill in.

    Fill in the column "answer" and pass the file to aggregate --answers. With --interactive the questions are asked
    in the terminal; the same command resumes where it was left.

    \b
    Examples:
      manyhands ask export.json -n 20 -o questions.csv
      manyhands ask export.json --purpose confidence -n 100 -o random.csv
      manyhands ask export.json -o questions.csv --interactive
      manyhands aggregate export.json --answers questions.csv -o out/
    """
    if interactive:
        _ask_here(files, export, number, out, purpose, spreadsheet_safe, seed, force, as_json or quiet)
        return
    if out is None:
        require_stdout()
    with progress_bar(quiet or as_json):
        run = workflows.ask(
            files,
            export,
            n=number,
            purpose=purpose,
            random_state=seed,
            spreadsheet_safe=spreadsheet_safe,
            out=out,
            force=force,
        )
    if as_json:
        print_json(run.summary)
    elif out is None:
        print_data(run.content)
    if not quiet and not as_json:
        show_ledger(run.reading)
        _show(run, out)


def _show(run: AskRun, out: Path | None) -> None:
    """Print how many items could be drawn and what to do next."""
    strata = run.summary["strata"]
    total = sum(strata.values())
    differ = total - strata["agreed"]
    echo(
        f"The methods differ on {differ} of {counted(total, 'item')}; on {strata['overruled']} of these the default "
        f"overrules the most frequent label."
    )
    if out is not None:
        echo(f"Written: {out}, {counted(len(run.table), 'question')}. Fill in the column 'answer', then run")
        echo(f"  manyhands aggregate EXPORT --answers {out}")


def _ask_here(
    files: list[str],
    export: ExportOptions,
    number: int | None,
    out: Path | None,
    purpose: str,
    spreadsheet_safe: bool,
    seed: int,
    force: bool,
    quiet: bool,
) -> None:
    """Ask in the terminal; resume a file that exists."""
    if out is None:
        raise ParameterError("--interactive saves every answer: name the file with -o FILE.")
    if "-" in files:
        raise ParameterError("--interactive reads the answers from standard input: give the export as a file.")
    if out.exists() and not force:
        reading = export.read(files)
    else:
        with progress_bar(quiet):
            run = workflows.ask(
                files,
                export,
                n=number,
                purpose=purpose,
                random_state=seed,
                spreadsheet_safe=spreadsheet_safe,
                out=out,
                force=force,
            )
        reading = run.reading
    questionnaire = Questionnaire.open(out, reading)
    fill_in(questionnaire)
    done, left = len(questionnaire.table) - len(questionnaire.open_rows), len(questionnaire.open_rows)
    echo(f"{counted(done, 'answer')} saved in {out}, {left} open.")
    if left:
        echo("The same command resumes.")
    else:
        echo(f"  manyhands aggregate {' '.join(files)} --answers {out}")
