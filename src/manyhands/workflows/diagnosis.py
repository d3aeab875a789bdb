"""`diagnose`: what is installed, compiled and found in this environment, and what to do about what is missing.

Nothing large is imported with this module, so that it also runs where a required library is missing or broken. The
examinations are in library_checks, runtime_checks, memory_check and folder_checks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from manyhands.workflows.finding import Finding, Status
from manyhands.workflows.folder_checks import check_cache, check_data
from manyhands.workflows.library_checks import check_extras, check_libraries, check_package, check_python, check_tables
from manyhands.workflows.memory_check import check_memory
from manyhands.workflows.runtime_checks import (
    check_compiled,
    check_streams,
    check_system,
    check_threads,
    check_variables,
)

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
    "memory": check_memory,
    "streams": check_streams,
}


@dataclass(frozen=True)
class Diagnosis:
    """Result of `diagnose`.

    Attributes
    ----------
    findings : tuple of Finding
        Always in the same order.
    """

    findings: tuple[Finding, ...]

    @property
    def status(self) -> Status:
        """The most serious status of all findings."""
        found = {finding.status for finding in self.findings}
        return "problem" if "problem" in found else "note" if "note" in found else "ok"

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


def diagnose() -> Diagnosis:
    """Examine the environment: versions, compiled modules, optional libraries, folders, memory, streams.

    Never raises an error: a finding that cannot be determined says so. torch, scikit-learn and matplotlib are not
    imported. Neither names of hosts nor of users are part of the result; the home folder is shown as ``~``.

    Returns
    -------
    Diagnosis
        All findings, with what to do.

    Examples
    --------
    >>> import manyhands as mh
    >>> diagnosis = mh.workflows.diagnose()
    >>> [finding.key for finding in diagnosis.findings][:3]
    ['manyhands', 'python', 'system']
    """
    findings: list[Finding] = []
    for key, check in _CHECKS.items():
        found = _guarded(key, check)
        findings += [found] if isinstance(found, Finding) else found
    return Diagnosis(tuple(findings))


def _guarded(key: str, check: Callable[[], Finding | list[Finding]]) -> Finding | list[Finding]:
    """Run one check; an error in it becomes a finding."""
    try:
        return check()
    except Exception as error:  # any error: a broken environment is what this is for
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        return Finding(key, "note", f"could not be determined ({reason})", "If commands fail, see to the rest first.")
