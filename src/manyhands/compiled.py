"""The C modules, where they were built and are wanted."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from typing import Any


def load(name: str) -> Any:
    """The C module of this name; None without a compiler at install time, or with MANYHANDS_PLAIN set."""
    if not os.environ.get("MANYHANDS_PLAIN"):
        with suppress(ImportError):
            return import_module(f"manyhands.{name}")
    return None
