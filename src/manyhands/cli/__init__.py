"""The command line: one short file per command, each of which parses arguments, makes one library call and prints.

Data goes to stdout, text for people to stderr. Exit codes (docs/command-line.md): 0 success, 1 internal error, 2 usage
error, 3 input or an environment that cannot be used or a file that the system cannot read or write, 4 quality threshold
not reached, 5 resource limit, 130 interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

_INTERRUPTED = 130


def main() -> None:
    """Run the command line: print errors as one sentence, an interruption as one line, and exit with a code.

    Imports take most of a second, so an interruption during imports is handled, too.
    """
    sys.excepthook = _show_internal_error
    _open_standard_streams()
    before = _end_at_once_when_interrupted()
    _return_memory(sys.argv[1:])
    run = _load_commands(sys.argv[1:])
    try:
        if before is not None:
            signal.signal(signal.SIGINT, before)
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        _end_interrupted()
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

    A processor that polars cannot run on, an instruction set that does not exist, a missing library: then `doctor`
    runs alone, without what the other commands load.
    """
    from manyhands.exceptions import ManyhandsError

    try:
        import manyhands.io.frames_library  # noqa: F401  # first: it explains why polars cannot run
        from manyhands.cli.app import run
    except (ImportError, ManyhandsError) as error:
        from manyhands.cli.doctor_report import run_alone

        if arguments[:1] == ["doctor"] and "--help" not in arguments:
            return run_alone
        if not isinstance(error, ManyhandsError) and (error.name or "manyhands").startswith("manyhands"):
            raise  # a bug of ours
        _exit_with(error)
    return run


def _exit_with(error: Exception) -> NoReturn:
    """Print why no command can be loaded, and exit."""
    from manyhands.exceptions import ManyhandsError, ParameterError

    sentence = str(error) if isinstance(error, ManyhandsError) else f"{error}. Run manyhands doctor, which says more."
    print(f"manyhands: {sentence}", file=sys.stderr)
    sys.exit(2 if isinstance(error, ParameterError) else 3)


def _end_at_once_when_interrupted() -> Any:
    """Let Ctrl-C end the process with one line; return the previous handler if it was replaced.

    An exception during an import may be swallowed, or leave a partly initialised module. No file is open yet.
    """
    try:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            return signal.signal(signal.SIGINT, _end_interrupted)
    except ValueError:  # not in the main thread; only that one gets signals
        pass
    return None


def _end_interrupted(*_: Any) -> None:
    """Print one line and exit at once."""
    try:
        os.write(2, b"manyhands: interrupted; all files that exist are complete\n")
    finally:
        os._exit(_INTERRUPTED)


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

    from manyhands.cli.show import echo

    for line in "".join(traceback.format_exception(kind, error, trace)).splitlines():
        echo(line)
