"""The part of the package that tasks need, as source text: executors without the package import it from memory.

The functions below are sent to executors by value (`remote.register`), so this module imports the standard library
alone, and nothing in it may refer to the package.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import zlib
from importlib import import_module
from typing import Any


class SourceFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports modules from source text in memory."""

    def __init__(self, digest: int, sources: dict[str, Any]) -> None:
        self.manyhands_sources = digest
        self.sources = sources

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """The specification of a module, None for modules that are not in memory."""
        source = self.sources.get(fullname)
        if source is None:
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=source[1])

    def exec_module(self, module: Any) -> None:
        """Run the source text of a module."""
        name = module.__name__
        exec(compile(self.sources[name][0], f"<manyhands sources>/{name}", "exec"), vars(module))


def installed_version() -> str | None:
    """Version of the package on this machine, None where there is none."""
    if os.environ.get("MANYHANDS_SPARK_SOURCES"):
        return None
    try:
        return str(import_module("manyhands").__version__)
    except ImportError:
        return None


def ensure_package(version: str, archive: bytes) -> None:
    """Make the package importable: the installed one if its version is the wanted one, otherwise the given sources."""
    digest = zlib.crc32(archive)
    if any(getattr(finder, "manyhands_sources", None) == digest for finder in sys.meta_path):
        return
    if installed_version() == version:
        return
    for name in [name for name in sys.modules if name.partition(".")[0] == "manyhands"]:
        del sys.modules[name]
    sys.meta_path.insert(0, SourceFinder(digest, json.loads(zlib.decompress(archive))))


def call_by_name(version: str, archive: bytes, name: str, data: Any, arguments: bytes) -> Any:
    """Call a function of `manyhands.spark.executors`."""
    ensure_package(version, archive)
    tasks = import_module("manyhands.spark.executors")
    return getattr(tasks, name)(data, *tasks.unpack(arguments))
