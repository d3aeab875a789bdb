"""Public names of a package that are loaded on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from manyhands._core.spelling import did_you_mean


def exported_on_first_use(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package; `homes` maps a public name to its module.

    A name whose home is the package itself is a module of it. Where the library of an extra is missing, the error names
    the extra.
    """

    def load(name: str) -> Any:
        if name not in homes:
            hint = "" if name.startswith("_") else did_you_mean(name, homes)
            raise AttributeError(f"module {package!r} has no attribute {name!r}.{hint}")
        if homes[name] == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module("manyhands.registry").load_module(homes[name]), name)
        vars(sys.modules[package])[name] = value  # found without this function from now on
        return value

    return load, lambda: sorted(homes)
