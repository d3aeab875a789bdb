"""The ledger: every row that was read is kept, or excluded for a reason that is counted."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Ledger:
    """Account of the rows of an export; ``rows_read = kept + sum(excluded.values())``.

    Parameters
    ----------
    rows_read : int
        Number of rows of the export.
    kept : int
        Number of rows that became annotations.
    excluded : dict of str to int, default={}
        Reason -> number of rows, such as ``{"no_label": 3, "duplicate": 1}``.

    Examples
    --------
    >>> print(Ledger(5, 3, {"no_label": 2}))
    5 rows read, 3 kept, 2 no label
    """

    rows_read: int
    kept: int
    excluded: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that every row is counted once."""
        missing = self.rows_read - self.kept - sum(self.excluded.values())
        assert missing == 0, f"{missing} rows are unaccounted for"

    def as_dict(self) -> dict[str, object]:
        """Return the ledger as a dict for JSON.

        Returns
        -------
        dict
            ``rows_read``, ``kept`` and ``excluded``.
        """
        return {"rows_read": self.rows_read, "kept": self.kept, "excluded": dict(self.excluded)}

    def __str__(self) -> str:
        """Return the ledger as one line."""
        out = "".join(f", {count} {reason.replace('_', ' ')}" for reason, count in self.excluded.items())
        return f"{self.rows_read} {'row' if self.rows_read == 1 else 'rows'} read, {self.kept} kept{out}"
