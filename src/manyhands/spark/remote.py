"""Functions for Spark that run tasks of the package on executors, whether or not the package is installed there.

Spark sends functions of importable modules by name. `register` tells it to send those of `package_sources` by value;
with them go the sources of the package (some 200 kB), which an executor without a package of the same version uses.
"""

from __future__ import annotations

import json
import pickle
import zlib
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from manyhands import __version__
from manyhands.spark import package_sources
from manyhands.spark.package_sources import call_by_name
from manyhands.spark.shared_files import write_bytes

BY_VALUE, BY_FILE = b"V", b"F"
MAX_CLOSURE = 64_000_000  # bytes

# What tasks import: base modules (all files at the top) and these packages.
_PACKAGES = ("aggregation", "em", "noise", "persistence", "sharded", "spark", "validation", "writing")


@cache
def archive() -> bytes:
    """Sources of the modules that tasks import, compressed.

    Returns
    -------
    bytes
    """
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
    """A function for `mapInArrow` or `applyInArrow` that calls one of `executor_tasks` on the executor.

    Parameters
    ----------
    name : str
        Name of the function in `executor_tasks`.
    arguments : bytes
        Its arguments after the data, packed.

    Returns
    -------
    callable
        Takes what the engine passes in: an iterator of record batches, or a table.
    """
    register()
    version, sources = __version__, archive()

    def call(data: Any) -> Any:
        return call_by_name(version, sources, name, data, arguments)

    call.__annotations__ = {}  # Spark reads annotations to guess what kind of function it is
    return call


def pack(arguments: tuple[Any, ...], folder: str, limit: int = MAX_CLOSURE) -> bytes:
    """Arguments of a remote function: as bytes, or as the path of a file where they are large.

    Parameters
    ----------
    arguments : tuple
        The arguments; they must be picklable.
    folder : str
        Folder of the checkpoint, for the file.
    limit : int, default=64_000_000
        Bytes that may be sent with a plan; engines refuse or stall on much larger ones.

    Returns
    -------
    bytes
    """
    data = pickle.dumps(arguments, protocol=5)
    if len(data) <= limit:
        return BY_VALUE + data
    path = f"{folder}/tasks/{blake2b(data, digest_size=12).hexdigest()}"
    write_bytes(path, data)
    return BY_FILE + path.encode()
