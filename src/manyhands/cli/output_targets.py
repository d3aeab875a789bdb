"""What a command prints and writes: data to standard output, files to a place that it holds from its beginning."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyhands.cli.show import printable, say
from manyhands.exceptions import ParameterError
from manyhands.io.write.json_values import to_json
from manyhands.io.write.triples import TARGETS
from manyhands.writing import MANIFEST, Output, claim

STANDARD_OUTPUT = "Standard output"


@dataclass(frozen=True)
class Target:
    """Where a command is to write: a set of files with a manifest, or one file."""

    folder: Path
    names: Sequence[str]
    manifest: bool = True


def folder_target(out: Path | None, names: Sequence[str]) -> Target | None:
    """A folder with these files and a manifest; None where nothing is to be written."""
    return None if out is None else Target(out, names)


def file_target(out: Path | None) -> Target | None:
    """One file; None where nothing is to be written."""
    return None if out is None else Target(out.parent, [out.name], manifest=False)


def table_target(out: Path | None) -> Target | None:
    """One file with a table, whose name says of what kind."""
    if out is not None and out.suffix.lower() not in TARGETS:
        raise ParameterError(f"{out} ends in {out.suffix.lower()!r}. Tables are written as {', '.join(TARGETS)}.")
    return file_target(out)


@contextmanager
def claimed(target: Target | None, force: bool) -> Iterator[Output | None]:
    """Hold the place for the files of a command, if it is to write any; refused before anything is read or fitted."""
    if target is None:
        _refuse_closed()
        yield None
        return
    with claim(target.folder, target.names, force=force, manifest=target.manifest) as output:
        yield output


def write_output(output: Output, files: Mapping[str, bytes]) -> str:
    """Write all files of a command; returns their names for a sentence."""
    stale = output.write(files)
    if stale:
        said = f"{', '.join(stale)} in {output.folder}"
        say(f"note: this run did not write {said}: left as an earlier run wrote it.")
    return ", ".join([*sorted(files), MANIFEST] if output.manifest else sorted(files))


def print_data(content: bytes | str) -> None:
    """Data on standard output: exact bytes for a program, and for a terminal nothing that it would obey.

    On a terminal, control characters, among them those that change the direction of text, are shown as escapes.
    """
    _refuse_closed()
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


def _write_all(stream: Any, data: bytes) -> None:
    """A stream without a buffer, as PYTHONUNBUFFERED makes it, takes a part and says how much."""
    rest = memoryview(data)
    while rest:
        rest = rest[stream.write(rest) or 0 :]


def _refuse_closed() -> None:
    if sys.stdout is None:  # as Python has it where the shell closed it
        raise OSError(errno.EBADF, "it is closed", STANDARD_OUTPUT)


def _for_terminal(data: bytes) -> bytes:
    text = data.decode("utf-8", "backslashreplace")
    shown = "".join(letter if letter in "\n\t" else printable(letter) for letter in text)
    return shown.replace("\n", os.linesep).encode(sys.stdout.encoding or "utf-8", "backslashreplace")


def print_json(value: Any) -> None:
    """One object on standard output, in which whatever a terminal might obey is escaped."""
    print_data(to_json(value))
