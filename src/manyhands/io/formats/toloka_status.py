"""Status of an assignment in Toloka. The same status is APPROVED in the TSV and ACCEPTED in the API."""

from __future__ import annotations

from collections.abc import Iterable

from manyhands.io.messages import listed

_COUNTED = ("APPROVED", "ACCEPTED", "SUBMITTED")
# An active assignment is not finished; an expired one was never submitted.
_REASONS = {"REJECTED": "rejected", "SKIPPED": "skipped", "EXPIRED": "skipped", "ACTIVE": "draft"}


def reason_of(status: str) -> str | None:
    """Return why an assignment of this status does not count.

    Parameters
    ----------
    status : str
        Status in the file.

    Returns
    -------
    str or None
        The reason; None if it counts.
    """
    return _REASONS.get(status.strip().upper())


def status_notes(statuses: Iterable[str]) -> dict[str, str]:
    """Return a note on every unknown status.

    Parameters
    ----------
    statuses : iterable of str
        All statuses of a file.

    Returns
    -------
    dict of str to str
        The note; empty if all are known.
    """
    unknown = [text for text in dict.fromkeys(statuses) if text.strip().upper() not in (*_COUNTED, *_REASONS)]
    message = f"The status {listed(unknown)} is unknown; answers with it were counted."
    return {"unknown_status": message} if unknown else {}
