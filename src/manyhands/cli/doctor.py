"""`manyhands doctor`: what is installed, compiled and found, and what to do."""

from __future__ import annotations

import typer

from manyhands.cli.doctor_report import report


def doctor(as_json: bool = typer.Option(False, "--json", help="Print one JSON object.")) -> None:
    r"""Examine this installation: versions, C modules, optional libraries, folders, memory; and say what to do.

    The list goes to stdout and contains no names of hosts or users. Exits with 3 if there is a problem.

    \b
    Examples:
      manyhands doctor
      manyhands doctor --json
    """
    code = report(as_json)
    if code:
        raise typer.Exit(code)
