"""The place of a run's files, held from the beginning of the run to its end."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from manyhands.exceptions import ManyhandsError
from manyhands.writing.checks import refuse_present, refuse_unwritable, unwritable
from manyhands.writing.locks import held
from manyhands.writing.manifest import MANIFEST, make_manifest, refuse_foreign_manifest
from manyhands.writing.staging import checksum, place, recover

_FOLDER_KEY = "manyhands"  # of the lock and the temporary files of a set; one file has those of its own name
_LONGEST_KEY = 100  # bytes of a file's name that go into the name of its lock
_PATIENCE = 10.0  # seconds; files that are ready are written within that


@dataclass(frozen=True)
class Output:
    """A folder, or one file in it, that this run alone may write; made by `claim`."""

    folder: Path
    names: Collection[str]
    force: bool
    manifest: bool
    key: str

    def write(self, files: Mapping[str, bytes]) -> list[str]:
        """Write all files together, the manifest last.

        Parameters
        ----------
        files : mapping of str to bytes
            The content of each file by its name.

        Returns
        -------
        list of str
            Files of an earlier run, some of whose files were replaced, that this run did not write and left.
        """
        self._refuse(files)
        contents = dict(files)
        stale: list[str] = []
        if self.manifest:
            contents[MANIFEST], stale = make_manifest(self.folder, files)
        place(self.folder, self.key, contents)
        return stale

    def _refuse(self, names: Collection[str]) -> None:
        if not self.force:
            refuse_present(self.folder, names)
            if self.manifest:
                refuse_foreign_manifest(self.folder)


@contextmanager
def claim(
    folder: str | Path, names: Collection[str], *, force: bool = False, manifest: bool = True, wait: float = 0.0
) -> Iterator[Output]:
    """Check a place for files, hold it while the block runs, and leave no trace where nothing was written.

    What a killed run left there is completed or removed first.

    Parameters
    ----------
    folder : str or Path
        The folder of the files; it is made.
    names : collection of str
        The files that will be written.
    force : bool, default=False
        Replace files that are there already.
    manifest : bool, default=True
        Write a manifest with the files. Without one, a single file is held alone, and not its folder.
    wait : float, default=0.0
        Seconds to wait for another run that is writing there.
    """
    folder = Path(folder)
    refuse_unwritable(folder, [*names, *([MANIFEST] if manifest else [])])
    key = _key(names, manifest)
    new = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    lock = folder / (".manyhands.lock" if key == _FOLDER_KEY else f".{key}.lock")
    what = folder if key == _FOLDER_KEY else folder / next(iter(names))
    try:
        with _held(lock, what, wait):
            recover(folder, key)
            output = Output(folder, names, force, manifest, key)
            output._refuse(names)
            yield output
    finally:
        for path in new:  # the deepest first; what has files in it stays
            with suppress(OSError):
                path.rmdir()


@contextmanager
def _held(lock: Path, what: Path, wait: float) -> Iterator[None]:
    """The lock, where a file can be made for it."""
    begun = False
    try:
        with held(lock, what, wait):
            begun = True
            yield
    except OSError as error:
        if begun or isinstance(error, ManyhandsError):
            raise
        raise unwritable(lock.parent, error) from None


def _key(names: Collection[str], manifest: bool) -> str:
    if manifest or len(names) != 1:
        return _FOLDER_KEY
    name = next(iter(names))
    return name if len(os.fsencode(name)) <= _LONGEST_KEY else checksum(os.fsencode(name))[:16]


def write_files(folder: str | Path, files: Mapping[str, bytes], *, force: bool = False, manifest: bool = False) -> None:
    """Write files that appear whole or not at all; refuse to replace any without `force`.

    All contents are on disk under temporary names before the first one is moved into place, so a run that is killed
    leaves what was there before, or files that are whole; the next run completes the set. A symbolic link in the place
    of a file is replaced only with `force`, and never followed.

    Parameters
    ----------
    folder : str or Path
        Where to write; it is made.
    files : mapping of str to bytes
        The content of each file by its name.
    force : bool, default=False
        Replace files that are there already.
    manifest : bool, default=False
        Also write `manifest.json`, with the run, size and checksum of each file; `verify_folder` reads it.
    """
    with claim(folder, files, force=force, manifest=manifest, wait=_PATIENCE) as output:
        output.write(files)
