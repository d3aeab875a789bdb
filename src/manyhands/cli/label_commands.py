"""Commands on labels: `inspect`, `aggregate`, `report`, `ask`, `agree`, `alt-test`, `convert`.

What a command needs is imported in its function, so that the command line starts at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyhands import registry
from manyhands.cli.options import (
    AsJson,
    ConfigRecord,
    Force,
    Gold,
    Kinds,
    Machines,
    Quiet,
    Seed,
    SpreadsheetSafe,
    UseGold,
    WorkerNames,
    complete_aggregators,
    input_option,
    method_option,
    output_option,
    scale_option,
    takes_export,
    trust_option,
)
from manyhands.cli.printing import (
    command_line,
    echo,
    echo_key,
    echo_stale,
    in_options,
    print_data,
    print_json,
    progress_bar,
    require_stdout,
    show_ledger,
    show_run,
    show_sharded,
    show_table,
)
from manyhands.exceptions import ParameterError, SeveralQuestionsError

if TYPE_CHECKING:
    from manyhands.io.reading import Reading
    from manyhands.jobs.aggregate import AggregationRun, ChoicesRun, QuestionRuns
    from manyhands.jobs.agree import AgreementRun
    from manyhands.jobs.ask import AskRun, Questionnaire
    from manyhands.jobs.options import ExportOptions
    from manyhands.jobs.report import ReportRun

# ----------------------------------------------------------------------------------------------------
# `manyhands aggregate`: from an export to one label per item.

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
    "the question and to_name is 'text'. "
)
_TASK_FIELDS = "The data of each task are the fields of its item."
_NO_TASK_FIELDS = (
    "The data of each task are the id of its item alone, as there are no other fields of items: name a table with "
    "their texts with --items."
)
_Method = Annotated[
    str | None,
    method_option(
        "-m",
        "--method",
        metavar="NAME",
        autocompletion=complete_aggregators,
        help=f"Aggregator, see: manyhands methods. The default is {registry.DEFAULT}; with --ordinal "
        f"{registry.DEFAULT_ORDINAL}.",
    ),
]
_Out = Annotated[Path | None, output_option("-o", "--out", metavar="FOLDER", help="Folder for the files.")]
_Write = Annotated[list[str] | None, output_option(metavar="FORMAT", help="Also write labels as: {label_files}.")]
_Compare = Annotated[
    bool,
    method_option(
        "--compare",
        help="Rank all aggregators by the cross-validated log-likelihood of held-out labels, and list the items on "
        "which they differ.",
    ),
]
_Answers = Annotated[
    list[Path] | None,
    trust_option(metavar="FILE", help="Questions of manyhands ask that an expert answered; may be repeated."),
]
_Guarantee = Annotated[
    str | None,
    trust_option(
        metavar="PROMISE",
        help='Such as "error<=5% at 95%": which labels stand, and which items must go to an expert. Needs --answers '
        "about random items.",
    ),
]
_Sets = Annotated[
    str | None, trust_option(metavar="SHARE", help="Label sets that contain the truth for this share, such as 90%.")
]
_FailUnder = Annotated[
    float | None,
    trust_option(metavar="SHARE", help="Exit with 4 if a smaller share of items has a posterior of at least 0.9."),
]
_Report = Annotated[bool, output_option("--report", help="Also write report.html: one page that shows the result.")]
_DownWeight = Annotated[
    bool,
    method_option(
        "--down-weight", help="Count machines of one family as the independent votes that they are worth, copies once."
    ),
]
_MaxMemory = Annotated[
    str | None,
    scale_option(
        metavar="SIZE",
        help="Limit for the whole job, such as 4GB. A larger job runs out of core: its labels stay on disk. By "
        "default, the limit is the memory that is free now.",
    ),
]
_AllQuestions = Annotated[
    bool, input_option("--all-questions", help="Aggregate every question of the export into a folder of its own.")
]

_ByChoice = Annotated[
    bool,
    input_option(
        "--by-choice",
        help="Aggregate each choice of a question with several choices as a question with yes and no; one table has "
        "them all.",
    ),
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
    worker_names: WorkerNames = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    fail_under: _FailUnder = None,
    all_questions: _AllQuestions = False,
    by_choice: _ByChoice = False,
    down_weight: _DownWeight = False,
    machines: Machines = None,
    kinds: Kinds = None,
    max_memory: _MaxMemory = None,
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
      manyhands aggregate export.json -o out/ --write label-studio --worker-names pseudonyms
      manyhands aggregate export.json --question sentiment -o out/ --write training
      manyhands aggregate export.json --all-questions -o out/
      manyhands aggregate export.json --question topics --by-choice -o out/ --write label-studio
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
    from manyhands.jobs import aggregate as job
    from manyhands.jobs.options import KindOptions
    from manyhands.jobs.out_of_core import ShardedRun

    options: dict[str, Any] = {
        "method": method,
        "gold": gold,
        "use_gold": use_gold,
        "answers": answers or (),
        "guarantee": guarantee,
        "sets": sets,
        "compare": compare,
        "report": report,
        "worker_names": worker_names,
        "command": command_line(),
        "spreadsheet_safe": spreadsheet_safe,
        "random_state": seed,
        "write": write or (),
        "config": None if config is None else config.as_dict(),
        "families": KindOptions(machines or (), kinds) if down_weight else None,
        "say": None if quiet or as_json else lambda sentence: echo(in_options(sentence)),
    }
    if all_questions:
        _check_all_questions(fail_under, answers, by_choice)
        with progress_bar(quiet or as_json):
            runs = job.aggregate_questions(files, export, out=out, force=force, max_memory=max_memory, options=options)
        _show_all(runs, out, as_json, quiet)
        return
    if out is None:
        require_stdout()
    if by_choice:
        with progress_bar(quiet or as_json):
            choices = job.aggregate_choices(files, export, out=out, force=force, max_memory=max_memory, **options)
        _show_choices(choices, out, as_json, quiet)
        _end_below(fail_under, choices.confident_share)
        return
    with progress_bar(quiet or as_json):
        run = job.aggregate(files, export, out=out, force=force, max_memory=max_memory, **options)
    echo_stale(run.written)
    if isinstance(run, ShardedRun):
        show_sharded(run, as_json=as_json, quiet=quiet)
    else:
        _print_run(run, out, as_json=as_json, quiet=quiet, is_limited=max_memory is not None)
        if "label-studio-tasks" in (write or ()) and run.reading.format != "label-studio":
            known = run.reading.item_fields
            echo(f"note: {_NEW_TASKS}{_TASK_FIELDS if known is not None and known.fields else _NO_TASK_FIELDS}")
    _end_below(fail_under, run.confident_share)


def _check_all_questions(fail_under: float | None, answers: list[Path] | None, by_choice: bool) -> None:
    """Refuse options that are about one question."""
    if by_choice:
        raise ParameterError("--all-questions takes questions with several choices by choice: leave out --by-choice.")
    if fail_under is not None:
        raise ParameterError("--fail-under is about one question: name it with --question.")
    if answers:
        raise ParameterError("--answers are about one question: name it with --question.")


def _print_run(run: AggregationRun, out: Path | None, *, as_json: bool, quiet: bool, is_limited: bool) -> None:
    """Print the result of a run in memory: data to standard output, the summary to standard error."""
    if as_json:
        print_json(run.summary)
    elif out is None:
        print_data(run.files["labels.csv"])
    if not quiet and not as_json:
        if is_limited and run.route is not None:
            echo(in_options(run.route.reason))
        _show_aggregation(run, out)


def _show_all(runs: QuestionRuns, out: Path | None, as_json: bool, quiet: bool) -> None:
    """Print the overview of all questions."""
    import polars as pl

    if as_json:
        print_json({"schema": 1, "questions": runs.table.to_dicts()})
    elif not quiet:
        shown = [name for name in runs.table.columns if name != "reason"]
        show_table(runs.table.filter(pl.col("folder").is_not_null()).select(shown), "All questions")
        echo(f"Written to {out}: a folder for each question, and {runs.written}")
        echo_key(runs.written)


def _show_choices(run: ChoicesRun, out: Path | None, as_json: bool, quiet: bool) -> None:
    """Print the result of a question with several choices: data to standard output, the rest to standard error."""
    import polars as pl

    echo_stale(run.written)
    if as_json:
        print_json(run.summary)
    elif out is None:
        print_data(run.files["labels.csv"])
    if quiet or as_json:
        return
    show_ledger(run.reading)
    n_items = run.summary["n_items"]
    show_table(pl.DataFrame(run.summary["choices"]), f"Choices of {run.summary['question']}, {n_items} items")
    echo(f"{run.confident_share:.1%} of the items have a set of choices that is at least 0.9 sure.")
    if run.summary["n_below_half"]:
        echo(
            f"On {run.summary['n_below_half']} items no choice is more probable than not: the most probable one is "
            f"taken (alert below-half)."
        )
    if out is not None:
        echo(f"Written to {out}: a folder for each choice, and {run.written}")
        echo_key(run.written)


def _on_screen(column: str) -> str:
    """Return the name of a column as text."""
    return column.replace("heldout_log_likelihood", "held-out log likelihood").replace("_", " ")


def _show_aggregation(run: AggregationRun, out: Path | None) -> None:
    """Print the summary of a run to standard error."""
    import polars as pl

    from manyhands.io.messages import counted, listed

    show_run(run.reading, run.summary, run.tables["workers.csv"])
    for sentence in run.summary["trust"]["sentences"]:
        echo(sentence)
    if (refit := run.summary["without_flagged"]) is not None:
        n = refit["n_changed"]
        where = " (without_flagged.csv)" if n and out is not None else ""
        echo(
            f"Without the {counted(refit['n_workers'], 'flagged worker')}, {n} of {counted(refit['n_items'], 'item')} "
            f"would have another label, {refit['share_changed']:.1%}{where}; --exclude-workers flagged leaves them out."
        )
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
        echo_key(run.written)


def _end_below(fail_under: float | None, share: float) -> None:
    """End with an exit code of its own if too few items have a high posterior."""
    if fail_under is not None and share < fail_under:
        echo(f"{share:.1%} of the items have a posterior of at least 0.9; {fail_under:.1%} are required.")
        raise typer.Exit(BELOW_THRESHOLD)


# ----------------------------------------------------------------------------------------------------
# `manyhands agree`: inter-annotator agreement, overall and by class, pair and item.

_AgreeLevel = Annotated[str, method_option(metavar="LEVEL", help="Level of measurement of the classes: {levels}.")]
_AgreeOut = Annotated[Path | None, output_option("-o", "--out", metavar="FOLDER", help="Folder for the tables.")]
_Bootstrap = Annotated[
    int, method_option(min=0, metavar="NUMBER", help="Number of bootstrap resamples of the items for the intervals.")
]
_Effective = Annotated[
    bool,
    method_option(
        "--effective",
        help="Also compute how many independent votes the votes of people and of machines are worth, if they err "
        "together.",
    ),
]


@takes_export
def agree(
    files: list[str],
    export: ExportOptions,
    level: _AgreeLevel = "nominal",
    out: _AgreeOut = None,
    effective: _Effective = False,
    machines: Machines = None,
    kinds: Kinds = None,
    gold: Gold = None,
    bootstrap: _Bootstrap = 1000,
    worker_names: WorkerNames = None,
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
    from manyhands.io.write.results import to_csv
    from manyhands.jobs.agree import agree
    from manyhands.jobs.options import IDS, KindOptions

    run = agree(
        files,
        export,
        level=level,
        n_bootstrap=bootstrap,
        worker_names=worker_names or IDS,
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
        _show_agreement(run, out)


def _show_agreement(run: AgreementRun, out: Path | None) -> None:
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
        echo_key(run.written)


def _sentence(row: dict[str, Any]) -> str:
    """Return what the votes of one group are worth."""
    if row["correlation"] is None:
        return f"{row['group']}: no two workers can be compared with a third, so the worth of their votes is unknown."
    copying = f"; {row['n_copying']} workers copy one another and count as one vote" if row["n_copying"] else ""
    interval = "" if row["low"] is None else f" (95% interval {row['low']:.2f} to {row['high']:.2f})"
    return (
        f"{row['group']}: {row['votes']:.3g} votes per item are worth {row['effective_votes']:.2g} independent ones"
        f"{interval}; errors against: {row['reference']}{copying}"
    )


# ----------------------------------------------------------------------------------------------------
# `manyhands alt-test`: whether a model may replace the annotators.

_Epsilon = Annotated[
    float,
    trust_option(
        metavar="SHARE",
        help="By how much the model may be worse because it costs less: 0.2 where annotators are experts, 0.15 where "
        "they are trained, 0.1 for a crowd.",
    ),
]
_AltTestLevel = Annotated[
    str, trust_option(metavar="LEVEL", help="How answers are compared: nominal (equal or not), ordinal, interval.")
]
_Alpha = Annotated[float, trust_option(metavar="SHARE", help="False discovery rate of the tests.")]
_MinItems = Annotated[
    int, trust_option(metavar="NUMBER", help="Items that an annotator must share with the model and another annotator.")
]
_AltTestOut = Annotated[Path | None, output_option("-o", "--out", metavar="FOLDER", help="Folder for the tables.")]


@takes_export
def alt_test(
    files: list[str],
    export: ExportOptions,
    machines: Machines = None,
    kinds: Kinds = None,
    epsilon: _Epsilon = 0.1,
    level: _AltTestLevel = "nominal",
    alpha: _Alpha = 0.05,
    min_items: _MinItems = 30,
    out: _AltTestOut = None,
    worker_names: WorkerNames = None,
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
    from manyhands.io.messages import counted
    from manyhands.io.write.results import to_csv
    from manyhands.jobs.agree import alt_test
    from manyhands.jobs.options import IDS, KindOptions

    run = alt_test(
        files,
        export,
        KindOptions(machines or (), kinds),
        epsilon=epsilon,
        level=level,
        alpha=alpha,
        min_items=min_items,
        worker_names=worker_names or IDS,
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
        echo_key(run.written)


# ----------------------------------------------------------------------------------------------------
# The questionnaire in the terminal: one item a screen, undo, skip, and an end at any time.

_CLEAR = "\x1b[2J\x1b[H"
_COMMANDS = {"u": "undo", "s": "skip", "?": "cannot be answered", "q": "quit"}
_MAX_CELL = 2000  # characters of a field; a longer one would leave the screen


def fill_in(questionnaire: Questionnaire, show_votes: bool = False) -> None:
    """Ask every open question; each answer is saved before the next question is asked.

    A class is answered by its number or its name. A command that is also the name of a class is typed with a colon.
    A message about the last reply stands below the question, since every question clears the screen.
    """
    from manyhands.io.questions import NO_ANSWER

    history: list[int] = []
    waiting = questionnaire.open_rows
    message = ""
    while waiting:
        row = waiting[0]
        _show_question(questionnaire, row, len(waiting), show_votes)
        if message:
            echo(message)
        message = ""
        reply = _read_line()
        command = _command(reply, questionnaire.classes)
        if reply is None or command == "q":
            return
        if command == "u":
            if not history:
                message = "There is nothing to undo."
                continue
            row = history.pop()
            questionnaire.set(row, "")
            waiting = [row, *(other for other in waiting if other != row)]
        elif command == "s":
            waiting = [*waiting[1:], row] if len(waiting) > 1 else []
        elif (answer := NO_ANSWER if command == "?" else _class_of(reply, questionnaire.classes)) is not None:
            questionnaire.set(row, answer)
            history.append(row)
            waiting = waiting[1:]
        else:
            what = (
                "a number, nor a class, nor a command" if _numbered(questionnaire.classes) else "a class nor a command"
            )
            message = f"{reply!r} is neither {what}." if reply else "Type an answer, or s to skip."


def _show_question(questionnaire: Questionnaire, row: int, n_open: int, show_votes: bool) -> None:
    """Show one question; on a terminal it gets an empty screen."""
    from manyhands.io.questions import ANSWER, CHOICES, DRAWN, VOTES

    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(_CLEAR)
    table = questionnaire.table
    echo(f"--- {len(table) - n_open} of {len(table)} answered ---")
    hidden = {ANSWER, CHOICES, *DRAWN, *(() if show_votes else (VOTES,))}
    methods = table.columns[table.columns.index(ANSWER) + 1 :] if show_votes else []
    for name in table.columns[: table.columns.index(ANSWER)]:
        value = table[name][row]
        if value is not None and name not in hidden:
            echo(f"{name}: {value[:_MAX_CELL]}")
    said: dict[str, list[str]] = {}
    for name in methods:
        if name not in hidden and table[name][row] is not None:
            said.setdefault(table[name][row], []).append(name)
    for label, names in said.items():
        echo(f"  {label}: {', '.join(names)}")
    echo("")
    for number, label in enumerate(questionnaire.classes, start=1):
        echo(f"  {number}  {label}" if _numbered(questionnaire.classes) else f"  {label}")
    clash = set(questionnaire.classes) & _COMMANDS.keys()
    keys = [f"{':' if key in clash else ''}{key} {what}" for key, what in _COMMANDS.items()]
    echo(f"  {', '.join(keys)}")


def _read_line() -> str | None:
    """Read one line from standard input; None at its end."""
    if sys.stderr is not None:
        sys.stderr.write("> ")
        sys.stderr.flush()
    line = sys.stdin.readline() if sys.stdin is not None else ""
    return line.strip() if line else None


def _command(reply: str | None, classes: tuple[str, ...]) -> str | None:
    """Return the command that was typed, if any."""
    if reply is None or reply in classes:
        return None
    key = reply.removeprefix(":").lower()
    return key if key in _COMMANDS else None


def _class_of(reply: str | None, classes: tuple[str, ...]) -> str | None:
    """Return the class that was typed as its name or number; a name takes precedence."""
    if not reply:
        return None
    if reply in classes:
        return reply
    alike = [label for label in classes if label.casefold() == reply.casefold()]
    if len(alike) == 1:
        return alike[0]
    is_number = _numbered(classes) and reply.isascii() and reply.isdigit() and len(reply) < 9
    return classes[int(reply) - 1] if is_number and 1 <= int(reply) <= len(classes) else None


def _numbered(classes: tuple[str, ...]) -> bool:
    """Whether classes may be typed as numbers: not if some class is itself a number."""
    return not any(label.isdigit() for label in classes)


# ----------------------------------------------------------------------------------------------------
# `manyhands ask`: questions to an expert, as a file or in the terminal.

_Number = Annotated[
    int | None, trust_option("-n", "--number", metavar="NUMBER", help="Number of questions; by default 20, or 50.")
]
_Purpose = Annotated[
    str,
    trust_option(
        metavar="NAME",
        help="What the answers are to decide: method (20 items on which the methods disagree) or confidence (50 "
        "items at random, for calibration, accuracy and guarantees).",
    ),
]
_AskOut = Annotated[Path | None, output_option("-o", "--out", metavar="FILE", help="File to write, a CSV.")]
_Interactive = Annotated[
    bool, output_option("--interactive", help="Ask here, one item at a time; answers are saved in the file of -o.")
]
_ShowVotes = Annotated[
    bool,
    trust_option(
        "--show-votes",
        help="Show the votes and each method's label, to adjudicate contested items. Answers are then not independent.",
    ),
]


@takes_export
def ask(
    files: list[str],
    export: ExportOptions,
    number: _Number = None,
    out: _AskOut = None,
    purpose: _Purpose = "method",
    interactive: _Interactive = False,
    show_votes: _ShowVotes = False,
    spreadsheet_safe: SpreadsheetSafe = False,
    seed: Seed = 0,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    r"""Draw the items whose answers help most, and write them as a table that a person can fill in.

    Fill in the column "answer" and pass the file to aggregate --answers. With --interactive the questions are asked
    in the terminal; the same command resumes where it was left. The expert sees the item, its fields and the classes,
    neither votes nor labels, which an answer would follow.

    \b
    Examples:
      manyhands ask export.json -n 20 -o questions.csv
      manyhands ask export.json --purpose confidence -n 100 -o random.csv
      manyhands ask export.json -o questions.csv --interactive
      manyhands aggregate export.json --answers questions.csv -o out/
    """
    from manyhands.jobs.ask import ask

    if interactive:
        _ask_here(files, export, number, out, purpose, show_votes, spreadsheet_safe, seed, force, as_json or quiet)
        return
    if out is None:
        require_stdout()
    with progress_bar(quiet or as_json):
        run = ask(
            files,
            export,
            n=number,
            purpose=purpose,
            random_state=seed,
            show_votes=show_votes,
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
        _show_drawn(run, out)


def _show_drawn(run: AskRun, out: Path | None) -> None:
    """Print how many items could be drawn and what to do next."""
    from manyhands.io.messages import counted

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
    show_votes: bool,
    spreadsheet_safe: bool,
    seed: int,
    force: bool,
    quiet: bool,
) -> None:
    """Ask in the terminal; resume a file that exists."""
    from manyhands.io.messages import counted
    from manyhands.io.questions import VOTES
    from manyhands.jobs.ask import Questionnaire, ask

    if out is None:
        raise ParameterError("--interactive saves every answer: name the file with -o FILE.")
    if "-" in files:
        raise ParameterError("--interactive reads the answers from standard input: give the export as a file.")
    if out.exists() and not force:
        reading = export.read(files)
    else:
        with progress_bar(quiet):
            run = ask(
                files,
                export,
                n=number,
                purpose=purpose,
                random_state=seed,
                show_votes=show_votes,
                spreadsheet_safe=spreadsheet_safe,
                out=out,
                force=force,
            )
        reading = run.reading
    questionnaire = Questionnaire.open(out, reading)
    if show_votes and VOTES not in questionnaire.table.columns:
        raise ParameterError(
            f"{out} was drawn without votes. Draw it again with --show-votes --force, or answer blind."
        )
    fill_in(questionnaire, show_votes)
    done, left = len(questionnaire.table) - len(questionnaire.open_rows), len(questionnaire.open_rows)
    echo(f"{counted(done, 'answer')} saved in {out}, {left} open.")
    if left:
        echo("The same command resumes.")
    else:
        echo(f"  manyhands aggregate {' '.join(files)} --answers {out}")


# ----------------------------------------------------------------------------------------------------
# `manyhands convert`: an export of any tool as a table.

_ConvertOut = Annotated[
    Path | None, output_option("-o", "--out", metavar="FILE", help="File to write: {table_endings}.")
]
_Wide = Annotated[bool, output_option("--wide", help="One row per item, one column per worker.")]


@takes_export
def convert(
    files: list[str],
    export: ExportOptions,
    out: _ConvertOut = None,
    wide: _Wide = False,
    worker_names: WorkerNames = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    r"""Convert any export to a table of item, worker and label, which every tool can read.

    Judgements that do not count (drafts, skips, repeats, ...) are left out; an item without any label is a row
    without worker and label. Without -o the table goes to stdout as CSV.

    \b
    Examples:
      manyhands convert export.json --question sentiment -o ratings.csv
      manyhands convert doccano.zip --wide -o matrix.csv
    """
    if out is None:
        require_stdout()
    from manyhands.jobs.convert import convert
    from manyhands.jobs.options import IDS

    run = convert(
        files,
        export,
        wide=wide,
        worker_names=worker_names or IDS,
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
        if out is not None:
            echo(f"Written: {out}, {len(run.table)} rows")
            echo_key(run.written)


# ----------------------------------------------------------------------------------------------------
# `manyhands inspect`: what an export contains, before anything is fitted.


@takes_export
def inspect(files: list[str], export: ExportOptions, as_json: AsJson = False, quiet: Quiet = False) -> None:
    r"""Show what an export contains: format, columns, rows left out and why, coverage and agreement.

    If it holds answers to several questions and none is chosen, all of them are described in a table.

    \b
    Examples:
      manyhands inspect export.json
      manyhands inspect export.json --question sentiment --json
      manyhands inspect report.html
      manyhands inspect batch1.csv batch2.csv --item Input.url
    """
    from manyhands.jobs.convert import describe_questions, inspect
    from manyhands.jobs.report import is_page
    from manyhands.report.html import read_page

    if len(files) == 1 and is_page(files[0]):
        _show_page(read_page(files[0]), as_json, quiet)
        return
    try:
        reading, figures = inspect(files, export)
    except SeveralQuestionsError as several:
        if export.question is not None or "-" in files:  # standard input cannot be read again
            raise
        _show_questions(files, describe_questions(files, export, several.questions), as_json, quiet)
        return
    if as_json:
        print_json(figures)
    elif not quiet:
        _show_reading(reading, figures)


def _show_page(data: dict[str, Any], as_json: bool, quiet: bool) -> None:
    """Print the data of a report: all of it as JSON, or its findings."""
    import polars as pl

    if as_json:
        print_json(data)
        return
    if quiet:
        return
    echo(f"{data['title']}: {data['verdict']}")
    if data.get("created"):
        echo(f"Made on {data['created']}; schema {data['schema']}")
    findings = [{"panel": key, "finding": panel["title"]} for key, panel in data["panels"].items()]
    show_table(pl.DataFrame(findings), "Findings")
    if data.get("workers"):
        workers = {
            name: column
            for name, column in data["workers"].items()
            if name in ("worker", "n_labels", "accuracy", "alerts")
        }
        show_table(pl.DataFrame(workers).sort("n_labels", descending=True).head(10), "Workers with the most labels")
    echo("--json prints all data of the page, labels included.")


def _show_questions(files: list[str], questions: list[dict[str, Any]], as_json: bool, quiet: bool) -> None:
    """Print one row per question, and what to type next."""
    import polars as pl

    from manyhands.io.messages import counted

    if as_json:
        print_json({"schema": 1, "files": files, "questions": questions})
    if as_json or quiet:
        return
    readable = [row for row in questions if "reason" not in row]
    if readable:
        shown = [{name: value for name, value in row.items() if name != "note"} for row in readable]
        show_table(pl.DataFrame(shown), f"{counted(len(questions), 'question')} in {', '.join(files)}")
    for row in questions:
        if "reason" in row:
            echo(f"{row['question']}: {in_options(row['reason'])}")
        elif "note" in row:
            echo(f"{row['question']}: {in_options(row['note'])}")
    echo("--question NAME reads one of them; aggregate --all-questions -o FOLDER writes a folder for each.")


def _show_reading(reading: Reading, figures: dict[str, Any]) -> None:
    """Print the description of an export to standard error."""
    import polars as pl

    from manyhands.io.messages import counted

    show_ledger(reading)
    if reading.refusal is not None:
        echo(in_options(reading.refusal))
        return
    if len(reading.questions) > 1:
        others = ", ".join(f"{name} ({count})" for name, count in reading.questions.items())
        echo(f"Question: {reading.question}; all questions with their numbers of answers: {others}")
    echo(
        f"{counted(figures['n_items'], 'item')}, {counted(figures['n_workers'], 'worker')}, "
        f"{counted(figures['n_classes'], 'class')}; {figures['labels_per_item']['mean']:g} labels per item, "
        f"{counted(figures['n_unlabelled'], 'item')} without a label, {figures['n_labelled_once']} with one"
    )
    if not figures["n_annotations"]:
        echo("No label counts, so there is nothing to aggregate yet.")
        return
    density, imbalance = figures["density"], figures["imbalance"]
    echo(f"{density:.2%} of all item-worker pairs are labelled; imbalance ratio R = {imbalance:.3f}")
    if figures["n_components"] > 1:
        echo(f"The crowd consists of {figures['n_components']} groups that have no item in common.")
    if "kinds" in figures:
        told = ", ".join(f"{count} {kind}" for kind, count in figures["kinds"].items())
        echo(f"Workers by kind: {told}; alt-test and agree --effective compare people and machines.")
    if reading.gold:
        n_gold = counted(len(reading.gold), "item")
        echo(f"The export contains the known answer of {n_gold}; aggregate --use-gold uses it.")
    labels = figures["labels"]
    counts = {"class": list(labels), "labels": list(labels.values())}
    show_table(pl.DataFrame(counts).sort("labels", "class", descending=[True, False]).head(20), "Labels by class")
    show_table(pl.DataFrame(figures["agreement"]), "Agreement, with 95% intervals over items")
    show_table(pl.DataFrame(figures["examples"]), "The first judgements that count")


# ----------------------------------------------------------------------------------------------------
# `manyhands report`: one HTML page that shows the labels, the workers and what to do next.

_ReportOut = Annotated[Path, output_option("-o", "--out", metavar="FILE", help="The page to write.")]
_ReportMethod = Annotated[
    str | None,
    method_option(
        "-m",
        "--method",
        metavar="NAME",
        autocompletion=complete_aggregators,
        help="Aggregator, see: manyhands methods.",
    ),
]
_Truth = Annotated[
    Path | None,
    trust_option(metavar="FILE", help="Table of items whose class is known: item, label. It only evaluates."),
]
_ReportCompare = Annotated[bool, method_option("--compare", help="Fit and rank all other aggregators too.")]
_ReportWorkerNames = Annotated[
    str | None,
    output_option(
        metavar="NAMES",
        help="How the page names workers: pseudonyms (default; from manyhands.key, created beside the page), "
        "ids, or another key file.",
    ),
]
_Groups = Annotated[
    Path | None, input_option(metavar="FILE", help="Table of workers and the group of each: worker, and one column.")
]
_GroupColumn = Annotated[
    str | None,
    input_option(metavar="NAME", help="Column of the export that describes workers, such as their country or team."),
]
_Title = Annotated[str | None, output_option(metavar="TEXT", help="Name of the data.")]


@takes_export
def report(
    files: list[str],
    export: ExportOptions,
    out: _ReportOut = Path("report.html"),
    method: _ReportMethod = None,
    gold: Gold = None,
    use_gold: UseGold = False,
    answers: _Answers = None,
    truth: _Truth = None,
    compare: _ReportCompare = False,
    worker_names: _ReportWorkerNames = None,
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
    from manyhands.jobs.options import PSEUDONYMS
    from manyhands.jobs.report import is_page, report

    if all(is_page(name) for name in files):
        _compare_pages(files, out, force, as_json, quiet)
        return
    with progress_bar(quiet or as_json):
        result = report(
            files,
            export,
            out=out,
            method=method,
            gold=gold,
            use_gold=use_gold,
            answers=answers or (),
            truth=truth,
            compare=compare,
            worker_names=worker_names or PSEUDONYMS,
            groups=groups,
            group_column=group_column,
            title=title,
            command=command_line(),
            random_state=seed,
            force=force,
        )
    if as_json:
        panels = [panel.key for panel in result.report.panels]
        print_json(
            {
                "schema": 1,
                "written": list(result.written.names),
                "verdict": result.report.summary.title,
                "panels": panels,
            }
        )
    elif not quiet:
        _show_report(result, out)


def _compare_pages(pages: list[str], out: Path, force: bool, as_json: bool, quiet: bool) -> None:
    """Write and print what changed between two reports."""
    from manyhands.jobs.report import report_change

    changes, data, written = report_change(pages, out=out, force=force)
    if as_json:
        print_json(data | {"written": list(written.names)})
    elif not quiet:
        echo(changes.summary.title)
        for panel in changes.panels:
            for note in panel.notes:
                echo(f"note: {note}")
        echo(f"Written: {out}")


def _show_report(result: ReportRun, out: Path) -> None:
    """Print the verdict, the notices and what was written."""
    if result.run.reading is not None:
        show_ledger(result.run.reading)
    echo(result.report.summary.title)
    for notice in result.report.summary.notices:
        echo(f"{notice.severity}: {notice.text}")
    beside = [name for name in result.written.names if name != out.name]
    echo(f"Written: {out}, {len(result.page) / 1000:,.0f} kB" + (f"; beside it {', '.join(beside)}" if beside else ""))
    echo_key(result.written)
