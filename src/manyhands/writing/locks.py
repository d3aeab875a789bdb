"""One writer at a time.

The lock is the system's, on a small file: it ends with the process that holds it, however that ends, so a file that a
killed run left locks nobody out. Where a file system has no locks, the file's existence is the lock, and it counts as
abandoned once the process that it names is gone.
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
_TRIES = 100  # at a lock whose holders keep removing it, or its folder
_A_DAY = 86400  # seconds; of a process that cannot be asked for, nothing else tells that it ended
_SIGNALS_ASK = os.name == "posix"  # elsewhere, signal 0 may end the process that is asked for


class _Held(NamedTuple):
    path: Path
    descriptor: int | None  # None: the file's existence is the lock


@contextmanager
def held(path: Path, what: Any, wait: float = 0.0) -> Iterator[None]:
    """Hold the lock file `path` alone; its folder is made. Another holder gets `wait` seconds to finish.

    Parameters
    ----------
    path : Path
        The lock file, which is removed in the end.
    what : Any
        What is written under the lock, for the sentence that refuses.
    wait : float, default=0.0
        Seconds until it refuses.
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
    """The lock, or None where somebody else has it."""
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
    """The lock file, never through a symbolic link; made where it is not there."""
    for _ in range(_TRIES):
        try:
            if path.is_symlink():  # where the system cannot refuse to follow it
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
            return os.open(path, os.O_RDWR | os.O_CREAT | _NO_FOLLOW, 0o666)
        except FileNotFoundError:  # whoever made the folder for a run that failed has removed it
            path.parent.mkdir(parents=True, exist_ok=True)
        except PermissionError:
            if not path.exists():
                raise
            return os.open(path, os.O_RDONLY | _NO_FOLLOW)  # somebody else's; locking needs no more
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise ParameterError(f"{path} is a symbolic link, and no lock file of manyhands. Remove it.") from None
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether the locked file is the one under this name: who held the lock before has removed theirs."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _release(lock: _Held) -> None:
    if lock.descriptor is None:
        lock.path.unlink(missing_ok=True)
    elif os.name == "posix":
        with suppress(OSError):
            lock.path.unlink()  # while it is locked, so that nobody's lock is removed but ours
        os.close(lock.descriptor)
    else:
        os.close(lock.descriptor)
        with suppress(OSError):  # an open file cannot be removed there, so the next holder's stays
            lock.path.unlink()


def _acquire_by_name(path: Path) -> _Held | None:
    """Exclusive creation of a second file, for file systems without locks."""
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
    except (OSError, OverflowError):  # it lives, and is somebody else's
        return True
    return True


def _write_owner(descriptor: int) -> None:
    """Who holds the lock, for a sentence to whoever does not get it; nothing depends on it under a system's lock."""
    owner = {"pid": os.getpid(), "host": platform.node(), "start": time.strftime("%Y-%m-%d %H:%M:%S")}
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, json.dumps(owner).encode())


def _owner(path: Path) -> dict[str, Any]:
    try:
        parsed = json.loads(path.read_bytes()[:1000])
        return {"pid": int(parsed["pid"]), "host": str(parsed["host"]), "start": str(parsed["start"])}
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def _describe(path: Path) -> str:
    owner = _owner(path) or _owner(path.with_name(f"{path.name}.pid"))
    return " (process {pid} on {host}, since {start})".format(**owner) if owner else ""


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        os.lseek(descriptor, 1 << 40, os.SEEK_SET)  # beyond what is written: there, a locked byte cannot be read
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
