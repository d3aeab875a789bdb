"""From the driver to the executors: functions that run there, their arguments, files that both reach, and errors."""

from __future__ import annotations

import json
import os
import pickle
import re
import zlib
from collections.abc import Callable
from functools import cache, lru_cache, wraps
from hashlib import blake2b
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from manyhands import __version__
from manyhands.exceptions import AnnotationError, ManyhandsError
from manyhands.spark import package_sources
from manyhands.spark.package_sources import call_by_name

# ----------------------------------------------------------------------------------------------------
# Functions for Spark that run tasks of the package on executors, whether or not the package is installed there.
#
# Spark sends functions of importable modules by name. `register` tells it to send those of `package_sources` by value;
# with them go the sources of the package (some 200 kB), which an executor without a package of the same version uses.

MAX_CLOSURE = 64_000_000  # bytes that go with each task; larger arguments go by file
BY_VALUE, BY_FILE = b"V", b"F"  # first byte of packed arguments

# What tasks import: base modules (all files at the top) and these packages.
_PACKAGES = ("_core", "aggregation", "em", "sharded", "spark")


@cache
def archive() -> bytes:
    """Sources of the modules that tasks import, compressed."""
    top = Path(package_sources.__file__).parents[1]
    files = [path for path in top.glob("*.py") if path.name != "__main__.py"]
    for package in _PACKAGES:
        files += (top / package).rglob("*.py")
    sources = {}
    for path in sorted(files):
        parts = ["manyhands", *path.relative_to(top).with_suffix("").parts]
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        sources[name] = (path.read_text(encoding="utf-8"), is_package)
    return zlib.compress(json.dumps(sources).encode(), 9)


@cache
def register() -> None:
    """Tell Spark to send `package_sources` by value."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(package_sources)


def remote_function(name: str, arguments: bytes) -> Callable[[Any], Any]:
    """A function for `mapInArrow` or `applyInArrow` that calls one of `executors` there."""
    register()
    version, sources = __version__, archive()

    def call(data: Any) -> Any:
        return call_by_name(version, sources, name, data, arguments)

    call.__annotations__ = {}  # Spark reads annotations to guess what kind of function it is
    return call


def pack(arguments: tuple[Any, ...], folder: str, limit: int = MAX_CLOSURE) -> bytes:
    """Arguments of a remote function: as bytes, or as the path of a file where they are large."""
    data = pickle.dumps(arguments, protocol=5)
    if len(data) <= limit:
        return BY_VALUE + data
    path = f"{folder}/tasks/{blake2b(data, digest_size=12).hexdigest()}"
    write_bytes(path, data)
    return BY_FILE + path.encode()


def unpack(arguments: bytes) -> tuple[Any, ...]:
    """Arguments that the driver packed."""
    if arguments[:1] == BY_FILE:
        return _from_file(arguments[1:].decode())
    return pickle.loads(memoryview(arguments)[1:])


@lru_cache(maxsize=2)
def _from_file(path: str) -> tuple[Any, ...]:
    """Arguments in a file; the shards of one worker process read it once."""
    return pickle.loads(read_bytes(path))


# ----------------------------------------------------------------------------------------------------
# Files of a checkpoint that both the driver and the executors reach: local or mounted paths, or object stores.

_LOCAL = "file:"
_NOT_REACHABLE = (
    "The file {path} cannot be {done} from Python ({why}). Tables beyond 64 MB go by file: choose a checkpointDir that "
    "driver and executors reach, such as a mounted path or a store for which PyArrow has a file system (s3, gs, hdfs, "
    "abfs), with its credentials."
)


def local_path(path: str) -> Path | None:
    """The path of a local or mounted file or folder, None for an address of a store.

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
    """
    local, above = local_path(path), local_path(root)
    if local is None or above is None:
        return False
    return not local.exists() and (root.startswith(_LOCAL) or above.exists())


def write_bytes(path: str, data: bytes) -> None:
    """Write a file whole or not at all."""
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
    """The content of a file."""
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

    system_and_path: tuple[Any, str] = fs.FileSystem.from_uri(path.replace("s3a://", "s3://"))
    return system_and_path


# ----------------------------------------------------------------------------------------------------
# Errors of executors as the sentences that were raised there: an engine wraps them into pages of stack traces.

P = ParamSpec("P")
R = TypeVar("R")
_RAISED = re.compile(r"manyhands\.exceptions\.(\w+): (.+)")


def raised_clearly(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function raise the errors of tasks as they were raised on the executor, without the engine's traces."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except ManyhandsError:
            raise
        except Exception as error:
            match = _RAISED.search(str(error))
            if match is None:
                raise
            kind = AnnotationError if match[1] == "AnnotationError" else ManyhandsError
            raise kind(match[2].strip()) from error

    return run
