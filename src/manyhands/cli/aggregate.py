"""`manyhands aggregate`: from an export to one label per item."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from manyhands import registry
from manyhands.cli.jobs import known_answers, refuse_unusable, run_job
from manyhands.cli.options import AsJson, Force, Key, Pseudonyms, Quiet, Seed, SpreadsheetSafe, reads_into
from manyhands.cli.output_targets import Target, folder_target, print_data, print_json, write_output
from manyhands.cli.show import say, show_run, show_table
from manyhands.exceptions import ParameterError
from manyhands.io.read.reading import Reading
from manyhands.io.write.pseudonyms import pseudonymise
from manyhands.io.write.result_files import KINDS, check_kinds, check_outputs, file_names, result_files
from manyhands.io.write.results import to_csv
from manyhands.io.write.spreadsheet import guard_table
from manyhands.writing import Output

NOT_SURE_ENOUGH = 4  # exit code
_GUESSED = (
    "label_studio.json holds new tasks: this export does not say what Label Studio calls its controls, so from_name is "
    "the question and to_name is 'text'. Give Label Studio's JSON export to write predictions back to its tasks."
)


_Method = Annotated[str, typer.Option("-m", "--method", metavar="NAME", help="See: manyhands methods.")]
_Out = Annotated[Path | None, typer.Option("-o", "--out", metavar="FOLDER", help="Folder for the files.")]
_Write = Annotated[list[str] | None, typer.Option(metavar="FORM", help=f"Also write labels as {', '.join(KINDS)}.")]
_Gold = Annotated[Path | None, typer.Option(metavar="FILE", help="Table of items whose label is known: item, label.")]
_UseGold = Annotated[bool, typer.Option("--use-gold", help="Use the answers that the export knows.")]
_Compare = Annotated[bool, typer.Option("--compare", help="Run all methods and say where they differ.")]
_FailUnder = Annotated[
    float | None, typer.Option(metavar="SHARE", help="Exit with 4 if fewer items (a share) are 0.9 sure.")
]


def _target(given: dict[str, Any]) -> Target | None:
    """The files that are wanted, once the options that need no export have been checked."""
    kinds = given["write"] or []
    check_kinds(kinds)
    _check_options(kinds, given["out"], given["fail_under"])
    return folder_target(given["out"], file_names(kinds, given["compare"]))


@reads_into(_target)
def aggregate(
    files: list[str],
    reading: Reading,
    output: Output | None,
    method: _Method = registry.DEFAULT,
    out: _Out = None,
    write: _Write = None,
    gold: _Gold = None,
    use_gold: _UseGold = False,
    compare: _Compare = False,
    pseudonyms: Pseudonyms = False,
    key: Key = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    fail_under: _FailUnder = None,
    seed: Seed = 0,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Infer one label per item, with confidence, and an account of every worker.

    Without -o the labels go to stdout as CSV.

    \b
    Examples:
      manyhands aggregate export.json --question sentiment -o out/
      manyhands aggregate ratings.csv --item clip --worker rater --label answer --compare -o out/
      manyhands aggregate export.json -o out/ --write label-studio --pseudonymise
    """
    refuse_unusable(reading, method)
    kinds = list(dict.fromkeys(write or []))
    check_outputs(kinds, files, reading)
    known = known_answers(reading, gold, use_gold)
    names = [Path(name).name for name in files]
    if pseudonyms or key is not None:
        reading, hide = pseudonymise(reading, key)
        names = [hide(name) for name in names]
    job = run_job(reading, method, seed, known, compare=compare, quiet=quiet or as_json)
    tables = {name: guard_table(table) for name, table in job.tables.items()} if spreadsheet_safe else job.tables
    told: dict[str, Any] = {"schema": 1, "files": names} | job.summary
    if output is not None:
        written = write_output(output, result_files(job.model, reading, files, tables, told, kinds))
    if as_json:
        print_json(told)
    elif output is None:
        print_data(to_csv(tables["labels.csv"]))
    if not quiet and not as_json:
        _show(reading, told, job.tables)
        if output is not None:
            say(f"Written to {out}: {written}")
    if "label-studio" in kinds and reading.format != "label-studio":
        say(f"note: {_GUESSED}")
    labelled = 1 - told["n_unlabelled"] / told["n_items"]
    _end_below(fail_under, labelled * (told["share_above_0.9"] or 0.0))


def _check_options(kinds: list[str], out: Path | None, fail_under: float | None) -> None:
    if kinds and out is None:
        raise ParameterError("--write needs a folder to write to: add -o FOLDER.")
    if fail_under is not None and not 0 <= fail_under <= 1:
        raise ParameterError(f"--fail-under is {fail_under:g}; it is a share, from 0 to 1.")


def _end_below(fail_under: float | None, share: float) -> None:
    if fail_under is not None and share < fail_under:
        say(f"{share:.1%} of the items are at least 0.9 sure; {fail_under:.1%} were asked for.")
        raise typer.Exit(NOT_SURE_ENOUGH)


def _show(reading: Reading, told: dict[str, Any], tables: dict[str, Any]) -> None:
    show_run(reading, told, tables["workers.csv"])
    if "methods.csv" in tables:
        differing = len(tables["differences.csv"])
        show_table(tables["methods.csv"], "Every method on the same labels")
        say("foretells: mean log-likelihood of labels held out, higher is better; same: labels as of the chosen method")
        say(f"The methods differ on {differing} of {told['n_items']} items.")
