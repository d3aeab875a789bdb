"""Loading of the compiled C modules, where they were built and are wanted."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from typing import Any

from manyhands.exceptions import ParameterError


def load(name: str) -> Any:
    """Import a C module of the package.

    Parameters
    ----------
    name : str
        Name of the module, such as "_fused".

    Returns
    -------
    module or None
        None without a compiler at install time, or with the environment variable MANYHANDS_PLAIN set. Where
        MANYHANDS_SIMD names an instruction set, a module that has several uses that one.

    Raises
    ------
    ParameterError
        Where MANYHANDS_SIMD names an instruction set that this CPU or build does not have.
    """
    if os.environ.get("MANYHANDS_PLAIN"):
        return None
    module = None
    with suppress(ImportError):
        module = import_module(f"manyhands.{name}")
    wanted = os.environ.get("MANYHANDS_SIMD", "")
    if module is not None and wanted and hasattr(module, "instruction_sets"):
        _use(module, wanted)
    return module


def _use(module: Any, wanted: str) -> None:
    """Select the instruction set of a module, or raise an error that lists those available."""
    available = module.instruction_sets()
    if wanted not in available:
        raise ParameterError(
            f"MANYHANDS_SIMD is {wanted!r}, but this CPU and build have {', '.join(available)}. "
            f"Set it to one of these, or unset it."
        )
    module.use(wanted)
