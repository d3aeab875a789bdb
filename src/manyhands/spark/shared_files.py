"""Files of a checkpoint that both the driver and the executors reach: local or mounted paths, or object stores."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from manyhands.exceptions import ManyhandsError

_LOCAL = "file:"
_NOT_REACHABLE = (
    "The file {path} cannot be {done} from Python ({why}). Tables beyond 64 MB go by file: choose a checkpointDir that "
    "driver and executors reach, such as a mounted path or a store for which PyArrow has a file system (s3, gs, hdfs, "
    "abfs), with its credentials."
)


def local_path(path: str) -> Path | None:
    """The path of a local or mounted file or folder, None for an address of a store.

    Parameters
    ----------
    path : str
        Path or address.

    Returns
    -------
    Path or None

    Examples
    --------
    >>> local_path("file:/tmp/a").as_posix(), local_path("s3://bucket/a") is None
    ('/tmp/a', True)
    """
    if path.startswith(_LOCAL):
        rest = path.removeprefix(_LOCAL)
        return Path("/" + rest.lstrip("/"))
    if path.startswith("dbfs:/Volumes/"):
        return Path(path.removeprefix("dbfs:"))
    return Path(path) if ":" not in path.partition("/")[0] or os.name == "nt" else None


def is_absent(path: str, root: str) -> bool:
    """Whether a file or folder certainly does not exist, so that the engine need not be asked and does not complain.

    A path without a scheme may be one of a cluster's store; it is taken for a local one where its root is there.

    Parameters
    ----------
    path : str
        Path or address.
    root : str
        Folder above it.

    Returns
    -------
    bool
    """
    local, above = local_path(path), local_path(root)
    if local is None or above is None:
        return False
    return not local.exists() and (root.startswith(_LOCAL) or above.exists())


def write_bytes(path: str, data: bytes) -> None:
    """Write a file whole or not at all.

    Parameters
    ----------
    path : str
        Path or address.
    data : bytes
        Its content.

    Raises
    ------
    ManyhandsError
        Where it cannot be written from Python.
    """
    local = local_path(path)
    try:
        if local is None:
            system, name = _file_system(path)
            with system.open_output_stream(name) as file:  # appears when it is closed
                file.write(data)
            return
        local.parent.mkdir(parents=True, exist_ok=True)
        temporary = local.with_name(f"{local.name}.{os.getpid()}.part")
        temporary.write_bytes(data)
        temporary.replace(local)
    except (OSError, ValueError) as error:
        raise ManyhandsError(_NOT_REACHABLE.format(path=path, done="written", why=error)) from None


def read_bytes(path: str) -> bytes:
    """The content of a file.

    Parameters
    ----------
    path : str
        Path or address.

    Returns
    -------
    bytes

    Raises
    ------
    ManyhandsError
        Where it cannot be read from Python.
    """
    local = local_path(path)
    try:
        if local is not None:
            return local.read_bytes()
        system, name = _file_system(path)
        with system.open_input_stream(name) as file:
            return bytes(file.read())
    except (OSError, ValueError) as error:
        raise ManyhandsError(_NOT_REACHABLE.format(path=path, done="read", why=error)) from None


def _file_system(path: str) -> tuple[Any, str]:
    """PyArrow's file system for an address, and the path in it; ValueError where it has none."""
    from pyarrow import fs

    found: tuple[Any, str] = fs.FileSystem.from_uri(path.replace("s3a://", "s3://"))
    return found
