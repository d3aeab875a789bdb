"""The ledger: every row that was read is kept, or excluded for a reason that is counted."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Ledger:
    """rows_read = kept + the sum of excluded."""

    rows_read: int
    kept: int
    excluded: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        missing = self.rows_read - self.kept - sum(self.excluded.values())
        assert missing == 0, f"{missing} rows are unaccounted for"

    def as_dict(self) -> dict[str, object]:
        return {"rows_read": self.rows_read, "kept": self.kept, "excluded": dict(self.excluded)}

    def __str__(self) -> str:
        out = "".join(f", {count} {reason.replace('_', ' ')}" for reason, count in self.excluded.items())
        return f"{self.rows_read} {'row' if self.rows_read == 1 else 'rows'} read, {self.kept} kept{out}"
