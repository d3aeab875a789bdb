"""Prints a diagnosis; imports neither typer nor polars, so that it works where they cannot be loaded."""

from __future__ import annotations

import json
import textwrap

from manyhands.cli.printing import print_data
from manyhands.cli.show import echo
from manyhands.workflows.diagnosis import Diagnosis, diagnose

PROBLEM = 3
_WIDTH = 100
_OPTIONS = ("--json",)


def report(as_json: bool = False) -> int:
    """Print the diagnosis of this environment.

    Parameters
    ----------
    as_json : bool, default=False
        Print one JSON object instead of a list.

    Returns
    -------
    int
        The exit code: 3 if there is a problem, otherwise 0.
    """
    diagnosis = diagnose()
    print_data(json.dumps(diagnosis.to_dict(), indent=2) + "\n" if as_json else as_text(diagnosis))
    if not as_json:
        echo(_conclusion(diagnosis))
    return PROBLEM if diagnosis.status == "problem" else 0


def run_alone(arguments: list[str]) -> int:
    """Run `manyhands doctor` without the other commands, which cannot be loaded.

    Parameters
    ----------
    arguments : list of str
        The command line: "doctor" and its options.

    Returns
    -------
    int
        The exit code.
    """
    unknown = [argument for argument in arguments[1:] if argument not in _OPTIONS]
    if unknown:
        echo(f"manyhands: No such option: {unknown[0]} Try: manyhands doctor --json")
        return 2
    try:
        return report("--json" in arguments)
    except BrokenPipeError:  # the reader of our output closed it
        return 0
    except OSError as error:
        echo(f"manyhands: {error.filename}: {error.strerror}.")
        return PROBLEM


def as_text(diagnosis: Diagnosis) -> str:
    """Return a list with one line per finding, and what to do below it.

    Parameters
    ----------
    diagnosis : Diagnosis
        What was found.

    Returns
    -------
    str
        Lines of status, key and what was found.
    """
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
