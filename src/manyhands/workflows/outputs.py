"""Reserve a place for the files of a job before it begins, and write all of them or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from manyhands.exceptions import ParameterError
from manyhands.io.write.triples import TARGETS
from manyhands.writing import MANIFEST, Output, claim


@dataclass(frozen=True)
class Written:
    """Files that a job wrote.

    Attributes
    ----------
    names : tuple of str, default=()
        The files, the manifest last; empty if nothing was written.
    stale : tuple of str, default=()
        Files of an earlier run in the same folder that this job neither wrote nor removed.
    folder : Path or None, default=None
        Where the files are.
    """

    names: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    folder: Path | None = None

    def __str__(self) -> str:
        return ", ".join(self.names)


@contextmanager
def claim_folder(out: str | Path | None, names: Sequence[str], *, force: bool) -> Iterator[Output | None]:
    """Reserve a folder for a set of files and their manifest while the block runs.

    Parameters
    ----------
    out : str, Path or None
        The folder; None if nothing is to be written.
    names : sequence of str
        Files that will be written.
    force : bool
        Whether files that exist may be replaced.

    Yields
    ------
    Output or None
        What `write_all` writes to.
    """
    if out is None:
        yield None
        return
    with claim(out, names, force=force) as output:
        yield output


@contextmanager
def claim_file(out: str | Path | None, *, force: bool) -> Iterator[Output | None]:
    """Reserve the place of one file while the block runs.

    Parameters
    ----------
    out : str, Path or None
        The file; None if nothing is to be written.
    force : bool
        Whether a file that exists may be replaced.

    Yields
    ------
    Output or None
        What `write_all` writes to.
    """
    if out is None:
        yield None
        return
    path = Path(out)
    with claim(path.parent, [path.name], force=force, manifest=False) as output:
        yield output


def table_ending(out: str | Path | None) -> str:
    """Return the file name ending of a table, ".csv" if there is no file.

    Parameters
    ----------
    out : str, Path or None
        The file that is to be written.

    Returns
    -------
    str
        The ending in lower case, with its dot.

    Raises
    ------
    ParameterError
        If tables are not written in a format with this ending.
    """
    if out is None:
        return ".csv"
    ending = Path(out).suffix.lower()
    if ending not in TARGETS:
        raise ParameterError(f"{out} ends in {ending!r}. Tables are written as {', '.join(TARGETS)}.")
    return ending


def write_all(output: Output | None, files: Mapping[str, bytes]) -> Written:
    """Write all files of a job; without a place for them, nothing.

    Parameters
    ----------
    output : Output or None
        The reserved place.
    files : mapping of str to bytes
        Content of each file by its name.

    Returns
    -------
    Written
        Names of the files.
    """
    if output is None:
        return Written()
    stale = output.write(files)
    names = [*sorted(files), MANIFEST] if output.manifest else sorted(files)
    return Written(tuple(names), tuple(stale), output.folder)
