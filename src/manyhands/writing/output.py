"""The place of a run's files, locked from the beginning of the run to its end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from manyhands.exceptions import ManyhandsError
from manyhands.writing.checks import refuse_present, refuse_unwritable, unwritable
from manyhands.writing.locks import held
from manyhands.writing.manifest import MANIFEST, make_manifest, refuse_foreign_manifest
from manyhands.writing.staged_files import StagedFiles, digest_of
from manyhands.writing.staging import checksum, place, recover

_FOLDER_KEY = "manyhands"  # key of the lock and the temporary files of a set; a single file uses its own name
_LONGEST_KEY = 100  # bytes; a longer file name is replaced by its checksum in the name of the lock
_PATIENCE = 10.0  # seconds to wait for another run; writing finished files takes less


@dataclass(frozen=True)
class Output:
    """A folder, or one file in it, that this run alone may write; created by `claim`.

    Attributes
    ----------
    folder : Path
        The folder.
    names : collection of str
        The files that will be written.
    force : bool
        Whether existing files may be replaced.
    manifest : bool
        Whether a manifest is written.
    key : str
        Key of the lock and the temporary files.
    """

    folder: Path
    names: Collection[str]
    force: bool
    manifest: bool
    key: str

    @contextmanager
    def stage(self) -> Iterator[StagedFiles]:
        """Context manager for files that are too large for memory, which `write` moves into place with the others.

        Yields
        ------
        StagedFiles
            Where the files are written; what `write` did not move is removed at the end of the block.
        """
        staged = StagedFiles(self.folder, self.key)
        try:
            yield staged
        except BaseException:
            if all((staged.path / name).exists() for name in staged.digests):  # otherwise the next run completes it
                shutil.rmtree(staged.path, ignore_errors=True)
            raise
        shutil.rmtree(staged.path, ignore_errors=True)

    def write(self, files: Mapping[str, bytes], staged: StagedFiles | None = None) -> list[str]:
        """Write all files together, the manifest last.

        Parameters
        ----------
        files : mapping of str to bytes
            The content of each file by its name.
        staged : StagedFiles or None, default=None
            Further files, which `stage` has written.

        Returns
        -------
        list of str
            Files of an earlier run that this run did not replace, where it replaced others of that run.
        """
        digests = {name: digest_of(content) for name, content in files.items()}
        digests |= {} if staged is None else staged.digests
        self._refuse(digests)
        contents = dict(files)
        stale: list[str] = []
        if self.manifest:
            contents[MANIFEST], stale = make_manifest(self.folder, digests)
        place(self.folder, self.key, contents, staged)
        return stale

    def _refuse(self, names: Collection[str]) -> None:
        """Refuse to replace existing files without permission."""
        if not self.force:
            refuse_present(self.folder, names)
            if self.manifest:
                refuse_foreign_manifest(self.folder)


@contextmanager
def claim(
    folder: str | Path, names: Collection[str], *, force: bool = False, manifest: bool = True, wait: float = 0.0
) -> Iterator[Output]:
    """Context manager that checks and locks a place for files, and leaves no trace where nothing was written.

    Files that a killed run left there are completed or removed first.

    Parameters
    ----------
    folder : str or Path
        The folder of the files; it is created.
    names : collection of str
        The files that will be written.
    force : bool, default=False
        Replace existing files.
    manifest : bool, default=True
        Write a manifest with the files. Without one, a single file is locked alone, and not its folder.
    wait : float, default=0.0
        Seconds to wait for another run that is writing there.

    Yields
    ------
    Output
        The locked place.

    Raises
    ------
    OutputExistsError
        Where files exist already, or another run writes there.
    ParameterError
        Where the folder cannot be written to.
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
        for path in new:  # deepest first; folders with files stay
            with suppress(OSError):
                path.rmdir()


@contextmanager
def _held(lock: Path, what: Path, wait: float) -> Iterator[None]:
    """Hold the lock; an error of the operating system becomes that of an unwritable folder."""
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
    """Key of the lock: that of the folder, or of a single file without a manifest."""
    if manifest or len(names) != 1:
        return _FOLDER_KEY
    name = next(iter(names))
    return name if len(os.fsencode(name)) <= _LONGEST_KEY else checksum(os.fsencode(name))[:16]


def write_files(folder: str | Path, files: Mapping[str, bytes], *, force: bool = False, manifest: bool = False) -> None:
    """Write files atomically: they appear complete or not at all; existing ones are replaced only with `force`.

    All contents are on disk under temporary names before the first one is moved into place, so a run that is killed
    leaves the previous files or complete new ones; the next run completes the set. A symbolic link in the place of a
    file is replaced only with `force`, and never followed.

    Parameters
    ----------
    folder : str or Path
        Where to write; it is created.
    files : mapping of str to bytes
        The content of each file by its name.
    force : bool, default=False
        Replace existing files.
    manifest : bool, default=False
        Also write `manifest.json`, with the run, size and checksum of each file; `verify_folder` reads it.
    """
    with claim(folder, files, force=force, manifest=manifest, wait=_PATIENCE) as output:
        output.write(files)
