"""What commands print: sentences and tables for people on standard error, data for programs on standard output.

Nothing large is imported with this module: `doctor` prints where polars, numpy or typer cannot be loaded.
"""

from __future__ import annotations

import ast
import errno
import json
import os
import re
import shlex
import signal
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal

from manyhands._core.progress import showing

if TYPE_CHECKING:
    import polars as pl

    from manyhands.io.reading import Reading
    from manyhands.jobs.doctor import Diagnosis
    from manyhands.jobs.options import Written
    from manyhands.jobs.out_of_core import ShardedRun


# ----------------------------------------------------------------------------------------------------
# Sentences and tables for people, on standard error.

_MOST_WORKERS = 10


def echo(sentence: str) -> None:
    """Print one line to standard error, control characters as escapes."""
    if sys.stderr is not None:  # None if the shell closed it; print would use standard output instead
        with suppress(OSError):  # a closed pipe: there is no reader
            print(printable(sentence), file=sys.stderr, flush=True)


def printable(text: str) -> str:
    r"""Return text whose control characters are escaped, so that it cannot move the cursor or change colours.

    Examples
    --------
    >>> printable("a\x1b[31m")
    'a\\x1b[31m'
    """
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


def show_ledger(reading: Reading) -> None:
    """Print format, columns and the count of rows that were kept and left out."""
    columns = ", ".join(f"{role} = {name}" for role, name in reading.columns.items())
    echo(f"{reading.source}: {reading.format}" + (f" ({columns})" if columns else ""))
    echo(reading.ledger.of_format(reading.format))


def show_run(reading: Reading, summary: dict[str, Any], workers: pl.DataFrame) -> None:
    """Print what was read, the main figures of the result, and the workers with the most labels."""
    show_ledger(reading)
    show_figures(summary, workers)


def show_figures(summary: dict[str, Any], workers: pl.DataFrame) -> None:
    """Print the main figures of a result, and the workers with the most labels."""
    from manyhands.io.messages import counted

    echo(
        f"{counted(summary['n_items'], 'item')}, {counted(summary['n_workers'], 'worker')}, "
        f"{summary['labels_per_item']:g} labels per item, {counted(summary['n_classes'], 'class')}"
    )
    echo(
        f"{summary['method']}: {_sure(summary)}; {counted(summary['n_tied'], 'tie')}, "
        f"{counted(summary['n_unlabelled'], 'item')} without a label"
    )
    if "order" in summary:
        _show_order(summary)
    if summary.get("gold_contradicted"):
        items = counted(len(summary["gold_contradicted"]), "item")
        echo(f"The votes contradict the gold of {items}, such as {summary['gold_contradicted'][0]!r}: check them.")
    if summary["n_components"] > 1:
        groups = summary["n_components"]
        echo(f"The crowd consists of {groups} groups that have no item in common; compare workers within a group only.")
    busiest = workers.sort("n_labels", "worker", descending=[True, False]).head(_MOST_WORKERS)
    title = counted(len(workers), "worker")
    if len(workers) > _MOST_WORKERS:
        title = f"The {len(busiest)} of {title} with the most labels"
    show_table(_main_columns(busiest), title)
    if "alerts" in workers.columns:
        show_alerts(workers)


def _sure(summary: dict[str, Any]) -> str:
    """Return the share of labels with a high posterior; labels whose class was given are left out, and it says so."""
    from manyhands.io.messages import counted

    given, share = summary.get("n_gold_used", 0), summary["share_above_0.9"]
    if share is None:
        return f"the class of {'every item' if given else 'no item'} is known"
    others = f" other than the {counted(given, 'given class')}" if given else ""
    return f"{share:.0%} of the labels{others} have a posterior of at least 0.9"


def _show_order(summary: dict[str, Any]) -> None:
    """Print the order of the classes, and the agreement of the crowd on it."""
    kappas = [(name, summary[f"{name}_kappa"]) for name in ("linear", "quadratic")]
    kappas_text = ", ".join(f"{value:.2f} with {name} weights" for name, value in kappas if value is not None)
    echo("Order of the classes: " + " < ".join(summary["order"]) + (f"; kappa {kappas_text}" if kappas_text else ""))


def _main_columns(workers: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of workers.csv that fit on a screen."""
    import polars as pl

    if "accuracy_low" not in workers.columns:
        return workers.select("worker", "n_labels", "accuracy")
    interval = pl.format("{} to {}", _with_two_decimals("accuracy_low"), _with_two_decimals("accuracy_high"))
    if "alerts" not in workers.columns:
        return workers.select("worker", "n_labels", "accuracy", interval.alias("95% interval"))
    agreement = ["quadratic_kappa", "grade_bias"] if "grade_bias" in workers.columns else ["agreement"]
    if "flip_rate" in workers.columns:
        agreement = ["flip_rate", "first_share"]
    if "coverage" in workers.columns:  # each worker uses one class
        agreement = ["coverage", "overlap", "conflict"]
    seconds = ["median_seconds"] if "median_seconds" in workers.columns else []
    columns = ["worker", "n_labels", "accuracy", interval.alias("95% interval"), *agreement, *seconds, "alerts"]
    return workers.select(columns)


def show_alerts(workers: pl.DataFrame) -> None:
    """Print the count of every alert, and the reasons for the flagged workers."""
    import polars as pl

    from manyhands.io.messages import counted
    from manyhands.scorecards import ACCUSATIONS

    alerts = workers["alerts"].drop_nulls().str.split(";").explode().value_counts(sort=True)
    if len(alerts):
        counts = ", ".join(f"{count} {alert}" for alert, count in alerts.iter_rows())
        echo(f"Alerts: {counts} (docs/scorecards.md defines them)")
    flagged = workers.filter(pl.col("alerts").is_not_null() & (pl.col("alerts") != "too-few-labels"))
    if len(flagged):
        accused = pl.col("alerts").str.split(";").list.set_intersection(list(ACCUSATIONS)).list.len() > 0
        shown = flagged.sort(accused, "accuracy_high", "worker", descending=[True, False, False]).head(_MOST_WORKERS)
        title = f"{counted(len(flagged), 'worker')} to check"
        title += f", the {len(shown)} to look at first" if len(flagged) > len(shown) else ""
        show_table(shown.select("worker", "n_labels", "alerts", "reasons"), title)


def show_table(table: pl.DataFrame, title: str) -> None:
    """Print a data frame as a table, control characters in its cells as escapes."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(title=Text(printable(title)), title_justify="left")
    for name, dtype in table.schema.items():
        justify: Literal["left", "right"] = "right" if dtype.is_numeric() else "left"
        whole = name == "method"  # names of the registry are short; ids of a file may have any length
        grid.add_column(Text(printable(name)), justify=justify, overflow="fold", no_wrap=whole)
    for row in table.iter_rows():
        grid.add_row(*(Text(_format_cell(cell)) for cell in row))
    Console(stderr=True).print(grid)


def _format_cell(cell: Any) -> str:
    """Return a cell as text; numbers with three decimals."""
    if cell is None:
        return ""
    return f"{cell:.3f}" if isinstance(cell, float) else printable(str(cell))


def progress_bar(off: bool) -> Any:
    """Return a context in which progress reports are shown as bars with the remaining time."""
    return showing(0 if off else 1)


def _with_two_decimals(column: str) -> pl.Expr:
    """Return the numbers of a column as text, 0.9 as "0.90"; null where there is none."""
    import polars as pl

    return pl.col(column).map_elements("{:.2f}".format, return_dtype=pl.String)


# ----------------------------------------------------------------------------------------------------
# Sentences of the library name parameters of Python, as `name=` or `name=value`; the command line names its options.

OPTIONS = {  # parameter -> option, with a word for its value where a sentence asks for one
    "abstain": "--abstain",
    "aggregator": "--set aggregator=",
    "all_questions": "--all-questions",
    "answers": "--answers",
    "by_choice": "--by-choice",
    "cache": "MANYHANDS_CACHE",
    "columns": "--column",
    "combinations": "--combinations",
    "compare": "--compare",
    "device": "--device",
    "duplicates": "--duplicates",
    "effective": "--effective",
    "encoding": "--encoding",
    "exclude_items": "--exclude-items",
    "exclude_workers": "--exclude-workers",
    "families": "--down-weight",
    "feature_ids": "--feature-ids",
    "force": "--force",
    "format": "--format",
    "gold": "--gold",
    "group_column": "--group-column",
    "groups": "--groups",
    "guarantee": "--guarantee",
    "id_column": "--id-column",
    "item": "--item COLUMN",
    "items": "--items FILE",
    "jobs": "--jobs",
    "kinds": "--kinds",
    "label": "--label COLUMN",
    "label_map": "--map FILE",
    "label_probs": "--label-probs",
    "level": "--level",
    "machines": "--machines",
    "max_memory": "--max-memory",
    "merge_spellings": "--merge-spellings",
    "method": "-m",
    "methods": "-m",
    "min_items": "--min-items",
    "missing": "--missing",
    "n": "-n",
    "n_bootstrap": "--bootstrap",
    "only_items": "--only-items",
    "only_workers": "--only-workers",
    "order": "--order",
    "ordinal": "--ordinal",
    "out": "-o",
    "purpose": "--purpose",
    "question": "--question NAME",
    "random_state": "--seed",
    "rare_classes": "--rare-classes",
    "report": "--report",
    "retry": "--retry",
    "rows_in_order": "--rows-in-order",
    "seeds": "--seeds",
    "seconds": "--seconds COLUMN",
    "sets": "--sets",
    "show_votes": "--show-votes",
    "text": "--text",
    "time": "--time COLUMN",
    "truth": "--truth",
    "use_gold": "--use-gold",
    "verdicts": "--verdicts",
    "weight": "--weight",
    "wide": "--wide",
    "worker": "--worker COLUMN",
    "worker_names": "--worker-names",
    "write": "--write",
}
_PARAMETER = re.compile(r"`(\w+)(?:=([^`]*))?`")


def in_options(sentence: str) -> str:
    """Return a sentence of the library with options in place of parameters.

    Examples
    --------
    >>> in_options("Name another with `item=`, or add `missing=['n/a', 'not sure']`; `random_state` is -1.")
    "Name another with --item COLUMN, or add --missing n/a --missing 'not sure'; --seed is -1."
    """
    return _PARAMETER.sub(_option, sentence)


def _option(match: re.Match[str]) -> str:
    """Return one parameter as an option, with its value if it has one."""
    if match[1] not in OPTIONS:
        return match[0]
    text, (option, _, word) = match[2], OPTIONS[match[1]].partition(" ")
    if text == "":
        return OPTIONS[match[1]]
    if text in (None, "True"):
        return option
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        value = None  # a placeholder such as FILE
    values = value if isinstance(value, list | tuple) else [value]
    words = [shlex.quote(one) for one in values] if all(isinstance(one, str) for one in values) else [text]
    return " ".join(f"{option} {word if word.endswith('=') else ''}{one}" for one in words)


# ----------------------------------------------------------------------------------------------------
# Data, on standard output: exact bytes for a program, no control characters on a terminal.

STANDARD_OUTPUT = "Standard output"


def command_line() -> str:
    """Return the command line as the user typed it, for records."""
    return shlex.join(["manyhands", *sys.argv[1:]])


def require_stdout() -> None:
    """Refuse to begin a job that prints data if standard output is closed."""
    if sys.stdout is None:  # Python's value for a stream that the shell closed
        raise OSError(errno.EBADF, "it is closed", STANDARD_OUTPUT)


def print_data(content: bytes | str) -> None:
    """Print data: exact bytes for a program, and on a terminal control characters as escapes.

    Characters that change the direction of text count as control characters.
    """
    require_stdout()
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape")
    if sys.stdout.isatty():
        data = _for_terminal(data)
    try:
        sys.stdout.flush()
        if hasattr(sys.stdout, "buffer"):
            _write_all(sys.stdout.buffer, data)  # the same bytes on every system
        else:
            sys.stdout.write(data.decode("utf-8", "backslashreplace"))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, STANDARD_OUTPUT) from None


def print_json(value: Any) -> None:
    """Print one JSON object in which control characters are escaped."""
    from manyhands.io.write.results import to_json  # loads polars, which `doctor` must do without

    print_data(to_json(value))


def echo_stale(written: Written) -> None:
    """Name files of an earlier run that this one left in its folder."""
    from manyhands.io.write.pseudonyms import KEY

    stale = [name for name in written.stale if name != KEY]  # the key is there to be used again
    if stale:
        names = f"{', '.join(stale)} in {written.folder}"
        echo(f"note: this run did not write {names}: left as an earlier run wrote it.")


def echo_key(written: Written) -> None:
    """Say what the key of the pseudonyms is for, where this run made one."""
    from manyhands.io.write.pseudonyms import KEY

    if KEY in written.names:
        echo(f"The pseudonyms of workers come from {KEY}: keep it, and do not pass it on with the results.")


def _write_all(stream: Any, data: bytes) -> None:
    """Write to a stream that may be unbuffered (PYTHONUNBUFFERED) and may take only a part at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[stream.write(rest) or 0 :]


def _for_terminal(data: bytes) -> bytes:
    """Return the data with control characters as escapes, in the encoding of the terminal."""
    text = data.decode("utf-8", "backslashreplace")
    shown = "".join(letter if letter in "\n\t" else printable(letter) for letter in text)
    return shown.replace("\n", os.linesep).encode(sys.stdout.encoding or "utf-8", "backslashreplace")


# ----------------------------------------------------------------------------------------------------
# What `manyhands aggregate` prints about a run on shards.


def show_sharded(run: ShardedRun, *, as_json: bool, quiet: bool) -> None:
    """Print a run on shards: one JSON object, or its figures for people."""
    from manyhands.io.row_filtering import Ledger

    if as_json:
        print_json(run.summary | {"reason": run.route.reason, "timings": run.timings})
        return
    if quiet:
        return
    columns = ", ".join(f"{role} = {name}" for role, name in run.summary["columns"].items())
    echo(f"{run.summary['source']}: {run.summary['format']}" + (f" ({columns})" if columns else ""))
    echo(str(Ledger(**run.summary["ledger"])))
    show_figures(run.summary, run.tables["workers.csv"])
    echo(_timings(run))
    echo(f"Written to {run.written.folder}: {run.written}")


def _timings(run: ShardedRun) -> str:
    """Return passes, seconds of each step and peak memory as one line."""
    from manyhands.io.messages import counted
    from manyhands.validation import show_size

    steps = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in run.timings["seconds"].items())
    peak = max(run.timings["peak_bytes"].values(), default=None)
    memory = "" if peak is None else f"; at most {show_size(peak)} of memory"
    counts = f"{counted(run.summary['n_shards'], 'shard')}, {counted(run.summary['n_iter'], 'pass')}"
    return f"{run.route.kind.capitalize()}, {counts}: {steps}{memory}"


# ----------------------------------------------------------------------------------------------------
# What `manyhands doctor` prints, also without the other commands.

_PROBLEM = 3  # exit code
_WIDTH = 100


def show_diagnosis(as_json: bool = False) -> int:
    """Print the diagnosis of this environment; return the exit code, 3 if there is a problem."""
    from manyhands.jobs.doctor import doctor

    diagnosis = doctor()
    print_data(json.dumps(diagnosis.to_dict(), indent=2) + "\n" if as_json else _as_text(diagnosis))
    if not as_json:
        echo(_conclusion(diagnosis))
    return _PROBLEM if diagnosis.status == "problem" else 0


def run_doctor(arguments: list[str]) -> int:
    """Run `manyhands doctor` without the other commands, which cannot be loaded."""
    unknown = [argument for argument in arguments[1:] if argument != "--json"]
    if unknown:
        echo(f"manyhands: No such option: {unknown[0]} Try: manyhands doctor --json")
        return 2
    try:
        return show_diagnosis("--json" in arguments)
    except BrokenPipeError:  # the reader of our output closed it
        return 0
    except OSError as error:
        echo(f"manyhands: {error.filename}: {error.strerror}.")
        return _PROBLEM


def _as_text(diagnosis: Diagnosis) -> str:
    """Return a list with one line per finding, and what to do below it."""
    width = max(len(finding.key) for finding in diagnosis.findings)
    indent = " " * (9 + width + 2)
    lines = []
    for finding in diagnosis.findings:
        lines += _wrapped(f"{finding.status:<9}{finding.key:<{width}}  ", finding.found, indent)
        if finding.advice:
            lines += _wrapped(f"{indent}-> ", finding.advice, f"{indent}   ")
    return "\n".join(lines) + "\n"


def _wrapped(start: str, text: str, indent: str) -> list[str]:
    """Return text as lines; commands and paths are not broken."""
    return textwrap.wrap(start + text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _conclusion(diagnosis: Diagnosis) -> str:
    """Return the number of problems and notes as a sentence."""
    problems, notes = (len(diagnosis.with_status(status)) for status in ("problem", "note"))
    if problems:
        return f"{problems} problem{'s' * (problems > 1)} found: follow the lines that begin with ->."
    return "No problem found" + (f"; {notes} note{'s' * (notes > 1)} about what is optional." if notes else ".")


# ----------------------------------------------------------------------------------------------------
# Ctrl-C: one line and an exit code of its own, also while libraries are imported.

_INTERRUPTED = 130  # as shells have it: 128 and the number of the signal


@contextmanager
def ending_at_once_when_interrupted() -> Iterator[None]:
    """Context manager for imports, in which Ctrl-C ends the process with one line.

    An exception during an import may be swallowed, or leave a partly initialised module. No file is open yet.
    """
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_usual or threading.current_thread() is not threading.main_thread():  # only the main thread sets handlers
        yield
        return
    signal.signal(signal.SIGINT, end_interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_interrupted(*_: Any) -> None:
    """Print one line and exit at once."""
    try:
        os.write(2, b"manyhands: interrupted; all files that exist are complete\n")
    finally:
        os._exit(_INTERRUPTED)
