"""The command line: a command parses its arguments, calls one job and prints what it returns.

Data goes to stdout, text for people to stderr. Exit codes (docs/command-line.md): 0 success, 1 internal error, 2 usage
error, 3 input or an environment that cannot be used or a file that the system cannot read or write, 4 quality threshold
not reached, 5 resource limit, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from manyhands.cli.printing import end_interrupted, ending_at_once_when_interrupted


def main() -> None:
    """Run the command line: print errors as one sentence, an interruption as one line, and exit with a code."""
    sys.excepthook = _show_internal_error
    _open_standard_streams()
    _return_memory(sys.argv[1:])
    with ending_at_once_when_interrupted():
        run = _load_commands(sys.argv[1:])
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        end_interrupted()
    sys.exit(code)


def _return_memory(arguments: list[str]) -> None:
    """Where memory is limited, let polars return what it freed; it must be told before it is loaded.

    Its allocator keeps address space for later, which a limit on data (``ulimit -d``) counts as used.
    """
    limited = any(argument.startswith("--max-memory") for argument in arguments)
    try:
        import resource

        limited = limited or resource.getrlimit(resource.RLIMIT_DATA)[0] != resource.RLIM_INFINITY
    except ImportError:  # Windows
        pass
    if limited:
        os.environ.setdefault("_RJEM_MALLOC_CONF", "retain:false")


def _load_commands(arguments: list[str]) -> Callable[[list[str]], int]:
    """Return the function that runs a command, or exit with one sentence if the environment prevents it.

    Without typer, `doctor` runs alone. A library that a command needs is loaded when the command runs.
    """
    try:
        from manyhands.cli.app import run
    except ImportError as error:
        from manyhands.cli.printing import run_doctor

        if arguments[:1] == ["doctor"] and "--help" not in arguments:
            return run_doctor
        if (error.name or "manyhands").startswith("manyhands"):
            raise  # a bug of ours
        print(f"manyhands: {error}. Run manyhands doctor, which says more.", file=sys.stderr)
        sys.exit(3)
    return run


def _open_standard_streams() -> None:
    """Open streams that the shell closed, so that no file gets their number and printed text ends up in it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  # for as long as the process runs


def _show_internal_error(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Print the traceback of an internal error, control characters in it as escapes."""
    import traceback

    from manyhands.cli.printing import echo

    for line in "".join(traceback.format_exception(kind, error, trace)).splitlines():
        echo(line)
