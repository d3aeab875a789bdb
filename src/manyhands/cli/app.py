"""All commands, and the conversion of errors to one sentence and an exit code."""

from __future__ import annotations

import errno
import json
import os
import shlex
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import typer

from manyhands import __version__
from manyhands._core.spelling import did_you_mean
from manyhands.cli.label_commands import aggregate, agree, alt_test, ask, convert, inspect, report
from manyhands.cli.model_commands import demo, doctor, evaluate, methods, predict, simulate, train
from manyhands.cli.options import Command, takes_config
from manyhands.cli.paper_commands import leaderboard, reproduce
from manyhands.cli.printing import STANDARD_OUTPUT, echo, in_options, print_data
from manyhands.exceptions import (
    CrowdWarning,
    LimitError,
    ManyhandsError,
    OutputExistsError,
    ParameterError,
    UnknownColumnsError,
)
from manyhands.registry import missing_extra

USAGE, BAD_INPUT, LIMIT, INTERRUPTED = 2, 3, 5, 130
_FULL = (errno.ENOSPC, errno.EFBIG)  # errors of files that we write name the file; these do not

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="""Infer labels from crowd annotations, report the quality of each worker, train classifiers.

\b
Examples:
  manyhands inspect export.json
  manyhands aggregate export.json --question sentiment -o out/
  manyhands demo
""",
)
_JOBS = (inspect, aggregate, report, ask, agree, alt_test, convert, train, predict, evaluate)
_ALL = (*_JOBS, methods, simulate, demo, doctor, reproduce, leaderboard)
_COMMANDS = {one.__name__.replace("_", "-"): one for one in _ALL}
for name, command in _COMMANDS.items():
    text = (command.__doc__ or "").replace("\\b", "\b")  # click's mark of text with line breaks
    app.command(name, cls=Command, help=text)(takes_config(command))


def _show_version(requested: bool) -> None:
    """Print the version and exit."""
    if requested:
        print_data(f"manyhands {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
) -> None:
    """Options before any command."""


def run(arguments: list[str]) -> int:
    """Run one command; every `CrowdWarning` is printed as a note.

    Parameters
    ----------
    arguments : list of str
        The command line without the name of the program.

    Returns
    -------
    int
        The exit code.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("always", CrowdWarning)
        warnings.showwarning = _show_each_once()
        return _run(arguments or ["--help"])


def _run(arguments: list[str]) -> int:
    """Run one command and return its exit code; errors become one sentence."""
    try:
        # A command that exits early returns its code.
        code = app(arguments, prog_name="manyhands", standalone_mode=False) or 0
        if code == INTERRUPTED:  # typer's answer to Ctrl-C
            raise KeyboardInterrupt
        return code
    except (typer.Abort, KeyboardInterrupt):
        return _fail(arguments, "interrupted; all files that exist are complete", INTERRUPTED)
    except BrokenPipeError:  # the reader of our output closed it
        _discard_output()
        return 0
    except (ParameterError, OutputExistsError) as error:
        return _fail(arguments, in_options(str(error)), USAGE)
    except LimitError as error:
        return _fail(arguments, in_options(str(error)), LIMIT)
    except UnknownColumnsError as error:
        return _fail(arguments, f"{in_options(str(error))}{_with_columns(arguments, error.columns)}", BAD_INPUT)
    except ManyhandsError as error:
        return _fail(arguments, in_options(str(error)), BAD_INPUT)
    except ImportError as error:
        if (error.name or "manyhands").startswith("manyhands"):
            raise  # a bug of ours
        said = missing_extra(error, "This") or f"{error}. Run manyhands doctor, which says more."
        return _fail(arguments, said, BAD_INPUT)
    except OSError as error:
        return _fail(arguments, _sentence(error), BAD_INPUT)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        command = f"{arguments[0]} " if arguments[0] in _COMMANDS else ""
        return _fail(arguments, f"{_usage_error(error)} Try: manyhands {command}--help", USAGE)


def _with_columns(arguments: list[str], columns: dict[str, str]) -> str:
    """Return the command again, with the columns that are probably meant; nothing where they are not known."""
    command = typer.main.get_group(app).commands.get(arguments[0])
    names = {name for parameter in getattr(command, "params", ()) for name in parameter.opts}
    if not columns or not {f"--{name}" for name in columns} <= names:
        return ""
    named = [word for name, column in columns.items() for word in (f"--{name}", column)]
    return f" Try: {shlex.join(['manyhands', *arguments, *named])}"


def _usage_error(error: Any) -> str:
    """Return what is wrong with a command line; of an unknown option with the nearest option of the command."""
    typed, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if typed is None or context is None or not getattr(error, "possibilities", None):
        return str(error.format_message())
    options = [name for parameter in context.command.params for name in parameter.opts if name.startswith("--")]
    return f"There is no option {typed}.{did_you_mean(typed, options)}"


def _sentence(error: OSError) -> str:
    """Return which file the system could not read or write, and why."""
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename == STANDARD_OUTPUT or (error.filename is None and error.errno in _FULL):
        _discard_output()  # otherwise Python tries to write the rest once more at exit, and prints an error
        return f"{STANDARD_OUTPUT}: {reason}."
    if error.filename is None:
        return f"The system cannot read or write a file: {reason}."
    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(error.filename)
    return f"{name}: {reason}."


def _discard_output() -> None:
    """Redirect what is still buffered for standard output to the null device."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(arguments: list[str], sentence: str, code: int) -> int:
    """Print one sentence to stderr, with --json also an object to stdout, and return the code."""
    echo(f"manyhands: {sentence}")
    if "--json" in arguments:
        with suppress(OSError):  # the sentence is on stderr even if stdout fails
            print_data(json.dumps({"schema": 1, "error": {"code": code, "message": sentence}}, indent=2) + "\n")
    return code


def _show_each_once() -> Callable[..., None]:
    """Return a function that prints warnings of ours as notes, each once however many questions it concerns."""
    shown: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, CrowdWarning) and str(message) not in shown:
            shown.add(str(message))
            echo(f"note: {in_options(str(message))}")

    return show
