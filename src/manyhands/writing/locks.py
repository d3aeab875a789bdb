"""File locks: one writer at a time.

The lock is that of the operating system, on a small file: it ends with the process that holds it, however that ends, so
a file left by a killed run locks no other run out. Where a file system has no locks, the existence of the file is the
lock, and it counts as abandoned once the process that it names has ended.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from manyhands.exceptions import OutputExistsError, ParameterError

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
    """Context manager that holds the lock file `path` exclusively; its folder is created.

    Parameters
    ----------
    path : Path
        The lock file, which is removed in the end.
    what : object
        What is written under the lock, for the error message.
    wait : float, default=0.0
        Seconds to wait for another holder.

    Raises
    ------
    OutputExistsError
        Where another process still holds the lock after that.
    """
    latest = time.monotonic() + wait
    while (lock := _acquire(path)) is None:
        if time.monotonic() >= latest:
            raise OutputExistsError(
                f"Another run is writing {what}{_describe(path)}. Wait for it to end, or give another place with -o."
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
        parsed = json.loads(path.read_bytes()[:1000])
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
