"""Standard output: data for programs as exact bytes, for a terminal without control characters."""

from __future__ import annotations

import errno
import os
import shlex
import sys
from typing import TYPE_CHECKING, Any

from manyhands.cli.show import echo, printable

if TYPE_CHECKING:
    from manyhands.workflows.outputs import Written

STANDARD_OUTPUT = "Standard output"


def command_line() -> str:
    """Return the command line as the user typed it, for records.

    Returns
    -------
    str
        The name of the program and its arguments, quoted where necessary.
    """
    return shlex.join(["manyhands", *sys.argv[1:]])


def require_stdout() -> None:
    """Refuse to begin a job that prints data if standard output is closed.

    Raises
    ------
    OSError
        If the shell closed standard output.
    """
    if sys.stdout is None:  # Python's value for a stream that the shell closed
        raise OSError(errno.EBADF, "it is closed", STANDARD_OUTPUT)


def print_data(content: bytes | str) -> None:
    """Print data: exact bytes for a program, and on a terminal control characters as escapes.

    Characters that change the direction of text count as control characters.

    Parameters
    ----------
    content : bytes or str
        The data; text is encoded as UTF-8.

    Raises
    ------
    OSError
        If standard output is closed or full.
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
    """Print one JSON object in which control characters are escaped.

    Parameters
    ----------
    value : object
        What JSON can hold, numpy values included.
    """
    from manyhands.io.write.json_values import to_json  # loads polars, which `doctor` must do without

    print_data(to_json(value))


def echo_stale(written: Written) -> None:
    """Name files of an earlier run that this one left in its folder.

    Parameters
    ----------
    written : Written
        What was written.
    """
    if written.stale:
        names = f"{', '.join(written.stale)} in {written.folder}"
        echo(f"note: this run did not write {names}: left as an earlier run wrote it.")


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
