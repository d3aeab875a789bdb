"""Findings about installed packages, from their metadata; nothing large is imported."""

from __future__ import annotations

import platform
import re
from importlib import import_module, metadata

from manyhands import __version__
from manyhands.exceptions import MissingExtraError
from manyhands.workflows.finding import Finding

_PACKAGE = "manyhands"
MAIN_LIBRARIES = ("numpy", "scipy", "scikit-learn", "polars")
EXTRAS = {"torch": ("learn", "network methods"), "matplotlib": ("plot", "figures")}  # library -> (extra, needed for)
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)[^;>]*(?:>=\s*([0-9][0-9.]*))?")


def check_package() -> Finding:
    """Examine the version of manyhands, and whether it is installed or only found on the path.

    Returns
    -------
    Finding
        With the key "manyhands".
    """
    installed = installed_version(_PACKAGE)
    if installed is None:
        found = f"{__version__}, run from its source and not installed, so minimum versions are unknown"
        return Finding("manyhands", "note", found, "Install it: pip install . in its folder.")
    if installed != __version__:
        found = f"{__version__}, but the installed metadata is of {installed}"
        return Finding("manyhands", "note", found, "Install it again: pip install . in its folder.")
    return Finding("manyhands", "ok", __version__)


def check_python() -> Finding:
    """Compare the version of Python with the minimum in the metadata.

    Returns
    -------
    Finding
        With the key "python".
    """
    version = platform.python_version()
    found = f"{platform.python_implementation()} {version}"
    try:
        required = metadata.metadata(_PACKAGE)["Requires-Python"] or ""
    except metadata.PackageNotFoundError:
        required = ""
    minimum = required.partition(">=")[2]
    if minimum and is_older(version, minimum):
        return Finding("python", "problem", f"{found}, but {minimum} is required", f"Install Python {minimum}.")
    return Finding("python", "ok", found + (f" (minimum {minimum})" if minimum else ""))


def check_libraries() -> list[Finding]:
    """Compare the versions of all required libraries with the minimum versions.

    Returns
    -------
    list of Finding
        One for each of `MAIN_LIBRARIES`, and one with the key "other-libraries".
    """
    required = minimum_versions()
    findings = [_check_library(name, required.get(name, "")) for name in MAIN_LIBRARIES]
    others = [_check_library(name, required[name]) for name in required if name not in MAIN_LIBRARIES]
    bad = [finding for finding in others if finding.status != "ok"]
    if bad:
        found = "; ".join(f"{finding.key} {finding.found}" for finding in bad)
        return [*findings, Finding("other-libraries", "problem", found, " ".join(finding.advice for finding in bad))]
    if not others:
        return [*findings, Finding("other-libraries", "note", "unknown, because manyhands is not installed")]
    found = ", ".join(f"{finding.key} {finding.found.partition(' ')[0]}" for finding in others)
    return [*findings, Finding("other-libraries", "ok", found)]


def check_extras() -> list[Finding]:
    """Examine which optional libraries are installed.

    Returns
    -------
    list of Finding
        One for each of `EXTRAS`.
    """
    findings = []
    for name, (extra, purpose) in EXTRAS.items():
        if installed_version(name) is None:
            advice = f"For {purpose}: pip install 'manyhands[{extra}]'"
            findings.append(Finding(name, "note", f"not installed; only {purpose} need it", advice))
        else:
            findings.append(_check_library(name, minimum_versions(extra).get(name, "")))
    return findings


def check_tables() -> Finding:
    """Load polars, which refuses processors without the instructions that its build needs.

    Returns
    -------
    Finding
        With the key "tables".
    """
    try:
        import_module("manyhands.io.frames_library").load_polars()
    except MissingExtraError as error:
        found, _, advice = str(error).partition(". ")
        return Finding("tables", "problem", found, advice)
    except ImportError as error:
        return Finding("tables", "problem", f"tables cannot be read or written: {error}", "Install manyhands again.")
    return Finding("tables", "ok", "polars runs on this processor")


def minimum_versions(extra: str = "") -> dict[str, str]:
    """Return the libraries that the installed metadata requires.

    Parameters
    ----------
    extra : str, default=""
        Name of an extra; "" for the libraries that are always required.

    Returns
    -------
    dict of str to str
        Library -> minimum version, "" if there is none. Empty if manyhands is not installed.
    """
    try:
        requirements = metadata.requires(_PACKAGE) or []
    except metadata.PackageNotFoundError:
        return {}
    found = {}
    for line in requirements:
        marker = re.search(r"extra\s*==\s*['\"]([^'\"]+)['\"]", line)
        match = _REQUIREMENT.match(line)
        if match and (marker[1] if marker else "") == extra:
            found[match[1].lower()] = match[2] or ""
    return found


def installed_version(name: str) -> str | None:
    """Return the version of an installed package from its metadata, without importing it.

    Parameters
    ----------
    name : str
        Name of the package.

    Returns
    -------
    str or None
        None if it is not installed.
    """
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def is_older(version: str, minimum: str) -> bool:
    """Whether a version is less than a minimum, by the numbers at its beginning.

    Parameters
    ----------
    version : str
        The version, such as "2.4.1+cpu".
    minimum : str
        The minimum, such as "2.10".

    Returns
    -------
    bool
        True if it is older.

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
