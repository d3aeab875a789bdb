"""Findings about the running process: system, compiled modules, threads, environment variables, standard streams."""

from __future__ import annotations

import codecs
import os
import platform
import re
import sys
from importlib import import_module
from typing import Any

from manyhands import compiled
from manyhands.exceptions import ParameterError
from manyhands.workflows.finding import Finding

_MODULES = ("_fused", "_columns")
VARIABLES = (  # all variables that the package reads
    "MANYHANDS_CACHE",
    "MANYHANDS_DATA",
    "MANYHANDS_PLAIN",
    "MANYHANDS_SIMD",
    "MANYHANDS_THREADS",
)
_FOLDERS = ("MANYHANDS_CACHE", "MANYHANDS_DATA")  # their values are in findings of their own
_SAME_RESULTS = "the slower NumPy path gives the same results"


def check_system() -> Finding:
    """Name the operating system and the kind of processor, without names of hosts or users.

    Returns
    -------
    Finding
        With the key "system".
    """
    release = re.match(r"\d+(\.\d+)?", platform.mac_ver()[0] or platform.release())
    parts = ("macOS" if sys.platform == "darwin" else platform.system(), release[0] if release else "")
    found = " ".join(part for part in (*parts, platform.machine()) if part)
    return Finding("system", "ok", found or sys.platform)


def check_compiled() -> Finding:
    """Examine whether the C modules were built and are used, and with which instruction set.

    Returns
    -------
    Finding
        With the key "compiled".
    """
    if os.environ.get("MANYHANDS_PLAIN"):
        found = f"switched off by MANYHANDS_PLAIN; {_SAME_RESULTS}"
        return Finding("compiled", "note", found, "Unset MANYHANDS_PLAIN (any value, also 0, switches them off).")
    try:
        modules = {name: compiled.load(name) for name in _MODULES}
    except ParameterError as error:
        found, _, advice = str(error).partition(". ")
        return Finding("compiled", "problem", found, advice)
    missing = [name for name, module in modules.items() if module is None]
    if missing:
        found = f"the C modules {' and '.join(missing)} were not built; {_SAME_RESULTS}"
        return Finding("compiled", "note", found, "Install a C compiler (GCC or Clang) and install manyhands again.")
    return Finding("compiled", "ok", f"C modules built; instruction set {_instruction_set(modules['_fused'])}")


def _instruction_set(module: Any) -> str:
    """Return the instruction set in use, and the others that could be used."""
    available = list(module.instruction_sets()) if hasattr(module, "instruction_sets") else ["default"]
    used = os.environ.get("MANYHANDS_SIMD") or available[0]
    return f"{used} (available: {', '.join(available)})"


def check_threads() -> Finding:
    """Examine the number of threads, and whether MANYHANDS_THREADS is valid.

    Returns
    -------
    Finding
        With the key "threads".
    """
    count = import_module("manyhands.em.threads").thread_count()
    given = os.environ.get("MANYHANDS_THREADS", "")
    if not given:
        return Finding("threads", "ok", f"{count}, the number of cores that this process may use")
    if not (given.isdigit() and int(given) > 0):
        found = f"{count}; MANYHANDS_THREADS is {given!r}, which is not a positive whole number and is ignored"
        return Finding("threads", "note", found, "Set MANYHANDS_THREADS to a number such as 4, or unset it.")
    return Finding("threads", "ok", f"{count} (MANYHANDS_THREADS)")


def check_variables() -> Finding:
    """List the environment variables of manyhands that are set, and names that it does not know.

    Returns
    -------
    Finding
        With the key "variables".
    """
    known = [name if name in _FOLDERS else f"{name}={os.environ[name]}" for name in VARIABLES if os.environ.get(name)]
    found = ", ".join(known) or "none of manyhands is set"
    unknown = sorted(name for name in os.environ if name.startswith("MANYHANDS_") and name not in VARIABLES)
    if unknown:
        advice = f"Check their spelling; there are {', '.join(VARIABLES)}."
        return Finding("variables", "note", f"{found}; without effect: {', '.join(unknown)}", advice)
    return Finding("variables", "ok", found)


def check_streams() -> Finding:
    """Examine the encodings of the standard streams.

    Returns
    -------
    Finding
        With the key "streams".
    """
    streams = {"input": sys.stdin, "output": sys.stdout, "error": sys.stderr}
    encodings = {name: _encoding(stream) for name, stream in streams.items()}
    found = ", ".join(f"{name} {encoding}" for name, encoding in encodings.items())
    if set(encodings.values()) <= {"utf-8", "closed", "unknown"}:
        return Finding("streams", "ok", found)
    advice = "Characters outside this encoding are shown as escapes: set PYTHONUTF8=1; files are always UTF-8."
    return Finding("streams", "note", found, advice)


def _encoding(stream: Any) -> str:
    """Return the usual name of a stream's encoding."""
    if stream is None:
        return "closed"
    name = getattr(stream, "encoding", None)
    return codecs.lookup(name).name if name else "unknown"
