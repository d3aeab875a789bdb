"""Atomic writing: files appear complete or not at all, and the files of one run all together.

`refuse_present`, `refuse_unwritable`  checks of the output folder before any work begins
`StagedFiles`                          files that are written piece by piece, because they are too large for memory
`place`, `recover`                     files are written to a temporary folder, then moved into place; interrupted runs
                                       are completed or removed
`make_manifest`, `verify_folder`       which files belong to which run, with their sizes and checksums
`held`                                 one writer at a time; the lock ends with the process that holds it
`Output`, `claim`, `write_files`       the place of a run's files, locked from the beginning of the run to its end
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from manyhands._core.system import read_limited
from manyhands.exceptions import LimitError, ManyhandsError, OutputExistsError, ParameterError

# ----------------------------------------------------------------------------------------------------
# Checks of the output folder before any work begins.


def refuse_present(folder: str | Path, names: Iterable[str]) -> None:
    """Refuse to start a run whose output files, or symbolic links in their place, exist already."""
    folder = Path(folder)
    present = [name for name in names if os.path.lexists(folder / name)]
    if present:
        message = f"{folder} already has {', '.join(present)}. Add `force=True` to replace them."
        links = [name for name in present if (folder / name).is_symlink()]
        if links:
            message += f" Of {', '.join(links)}, the symbolic link itself is replaced, not the file that it points to."
        raise OutputExistsError(message)


def refuse_unwritable(folder: str | Path, names: Iterable[str] = ()) -> None:
    """Refuse to start a run whose output folder cannot be created or written to; nothing is left behind.

    A temporary file is created as a test, because permissions alone are not reliable: a superuser has them even where
    no file can be written.
    """
    folder = Path(folder)
    for name in names:
        if (folder / name).is_dir():
            raise ParameterError(f"{folder / name} is a folder, and cannot be replaced by a file. Give another name.")
    nearest = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
    if nearest.is_symlink() and not nearest.exists():
        raise ParameterError(
            f"{nearest} is a symbolic link that points to nothing, so nothing can be written to {folder}. "
            "Remove the link, or give another folder."
        )
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except NotADirectoryError:
        raise ParameterError(f"{nearest} is not a folder, so nothing can be written to {folder}.") from None
    except OSError as error:
        raise unwritable(folder, error) from None


def unwritable(folder: Path, error: OSError) -> ParameterError:
    """The error for a folder that cannot be written to."""
    return ParameterError(f"Nothing can be written to {folder}: {error.strerror}. Give another folder.")


# ----------------------------------------------------------------------------------------------------
# Files that are too large for memory: written piece by piece under a temporary name, with a running checksum.
#
# They lie in the temporary folder of their run, inside the output folder, and are moved into place together with its
# other files. If the run is killed before that, the next run removes them.

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
NEW |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class Digest(NamedTuple):
    """Size and checksum of a file."""

    size: int
    sha256: str  # checksum in hexadecimal digits


def digest_of(content: bytes) -> Digest:
    """Size and checksum of a content in memory."""
    return Digest(len(content), hashlib.sha256(content).hexdigest())


def digest_of_file(path: Path) -> Digest:
    """Size and checksum of a file, which is read piece by piece."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Digest(file.tell(), digest)


class StagedFile:
    """A file that is being written; created by `StagedFiles.create`."""

    def __init__(self, file: BinaryIO, shown: Path) -> None:
        self._file, self._shown = file, shown
        self._size, self._sum = 0, hashlib.sha256()

    def write(self, content: bytes) -> int:
        """Append to the file."""
        with naming(self._shown):
            self._file.write(content)
        self._sum.update(content)
        self._size += len(content)
        return len(content)

    @property
    def digest(self) -> Digest:
        """Size and checksum of what was written so far."""
        return Digest(self._size, self._sum.hexdigest())


class StagedFiles:
    """The temporary folder of a run, and the files in it; created by `Output.stage`."""

    def __init__(self, folder: Path, key: str) -> None:
        self._folder = folder
        self.path = make_temporary(folder, key)
        self.digests: dict[str, Digest] = {}

    def shown(self, name: str) -> Path:
        """The final path of a file, which errors name."""
        return self._folder / name

    @contextmanager
    def create(self, name: str) -> Iterator[StagedFile]:
        """Context manager that writes one file; it is finished, and on disk, at the end of the block."""
        shown = self.shown(name)
        with naming(shown):
            file = open(os.open(self.path / name, NEW, 0o666), "wb")  # noqa: SIM115  # closed below
        with file:
            staged = StagedFile(file, shown)
            yield staged
            with naming(shown):
                file.flush()
                os.fsync(file.fileno())
        self.digests[name] = staged.digest

    def adopt(self, name: str) -> None:
        """Count a file that a library wrote to `path` as finished."""
        with naming(self.shown(name)):
            descriptor = os.open(self.path / name, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self.digests[name] = digest_of_file(self.path / name)


def make_temporary(folder: Path, key: str) -> Path:
    """A new temporary folder with a random name and access for this user only."""
    path = folder / f".{key}-{secrets.token_hex(8)}.tmp"  # the pattern of staging._leftovers
    path.mkdir(mode=0o700)
    return path


@contextmanager
def naming(shown: Path) -> Iterator[None]:
    """Context manager in which an error of the operating system names the final file and not the temporary one."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(shown)) from None


# ----------------------------------------------------------------------------------------------------
# Staging: files are written to a temporary folder and moved into place once all of them are on disk.
#
# A journal is written with them. A run that is killed before the first file is moved leaves everything unchanged; one
# that is killed later leaves a mixed set, which the next run completes from the journal.

_JOURNAL = ".journal"


def checksum(content: bytes) -> str:
    """SHA-256 of a content, in hexadecimal digits."""
    return digest_of(content).sha256


def place(folder: Path, key: str, files: Mapping[str, bytes], staged: StagedFiles | None = None) -> None:
    """Write files into a folder, replacing existing ones; the lock of `key` must be held.

    An interruption by the keyboard while files are moved takes effect once all of them are moved.
    """
    staging = make_temporary(folder, key) if staged is None else staged.path
    digests: dict[str, Digest] = {} if staged is None else dict(staged.digests)
    moving = False
    try:
        for name, content in files.items():
            _write_through(staging / name, content, folder / name)
            digests[name] = digest_of(content)
        if len(digests) > 1:
            journal = {name: digest.sha256 for name, digest in digests.items()}
            _write_through(staging / _JOURNAL, json.dumps(journal).encode(), folder)
            _sync(staging)
        moving = True
        try:
            _move(staging, folder, digests)
        except KeyboardInterrupt:
            _move(staging, folder, digests)
            raise
        finally:
            moving = any((staging / name).exists() for name in digests)
        _sync(folder)
    finally:
        if not moving:  # otherwise the next run completes it
            shutil.rmtree(staging, ignore_errors=True)


def recover(folder: Path, key: str) -> None:
    """Complete what killed runs had begun to move into place, and remove the rest; the lock must be held."""
    for staging in _leftovers(folder, key):
        journal = _journal(staging)
        if journal and _is_begun(staging, folder, journal):
            _move(staging, folder, journal)
            _sync(folder)
        shutil.rmtree(staging, ignore_errors=True)


def _write_through(path: Path, content: bytes, shown: Path) -> None:
    """Write a new file and wait for the disk; an error names the final file."""
    with naming(shown), open(os.open(path, NEW, 0o666), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _move(staging: Path, folder: Path, names: Iterable[str]) -> None:
    """Move files into place, skipping those already moved."""
    for name in names:
        with suppress(FileNotFoundError):  # it has been moved already
            os.replace(staging / name, folder / name)


def _sync(folder: Path) -> None:
    """Flush the folder to disk, where the system supports it, so that the new names survive a power failure."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with suppress(OSError):  # some network file systems cannot
                os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _leftovers(folder: Path, key: str) -> Iterator[Path]:
    """The temporary folders of killed runs of this user; those of other users are ignored for security."""
    name = re.compile(rf"\.{re.escape(key)}-[0-9a-f]{{16}}\.tmp")
    with suppress(OSError):
        for path in sorted(folder.iterdir()):
            if name.fullmatch(path.name):
                status = path.lstat()
                if stat.S_ISDIR(status.st_mode) and (sys.platform == "win32" or status.st_uid == os.geteuid()):
                    yield path


def _journal(staging: Path) -> dict[str, str]:
    """Names and checksums of a set; empty where the journal is missing or incomplete."""
    try:
        parsed = json.loads((staging / _JOURNAL).read_bytes())
        return {str(name): str(value) for name, value in parsed.items() if Path(name).name == name}
    except (OSError, ValueError, AttributeError, RecursionError):
        return {}


def _is_begun(staging: Path, folder: Path, journal: Mapping[str, str]) -> bool:
    """Whether some of the files were moved, and all still have their checksums."""
    moved = [name for name in journal if not (staging / name).exists()]
    try:
        return bool(moved) and all(
            digest_of_file((folder if name in moved else staging) / name).sha256 == value
            for name, value in journal.items()
        )
    except OSError:
        return False


# ----------------------------------------------------------------------------------------------------
# Manifest: which files of a folder belong to which run, with their sizes and checksums.
#
# `manifest.json` is the last file of a run to be moved into place. While a run writes, or after it was killed, the
# manifest and the files do not match, and `verify_folder` reports it.

MANIFEST = "manifest.json"
SCHEMA = 2
_MAX_MANIFEST = 1 << 24  # bytes; an entry has about 150
_AGAIN = "Run the command that writes it again, with `force=True`."


class Entry(NamedTuple):
    """One file of a manifest."""

    run: str  # id of its run
    size: int
    sha256: str


def make_manifest(folder: Path, files: Mapping[str, Digest]) -> tuple[bytes, list[str]]:
    """The manifest of `files` and of other runs in the folder.

    The id of a run is a checksum of its files, so that the same run gives the same manifest.
    """
    sums = {name: digest.sha256 for name, digest in files.items()}
    run = checksum(json.dumps(sums, sort_keys=True).encode())[:16]
    before = _own_manifest(folder) or {}
    replaced = {entry.run for name, entry in before.items() if name in files}
    kept = {name: entry for name, entry in before.items() if entry.run not in replaced}
    entries = kept | {name: Entry(run, *digest) for name, digest in files.items()}
    parsed = {"schema": SCHEMA, "files": {name: entry._asdict() for name, entry in sorted(entries.items())}}
    stale = [name for name in before if name not in entries and (folder / name).is_file()]
    return (json.dumps(parsed, indent=1) + "\n").encode(), stale


def refuse_foreign_manifest(folder: Path) -> None:
    """Refuse to replace a manifest.json that manyhands did not write."""
    if os.path.lexists(folder / MANIFEST) and _own_manifest(folder) is None:
        raise OutputExistsError(
            f"{folder} already has {MANIFEST}, which this version of manyhands did not write. Add `force=True` to "
            "replace it, or give another folder."
        )


def read_manifest(folder: str | Path) -> dict[str, Entry]:
    """The entries of a folder's manifest by file name."""
    path = Path(folder) / MANIFEST
    if not path.is_file():
        raise ParameterError(
            f"{folder} has no {MANIFEST}: manyhands did not write this folder, or was killed while it wrote. {_AGAIN}"
        )
    try:
        parsed = json.loads(read_limited(path, _MAX_MANIFEST))
        if (schema := parsed["schema"]) == SCHEMA:
            return {str(name): Entry(str(e["run"]), int(e["size"]), str(e["sha256"])) for name, e in _items(parsed)}
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError):
        raise ParameterError(
            f"{path} cannot be read: it is truncated, or not a manifest of manyhands. {_AGAIN}"
        ) from None
    raise ParameterError(f"{path} has the schema {str(schema)[:20]}; this version reads {SCHEMA}. {_AGAIN}")


def _items(parsed: dict[str, dict[str, dict[str, str]]]) -> list[tuple[str, dict[str, str]]]:
    """Names and entries of a parsed manifest; names of files in other folders are refused."""
    odd = [name for name in parsed["files"] if Path(name).name != name]
    if odd:
        raise ValueError("a manifest names files of its own folder only")
    return list(parsed["files"].items())


def verify_folder(folder: str | Path, names: Collection[str] | None = None) -> list[str]:
    """Check that the files of a folder are those of its manifest, complete and of the same run.

    Parameters
    ----------
    folder : str or Path
        A folder that a command of manyhands wrote with ``-o``.
    names : collection of str, default=None
        The files that must be there and must come from one run; None checks all that the manifest names.

    Returns
    -------
    list of str
        The files that were checked.

    Raises
    ------
    ParameterError
        Where a file is missing, truncated, changed, or of another run than the others.
    """
    folder, entries = Path(folder), read_manifest(folder)
    wanted = list(entries if names is None else names)
    for name in wanted:
        if name not in entries or not (folder / name).is_file():
            raise ParameterError(f"{folder} is incomplete: {name} is missing. {_AGAIN}")
        path, entry = folder / name, entries[name]
        if path.stat().st_size != entry.size or digest_of_file(path) != entry[1:]:
            raise ParameterError(
                f"{folder / name} is not the file that {MANIFEST} names: a run was killed while it wrote, or the file "
                f"was truncated or changed. {_AGAIN}"
            )
    if names is not None and len({entries[name].run for name in wanted}) > 1:
        raise ParameterError(
            f"{folder} has {', '.join(wanted)} of several runs, which do not belong together. {_AGAIN}"
        )
    return wanted


def _own_manifest(folder: Path) -> dict[str, Entry] | None:
    """The entries of a manifest written by manyhands; None where there is none, or it is foreign or a link."""
    if (folder / MANIFEST).is_symlink():
        return None
    try:
        return read_manifest(folder)
    except (LimitError, ParameterError, OSError):
        return None


# ----------------------------------------------------------------------------------------------------
# File locks: one writer at a time.
#
# The lock is that of the operating system, on a small file: it ends with the process that holds it, however that
# ends, so a file left by a killed run locks no other run out. Where a file system has no locks, the existence of the
# file is the lock, and it counts as abandoned once the process that it names has ended.

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.EBADF, errno.EOPNOTSUPP, errno.ENOTSUP}
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_PAUSE = 0.02  # seconds between two attempts
_TRIES = 100  # attempts, where other processes keep removing the lock or its folder
_A_DAY = 86400  # seconds after which a lock counts as abandoned, where its process cannot be queried
_SIGNALS_ASK = os.name == "posix"  # elsewhere, signal 0 may terminate the process


class _Held(NamedTuple):
    """A lock that is held: its file, and the open descriptor; None where the existence of the file is the lock."""

    path: Path
    descriptor: int | None  # None: the file's existence is the lock


@contextmanager
def held(path: Path, what: Any, wait: float = 0.0) -> Iterator[None]:
    """Context manager that holds the lock file `path` exclusively; its folder is created."""
    latest = time.monotonic() + wait
    while (lock := _acquire(path)) is None:
        if time.monotonic() >= latest:
            raise OutputExistsError(
                f"Another run is writing {what}{_describe(path)}. Wait for it to end, or give another place with "
                "`out=`."
            )
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        _release(lock)


def _acquire(path: Path) -> _Held | None:
    """The lock, or None where another process has it."""
    for _ in range(_TRIES):
        descriptor = _open(path)
        try:
            mine = _try_lock(descriptor)
        except OSError as error:
            os.close(descriptor)
            if error.errno not in _NO_LOCKS:
                raise
            return _acquire_by_name(path)
        if mine and _is_still(path, descriptor):
            _write_owner(descriptor)
            return _Held(path, descriptor)
        os.close(descriptor)
        if not mine:
            return None
    return None


def _open(path: Path) -> int:
    """Open or create the lock file, never through a symbolic link."""
    for _ in range(_TRIES):
        try:
            if path.is_symlink():  # for systems without O_NOFOLLOW
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            return os.open(path, os.O_RDWR | os.O_CREAT | _NO_FOLLOW, 0o666)
        except FileNotFoundError:  # another run that failed has removed the folder
            path.parent.mkdir(parents=True, exist_ok=True)
        except PermissionError:
            if not path.exists():
                raise
            return os.open(path, os.O_RDONLY | _NO_FOLLOW)  # of another user; locking needs no write access
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise ParameterError(f"{path} is a symbolic link, not a lock file of manyhands. Remove it.") from None
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether the locked file is still the one under this name; the previous holder removes its own."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _release(lock: _Held) -> None:
    """Remove the lock file and release the lock."""
    if lock.descriptor is None:
        lock.path.unlink(missing_ok=True)
    elif os.name == "posix":
        with suppress(OSError):
            lock.path.unlink()  # while it is still locked, so that no other lock is removed
        os.close(lock.descriptor)
    else:
        os.close(lock.descriptor)
        with suppress(OSError):  # an open file cannot be removed there, so the lock of the next holder stays
            lock.path.unlink()


def _acquire_by_name(path: Path) -> _Held | None:
    """Lock by exclusive creation of a second file, for file systems without locks."""
    path.unlink(missing_ok=True)
    named = path.with_name(f"{path.name}.pid")
    for _ in range(2):
        try:
            descriptor = os.open(named, os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, 0o666)
        except FileExistsError:
            if _is_alive(named):
                return None
            named.unlink(missing_ok=True)
            continue
        _write_owner(descriptor)
        os.close(descriptor)
        return _Held(named, None)
    return None


def _is_alive(path: Path) -> bool:
    """Whether the process that a lock file names may still run."""
    owner = _owner(path)
    try:
        if not _SIGNALS_ASK or not owner or owner["host"] != platform.node():
            return time.time() - path.stat().st_mtime < _A_DAY
        os.kill(owner["pid"], 0)
    except (ProcessLookupError, FileNotFoundError):
        return False
    except (OSError, OverflowError):  # it is alive, and belongs to another user
        return True
    return True


def _write_owner(descriptor: int) -> None:
    """Write the owner into the lock file, for error messages; a lock of the operating system does not depend on it."""
    owner = {"pid": os.getpid(), "host": platform.node(), "start": time.strftime("%Y-%m-%d %H:%M:%S")}
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, json.dumps(owner).encode())


def _owner(path: Path) -> dict[str, Any]:
    """Process, host and start time in a lock file; empty where it cannot be read."""
    try:
        with path.open("rb") as file:
            parsed = json.loads(file.read(1000))
        return {"pid": int(parsed["pid"]), "host": str(parsed["host"]), "start": str(parsed["start"])}
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def _describe(path: Path) -> str:
    """The owner of a lock, for error messages."""
    owner = _owner(path) or _owner(path.with_name(f"{path.name}.pid"))
    return " (process {pid} on {host}, since {start})".format(**owner) if owner else ""


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        """Lock an open file; False where another process has locked it."""
        os.lseek(descriptor, 1 << 40, os.SEEK_SET)  # beyond the content, because locked bytes cannot be read there
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return False
        return True


# ----------------------------------------------------------------------------------------------------
# The place of a run's files, locked from the beginning of the run to its end.

_FOLDER_KEY = "manyhands"  # key of the lock and the temporary files of a set; a single file uses its own name
_LONGEST_KEY = 100  # bytes; a longer file name is replaced by its checksum in the name of the lock
_PATIENCE = 10.0  # seconds to wait for another run; writing finished files takes less


@dataclass(frozen=True)
class Output:
    """A folder, or one file in it, that this run alone may write; created by `claim`."""

    folder: Path
    names: Collection[str]  # the files that will be written
    force: bool  # whether existing files may be replaced
    manifest: bool  # whether a manifest is written
    key: str  # key of the lock and the temporary files

    @contextmanager
    def stage(self) -> Iterator[StagedFiles]:
        """Context manager for files that are too large for memory, which `write` moves into place with the others."""
        staged = StagedFiles(self.folder, self.key)
        try:
            yield staged
        except BaseException:
            if all((staged.path / name).exists() for name in staged.digests):  # otherwise the next run completes it
                shutil.rmtree(staged.path, ignore_errors=True)
            raise
        shutil.rmtree(staged.path, ignore_errors=True)

    def write(self, files: Mapping[str, bytes], staged: StagedFiles | None = None) -> list[str]:
        """Write all files together, the manifest last."""
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


__all__ = [
    "MANIFEST",
    "Output",
    "StagedFile",
    "StagedFiles",
    "claim",
    "refuse_present",
    "refuse_unwritable",
    "verify_folder",
    "write_files",
]
