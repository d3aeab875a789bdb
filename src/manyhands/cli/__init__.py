"""The command line: one short file per command.

Data goes to stdout, words go to stderr. Exit codes (docs/command-line.md): 0 done, 1 a fault of ours, 2 usage, 3 input
that cannot be used or a file that the system cannot read or write, 4 a quality gate, 5 a limit, 130 interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

_INTERRUPTED = 130


def main() -> None:
    """Run the command line; every error of ours becomes one sentence, and an interruption one line.

    Imports take most of a second, so an interruption is expected there, too.
    """
    sys.excepthook = _show_fault
    _fill_standard_streams()
    before = _end_at_once_when_interrupted()
    _check_processor()
    from manyhands.cli.app import run

    try:
        if before is not None:
            signal.signal(signal.SIGINT, before)
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        _end_interrupted()
    sys.exit(code)


def _check_processor() -> None:
    """End with one sentence where the data-frame library cannot run, before the commands import it themselves."""
    from manyhands.exceptions import MissingExtraError

    try:
        import manyhands.io.frames_library  # noqa: F401
    except MissingExtraError as error:
        print(f"manyhands: {error}", file=sys.stderr)
        sys.exit(3)


def _end_at_once_when_interrupted() -> Any:
    """Until it is undone, Ctrl-C ends the process with one line; the handler that was there before, if it was replaced.

    An exception within an import may be lost in it, or leave half a module. Nothing is open yet that could be harmed.
    """
    try:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            return signal.signal(signal.SIGINT, _end_interrupted)
    except ValueError:  # not in the main thread, which alone gets signals
        pass
    return None


def _end_interrupted(*_: Any) -> None:
    try:
        os.write(2, b"manyhands: interrupted; every file that is there is whole\n")
    finally:
        os._exit(_INTERRUPTED)


def _fill_standard_streams() -> None:
    """Where the shell closed a stream, let no file take its number: what is printed would end up in that file."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free, which is this one
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  # for as long as the process runs


def _show_fault(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """The traceback of a fault of ours, in which nothing of the data can move the cursor."""
    import traceback

    from manyhands.cli.show import say

    for line in "".join(traceback.format_exception(kind, error, trace)).splitlines():
        say(line)
