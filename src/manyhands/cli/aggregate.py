"""`manyhands aggregate`: from an export to one label per item."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from manyhands import registry, workflows
from manyhands.cli.config import ConfigRecord
from manyhands.cli.kind_options import Kinds, Machines
from manyhands.cli.options import (
    AsJson,
    Force,
    Gold,
    Key,
    Pseudonyms,
    Quiet,
    Seed,
    SpreadsheetSafe,
    UseGold,
    takes_export,
)
from manyhands.cli.printing import command_line, echo_stale, print_data, print_json, require_stdout
from manyhands.cli.show import echo, progress_bar, show_run, show_table
from manyhands.cli.show_sharded import show_sharded
from manyhands.exceptions import ParameterError
from manyhands.io.messages import listed
from manyhands.io.write.result_files import KINDS
from manyhands.workflows import AggregationRun, ExportOptions, KindOptions, QuestionRuns, ShardedRun

BELOW_THRESHOLD = 4  # exit code
_ON_SCREEN = (  # columns of methods.csv that fit on a screen
    "method",
    "rank",
    "heldout_log_likelihood",
    "standard_error",
    "mean_confidence",
    "agreement_with_chosen",
)
_NEW_TASKS = (
    "label_studio_tasks.json contains new tasks: this export does not name Label Studio's controls, so from_name is "
    "the question and to_name is 'text'."
)

_Method = Annotated[
    str | None,
    typer.Option(
        "-m",
        "--method",
        metavar="NAME",
        help=f"Aggregator, see: manyhands methods. The default is {registry.DEFAULT}; with --ordinal "
        f"{registry.DEFAULT_ORDINAL}.",
    ),
]
_Out = Annotated[Path | None, typer.Option("-o", "--out", metavar="FOLDER", help="Folder for the files.")]
_Write = Annotated[list[str] | None, typer.Option(metavar="FORMAT", help=f"Also write labels as {', '.join(KINDS)}.")]
_Compare = Annotated[
    bool,
    typer.Option(
        "--compare",
        help="Rank all aggregators by the cross-validated log-likelihood of held-out labels, and list the items on "
        "which they differ.",
    ),
]
_Answers = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Questions of manyhands ask that an expert answered; may be repeated."),
]
_Guarantee = Annotated[
    str | None,
    typer.Option(
        metavar="PROMISE",
        help='Such as "error<=5% at 95%": which labels stand, and which items must go to an expert. Needs --answers '
        "about random items.",
    ),
]
_Sets = Annotated[
    str | None, typer.Option(metavar="SHARE", help="Label sets that contain the truth for this share, such as 90%.")
]
_FailUnder = Annotated[
    float | None,
    typer.Option(metavar="SHARE", help="Exit with 4 if a smaller share of items has a posterior of at least 0.9."),
]


_Report = Annotated[bool, typer.Option("--report", help="Also write report.html: one page that shows the result.")]
_Reveal = Annotated[bool, typer.Option("--reveal", help="Show worker ids in report.html in place of pseudonyms.")]
_DownWeight = Annotated[
    bool,
    typer.Option(
        "--down-weight", help="Count machines of one family as the independent votes that they are worth, copies once."
    ),
]
_MaxMemory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Limit for the whole job, such as 4GB. A larger job runs out of core: its labels stay on disk. By "
        "default, the limit is the memory that is free now.",
    ),
]
_Shards = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="hash: fit on the shards of an out-of-core run in memory too, to the same bits."),
]
_Cache = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER", help="Folder for the codes of exports that do not fit into memory; by default the user's."
    ),
]
_AllQuestions = Annotated[
    bool, typer.Option("--all-questions", help="Aggregate every question of the export into a folder of its own.")
]


@takes_export
def aggregate(
    files: list[str],
    export: ExportOptions,
    method: _Method = None,
    out: _Out = None,
    write: _Write = None,
    gold: Gold = None,
    use_gold: UseGold = False,
    answers: _Answers = None,
    guarantee: _Guarantee = None,
    sets: _Sets = None,
    compare: _Compare = False,
    report: _Report = False,
    reveal: _Reveal = False,
    pseudonyms: Pseudonyms = False,
    key: Key = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    fail_under: _FailUnder = None,
    all_questions: _AllQuestions = False,
    down_weight: _DownWeight = False,
    machines: Machines = None,
    kinds: Kinds = None,
    max_memory: _MaxMemory = None,
    shards: _Shards = None,
    cache: _Cache = None,
    seed: Seed = 0,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    config: ConfigRecord | None = None,
) -> None:
    r"""Infer one label per item with its posterior probability, and a quality report for each worker.

    Without -o the labels go to stdout as CSV.

    \b
    Examples:
      manyhands aggregate export.json --question sentiment -o out/
      manyhands aggregate ratings.csv --item clip --worker rater --label answer --compare -o out/
      manyhands aggregate export.json -o out/ --write label-studio --pseudonymise
      manyhands aggregate export.json --question sentiment -o out/ --write training
      manyhands aggregate export.json --all-questions -o out/
      manyhands aggregate export.json -o out/ --report
      manyhands aggregate stars.csv --ordinal -o out/
      manyhands aggregate ratings.csv --down-weight --machines "gpt-*,llama" -o out/
      manyhands aggregate export.json --answers questions.csv -o out/
      manyhands aggregate huge.parquet -o out/ --max-memory 4GB
      manyhands aggregate export.json --answers random.csv --guarantee "error<=5% at 95%" -o out/
    """
    if fail_under is not None and not 0 <= fail_under <= 1:
        raise ParameterError(f"--fail-under is {fail_under:g}; it must be a share, from 0 to 1.")
    if not down_weight and (machines or kinds is not None):
        raise ParameterError("--machines and --kinds name the machines for --down-weight: add it.")
    run_one = partial(
        workflows.aggregate,
        files,
        method=method,
        gold=gold,
        use_gold=use_gold,
        answers=answers or (),
        guarantee=guarantee,
        sets=sets,
        compare=compare,
        report=report,
        reveal=reveal,
        command=command_line(),
        pseudonyms=pseudonyms,
        key=key,
        spreadsheet_safe=spreadsheet_safe,
        random_state=seed,
        write=write or (),
        force=force,
        config=None if config is None else config.as_dict(),
        families=KindOptions(machines or (), kinds) if down_weight else None,
        max_memory=max_memory,
        shards=shards,
        cache=cache,
        say=None if quiet or as_json else echo,
    )
    if all_questions:
        _check_all_questions(fail_under, answers, shards)
        with progress_bar(quiet or as_json):
            runs = workflows.aggregate_questions(
                files,
                export,
                lambda one, folder: _in_memory(run_one(export=one, out=folder, all_questions=True)),
                out=out,
                force=force,
                max_memory=max_memory,
            )
        _show_all(runs, out, as_json, quiet)
        return
    if out is None:
        require_stdout()
    with progress_bar(quiet or as_json):
        run = run_one(export=export, out=out)
    echo_stale(run.written)
    if isinstance(run, ShardedRun):
        show_sharded(run, as_json=as_json, quiet=quiet)
    else:
        _print_run(run, out, as_json=as_json, quiet=quiet, is_limited=max_memory is not None)
        if "label-studio-tasks" in (write or ()) and run.reading.format != "label-studio":
            echo(f"note: {_NEW_TASKS}")
    _end_below(fail_under, run.confident_share)


def _check_all_questions(fail_under: float | None, answers: list[Path] | None, shards: str | None) -> None:
    """Refuse options that are about one question."""
    if fail_under is not None:
        raise ParameterError("--fail-under is about one question: name it with --question.")
    if answers:
        raise ParameterError("--answers are about one question: name it with --question.")
    if shards is not None:
        raise ParameterError("--shards hash does not support --all-questions: leave it out.")


def _print_run(run: AggregationRun, out: Path | None, *, as_json: bool, quiet: bool, is_limited: bool) -> None:
    """Print the result of a run in memory: data to standard output, the summary to standard error."""
    if as_json:
        print_json(run.summary)
    elif out is None:
        print_data(run.files["labels.csv"])
    if not quiet and not as_json:
        if is_limited and run.route is not None:
            echo(run.route.reason)
        _show(run, out)


def _in_memory(run: AggregationRun | ShardedRun) -> AggregationRun:
    """Return the run of one question of several, which is never on shards."""
    assert isinstance(run, AggregationRun)
    return run


def _show_all(runs: QuestionRuns, out: Path | None, as_json: bool, quiet: bool) -> None:
    """Print the overview of all questions."""
    if as_json:
        print_json({"schema": 1, "questions": runs.table.to_dicts()})
    elif not quiet:
        shown = [name for name in runs.table.columns if name != "reason"]
        show_table(runs.table.filter(pl.col("folder").is_not_null()).select(shown), "All questions")
        if "reason" in runs.table.columns:
            for name, reason in runs.table.select("question", "reason").drop_nulls("reason").iter_rows():
                echo(f"{name} was left out: {reason}")
        echo(f"Written to {out}: a folder for each question, and {runs.written}")


def _on_screen(column: str) -> str:
    """Return the name of a column as text."""
    return column.replace("heldout_log_likelihood", "held-out log likelihood").replace("_", " ")


def _show(run: AggregationRun, out: Path | None) -> None:
    """Print the summary of a run to standard error."""
    show_run(run.reading, run.summary, run.tables["workers.csv"])
    for sentence in run.summary["trust"]["sentences"]:
        echo(sentence)
    if "methods.csv" in run.tables:
        columns = [pl.col(name).alias(_on_screen(name)) for name in _ON_SCREEN]
        show_table(run.tables["methods.csv"].select(columns), "All aggregators on the same labels")
        echo("held-out log likelihood: mean over held-out labels, five-fold cross-validation; higher is better")
        own = run.tables["methods.csv"].filter(pl.col("likelihood") == "own")["method"].to_list()
        if own:
            echo(f"By a likelihood of their own, with the difficulty of items: {', '.join(sorted(own))}.")
        differing = len(run.tables["differences.csv"])
        echo(f"The methods differ on {differing} of {run.summary['n_items']} items.")
    if run.summary.get("training_fields"):
        echo(f"The training set has the label of each item beside its {listed(run.summary['training_fields'])}.")
    if out is not None:
        echo(f"Written to {out}: {run.written}")


def _end_below(fail_under: float | None, share: float) -> None:
    """End with an exit code of its own if too few items have a high posterior."""
    if fail_under is not None and share < fail_under:
        echo(f"{share:.1%} of the items have a posterior of at least 0.9; {fail_under:.1%} are required.")
        raise typer.Exit(BELOW_THRESHOLD)
