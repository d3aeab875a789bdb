"""`doctor`: what is installed, compiled and found in this environment, and what to do about what is missing.

Nothing large is imported with this module, so that it also runs where a required library is missing or broken.
"""

from __future__ import annotations

import codecs
import os
import platform
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Literal

from manyhands import __version__
from manyhands._core.system import available_bytes, limit_bytes, physical_bytes
from manyhands.exceptions import DownloadError, MissingExtraError, ParameterError
from manyhands.registry import install_command

# ----------------------------------------------------------------------------------------------------
# `Finding`: one line of a diagnosis; and how folders are shown in it.

Status = Literal["ok", "note", "problem"]


@dataclass(frozen=True)
class Finding:
    """One result of `doctor`.

    Attributes
    ----------
    key : str
        What was examined, such as "python"; keys do not change between versions.
    status : {"ok", "note", "problem"}
        "note" if something optional is missing, or something is slower or different than usual; "problem" if commands
        fail because of it.
    found : str
        What was found.
    advice : str
        What to do; empty if there is nothing to do.
    """

    key: str
    status: Status
    found: str
    advice: str = ""


def shown_path(path: str | Path) -> str:
    """Return a path in which the home folder is written as ``~``, so that a report does not contain a user's name."""
    try:
        return str(Path("~") / Path(path).relative_to(Path.home()))
    except (RuntimeError, ValueError):  # no home folder; not below it
        return str(path)


# ----------------------------------------------------------------------------------------------------
# Findings about folders: real data sets in MANYHANDS_DATA, and the cache of downloads.

_DATA, _CACHE = "MANYHANDS_DATA", "MANYHANDS_CACHE"


def check_data() -> Finding:
    """Examine the folder in MANYHANDS_DATA and count the data sets of the catalogue in it."""
    given = os.environ.get(_DATA)
    if not given:
        advice = f"To use datasets.load, let {_DATA} name the folder of the data sets."
        return Finding("data", "note", f"{_DATA} is not set; only real data sets need it", advice)
    folder = Path(given)
    if not folder.is_dir():
        state = f"{_DATA} is {shown_path(folder)}, which is not a folder"
        return Finding("data", "problem", state, f"Let {_DATA} name the folder of the data sets, or unset it.")
    names = import_module("manyhands.datasets.local").names()
    n_present = sum((folder / name).is_dir() for name in names)
    state = f"{n_present} of {len(names)} known data sets in {shown_path(folder)} ({_DATA})"
    if not n_present:
        advice = f"Let {_DATA} name the folder that has a folder for each data set, such as {names[0]}, or unset it."
        return Finding("data", "problem", state, advice)
    return Finding("data", "ok", state)


def check_cache() -> Finding:
    """Examine whether downloads can be stored; no folder is created for it."""
    advice = f"To download data sets, let {_CACHE} name a folder that can be written to."
    status: Status = "problem" if os.environ.get(_CACHE) else "note"
    try:
        folder = import_module("manyhands.datasets.remote").cache_folder()
    except DownloadError:
        return Finding("cache", "note", "there is no home folder to store downloads in", advice)
    try:
        _try_to_write(folder)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        state = f"{shown_path(folder)} cannot be written to ({reason}); only downloads need it"
        return Finding("cache", status, state, advice)
    return Finding("cache", "ok", f"downloads are stored in {shown_path(folder)}, which can be written to")


def _try_to_write(folder: Path) -> None:
    """Create a temporary file in a folder, or in the nearest one around it that exists; it is removed at once."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"x")


# ----------------------------------------------------------------------------------------------------
# Findings about installed packages, from their metadata; nothing large is imported.

_PACKAGE = "manyhands"
MAIN_LIBRARIES = ("numpy", "scipy", "scikit-learn", "polars")
EXTRAS = {"torch": ("learn", "network methods"), "matplotlib": ("plot", "figures")}  # library -> (extra, needed for)
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)[^;>]*(?:>=\s*([0-9][0-9.]*))?")


def check_package() -> Finding:
    """Examine the version of manyhands, and whether it is installed or only found on the path."""
    installed = installed_version(_PACKAGE)
    if installed is None:
        state = f"{__version__}, run from its source and not installed, so minimum versions are unknown"
        return Finding("manyhands", "note", state, "Install it: pip install . in its folder.")
    if installed != __version__:
        state = f"{__version__}, but the installed metadata is of {installed}"
        return Finding("manyhands", "note", state, "Install it again: pip install . in its folder.")
    return Finding("manyhands", "ok", __version__)


def check_python() -> Finding:
    """Compare the version of Python with the minimum in the metadata."""
    version = platform.python_version()
    state = f"{platform.python_implementation()} {version}"
    try:
        required = metadata.metadata(_PACKAGE)["Requires-Python"] or ""
    except metadata.PackageNotFoundError:
        required = ""
    minimum = required.partition(">=")[2]
    if minimum and is_older(version, minimum):
        return Finding("python", "problem", f"{state}, but {minimum} is required", f"Install Python {minimum}.")
    return Finding("python", "ok", state + (f" (minimum {minimum})" if minimum else ""))


def check_libraries() -> list[Finding]:
    """Compare the versions of all required libraries with the minimum versions."""
    required = minimum_versions()
    findings = [_check_library(name, required.get(name, "")) for name in MAIN_LIBRARIES]
    others = [_check_library(name, required[name]) for name in required if name not in MAIN_LIBRARIES]
    bad = [finding for finding in others if finding.status != "ok"]
    if bad:
        state = "; ".join(f"{finding.key} {finding.found}" for finding in bad)
        return [*findings, Finding("other-libraries", "problem", state, " ".join(finding.advice for finding in bad))]
    if not others:
        return [*findings, Finding("other-libraries", "note", "unknown, because manyhands is not installed")]
    state = ", ".join(f"{finding.key} {finding.found.partition(' ')[0]}" for finding in others)
    return [*findings, Finding("other-libraries", "ok", state)]


def check_extras() -> list[Finding]:
    """Examine which optional libraries are installed."""
    findings = []
    for name, (extra, purpose) in EXTRAS.items():
        if installed_version(name) is None:
            advice = f"For {purpose}: {install_command(extra)}"
            findings.append(Finding(name, "note", f"not installed; only {purpose} need it", advice))
        else:
            findings.append(_check_library(name, minimum_versions(extra).get(name, "")))
    return findings


def check_tables() -> Finding:
    """Load polars, which refuses processors without the instructions that its build needs."""
    try:
        import_module("manyhands.frames").load_polars()
    except MissingExtraError as error:
        state, _, advice = str(error).partition(". ")
        return Finding("tables", "problem", state, advice)
    except ImportError as error:
        return Finding("tables", "problem", f"tables cannot be read or written: {error}", "Install manyhands again.")
    return Finding("tables", "ok", "polars runs on this processor")


def minimum_versions(extra: str = "") -> dict[str, str]:
    """Return the libraries that the installed metadata requires."""
    try:
        requirements = metadata.requires(_PACKAGE) or []
    except metadata.PackageNotFoundError:
        return {}
    minimum: dict[str, str] = {}
    for line in requirements:
        marker = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", line)
        match = _REQUIREMENT.match(line)
        if match and (marker[1] if marker else "") == extra:
            minimum[match[1].lower()] = match[2] or ""
    return minimum


def installed_version(name: str) -> str | None:
    """Return the version of an installed package from its metadata, without importing it."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def is_older(version: str, minimum: str) -> bool:
    """Whether a version is less than a minimum, by the numbers at its beginning.

    Examples
    --------
    >>> is_older("2.4.1+cpu", "2.10"), is_older("2.0", "2.0.0")
    (True, False)
    """
    first, second = ([int(n) for n in re.findall(r"\d+", re.split(r"[^\d.]", text)[0])] for text in (version, minimum))
    length = max(len(first), len(second))
    return first + [0] * (length - len(first)) < second + [0] * (length - len(second))


def _check_library(name: str, minimum: str) -> Finding:
    """Return whether a library is installed and recent enough."""
    version = installed_version(name)
    command = f"pip install --upgrade '{name}{'>=' if minimum else ''}{minimum}'"
    if version is None:
        return Finding(name, "problem", "not installed", f"Install it: {command}")
    if minimum and is_older(version, minimum):
        return Finding(name, "problem", f"{version}, but {minimum} is required", f"Upgrade it: {command}")
    return Finding(name, "ok", version + (f" (minimum {minimum})" if minimum else ""))


# ----------------------------------------------------------------------------------------------------
# Findings about memory: what is available, and the limit of the container or process where it is known.

_LITTLE = 1 << 29  # bytes; a small job needs less, but not by much


def examine_memory() -> Finding:
    """Examine the available memory and its limit."""
    sizes = {"available": available_bytes(), "in the machine": physical_bytes(), "limit": limit_bytes()}
    numbers = {name: size for name, size in sizes.items() if size is not None}
    if not numbers:
        return Finding("memory", "note", "could not be determined on this system")
    state = ", ".join(f"{size / (1 << 30):.1f} GiB {name}" for name, size in numbers.items())
    if limit_bytes() is None:
        state += ", no limit known"
    if min(numbers.values()) < _LITTLE:
        return Finding("memory", "note", state, "Close other programs or raise the limit before large jobs.")
    return Finding("memory", "ok", state)


# ----------------------------------------------------------------------------------------------------
# Findings about the running process: system, compiled modules, threads, environment variables, standard streams.

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
    """Name the operating system and the kind of processor, without names of hosts or users."""
    release = re.match(r"\d+(\.\d+)?", platform.mac_ver()[0] or platform.release())
    parts = ("macOS" if sys.platform == "darwin" else platform.system(), release[0] if release else "")
    state = " ".join(part for part in (*parts, platform.machine()) if part)
    return Finding("system", "ok", state or sys.platform)


def check_compiled() -> Finding:
    """Examine whether the C modules were built and are used, and with which instruction set."""
    if os.environ.get("MANYHANDS_PLAIN"):
        state = f"switched off by MANYHANDS_PLAIN; {_SAME_RESULTS}"
        return Finding("compiled", "note", state, "Unset MANYHANDS_PLAIN (any value, also 0, switches them off).")
    try:
        modules = {name: import_module("manyhands._core.elementary").load(name) for name in _MODULES}
    except ParameterError as error:
        state, _, advice = str(error).partition(". ")
        return Finding("compiled", "problem", state, advice)
    missing = [name for name, module in modules.items() if module is None]
    if missing:
        state = f"the C modules {' and '.join(missing)} were not built; {_SAME_RESULTS}"
        return Finding("compiled", "note", state, "Install a C compiler (GCC or Clang) and install manyhands again.")
    return Finding("compiled", "ok", f"C modules built; instruction set {_instruction_set(modules['_fused'])}")


def _instruction_set(module: Any) -> str:
    """Return the instruction set in use, and the others that could be used."""
    available = list(module.instruction_sets()) if hasattr(module, "instruction_sets") else ["default"]
    used = os.environ.get("MANYHANDS_SIMD") or available[0]
    return f"{used} (available: {', '.join(available)})"


def check_threads() -> Finding:
    """Examine the number of threads, and whether MANYHANDS_THREADS is valid."""
    count = import_module("manyhands.em.kernels").thread_count()
    given = os.environ.get("MANYHANDS_THREADS", "")
    if not given:
        return Finding("threads", "ok", f"{count}, the number of cores that this process may use")
    if not (given.isdigit() and int(given) > 0):
        state = f"{count}; MANYHANDS_THREADS is {given!r}, which is not a positive whole number and is ignored"
        return Finding("threads", "note", state, "Set MANYHANDS_THREADS to a number such as 4, or unset it.")
    return Finding("threads", "ok", f"{count} (MANYHANDS_THREADS)")


def check_variables() -> Finding:
    """List the environment variables of manyhands that are set, and names that it does not know."""
    names = [name if name in _FOLDERS else f"{name}={os.environ[name]}" for name in VARIABLES if os.environ.get(name)]
    state = ", ".join(names) or "none of manyhands is set"
    unknown = sorted(name for name in os.environ if name.startswith("MANYHANDS_") and name not in VARIABLES)
    if unknown:
        advice = f"Check their spelling; there are {', '.join(VARIABLES)}."
        return Finding("variables", "note", f"{state}; without effect: {', '.join(unknown)}", advice)
    return Finding("variables", "ok", state)


def check_streams() -> Finding:
    """Examine the encodings of the standard streams."""
    streams = {"input": sys.stdin, "output": sys.stdout, "error": sys.stderr}
    encodings = {name: _encoding(stream) for name, stream in streams.items()}
    state = ", ".join(f"{name} {encoding}" for name, encoding in encodings.items())
    if set(encodings.values()) <= {"utf-8", "closed", "unknown"}:
        return Finding("streams", "ok", state)
    advice = "Characters outside this encoding are shown as escapes: set PYTHONUTF8=1; files are always UTF-8."
    return Finding("streams", "note", state, advice)


def _encoding(stream: Any) -> str:
    """Return the usual name of a stream's encoding."""
    if stream is None:
        return "closed"
    name = getattr(stream, "encoding", None)
    return codecs.lookup(name).name if name else "unknown"


_CHECKS: dict[str, Callable[[], Finding | list[Finding]]] = {  # key of the finding if the check itself fails -> check
    "manyhands": check_package,
    "python": check_python,
    "system": check_system,
    "compiled": check_compiled,
    "tables": check_tables,
    "libraries": check_libraries,
    "extras": check_extras,
    "data": check_data,
    "cache": check_cache,
    "threads": check_threads,
    "variables": check_variables,
    "memory": examine_memory,
    "streams": check_streams,
}


@dataclass(frozen=True)
class Diagnosis:
    """Result of `doctor`.

    Attributes
    ----------
    findings : tuple of Finding
        Always in the same order.
    """

    findings: tuple[Finding, ...]

    @property
    def status(self) -> Status:
        """The most serious status of all findings."""
        statuses = {finding.status for finding in self.findings}
        return "problem" if "problem" in statuses else "note" if "note" in statuses else "ok"

    def with_status(self, status: Status) -> list[Finding]:
        """Return the findings of one status.

        Parameters
        ----------
        status : {"ok", "note", "problem"}
            The status.

        Returns
        -------
        list of Finding
            Possibly empty.
        """
        return [finding for finding in self.findings if finding.status == status]

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as ``manyhands doctor --json`` prints it.

        Returns
        -------
        dict
            ``schema`` (1), ``status`` and ``findings``, a list of ``key``, ``status``, ``found`` and ``advice``.
        """
        return {"schema": 1, "status": self.status, "findings": [asdict(finding) for finding in self.findings]}


def doctor() -> Diagnosis:
    """Examine the environment: versions, compiled modules, optional libraries, folders, memory, streams.

    Never raises an error: a finding that cannot be determined says so. torch, scikit-learn and matplotlib are not
    imported. Neither names of hosts nor of users are part of the result; the home folder is shown as ``~``.

    Returns
    -------
    Diagnosis
        All findings, with what to do.

    Examples
    --------
    >>> [finding.key for finding in doctor().findings][:3]
    ['manyhands', 'python', 'system']
    """
    findings: list[Finding] = []
    for key, check in _CHECKS.items():
        outcome = _guarded(key, check)
        findings += [outcome] if isinstance(outcome, Finding) else outcome
    return Diagnosis(tuple(findings))


def _guarded(key: str, check: Callable[[], Finding | list[Finding]]) -> Finding | list[Finding]:
    """Run one check; an error in it becomes a finding."""
    try:
        return check()
    except Exception as error:  # any error: a broken environment is what this is for
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        return Finding(key, "note", f"could not be determined ({reason})", "If commands fail, see to the rest first.")
