"""What became of an assignment in Toloka. The same state is APPROVED in the TSV and ACCEPTED in the API."""

from __future__ import annotations

from collections.abc import Iterable

from manyhands.io.messages import listed

_COUNTED = ("APPROVED", "ACCEPTED", "SUBMITTED")
# An active assignment is still being worked on; one that has expired was left without being submitted.
_REASONS = {"REJECTED": "rejected", "SKIPPED": "skipped", "EXPIRED": "skipped", "ACTIVE": "draft"}


def reason_of(status: str) -> str | None:
    """Why an assignment of this status does not count, or None where it does."""
    return _REASONS.get(status.strip().upper())


def status_notes(statuses: Iterable[str]) -> dict[str, str]:
    """A note on every status that is none of Toloka's."""
    unknown = [text for text in dict.fromkeys(statuses) if text.strip().upper() not in (*_COUNTED, *_REASONS)]
    message = f"Nobody knows what the status {listed(unknown)} means; answers with it were counted."
    return {"unknown_status": message} if unknown else {}
