"""What a finding is, and its JSON form."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from hotbed.trace import Frame

SCHEMA: Final = 1
Severity = Literal["problem", "notice", "fine"]
"""Act on it; worth knowing; looked at and in order ("not a leak")."""


@dataclass(frozen=True)
class Finding:
    """One thing that a trace shows.

    `code` is GROUP/NAME in lower case with dashes ("leak/retained-graph"), stable, documented in docs/verbs/findings.md.
    `bytes` is the size of the matter (None where it has none), `per_step_bytes` its growth. `where` is the line to look
    at: the allocating line, or the one that keeps the memory; `others` further lines, most important first. `evidence`
    are sentences with numbers, each checkable in the trace; `fix` says what to do. `events` is the stretch [first, end)
    that shows it.
    """

    code: str
    severity: Severity
    title: str
    evidence: tuple[str, ...]
    fix: str | None = None
    bytes: int | None = None
    per_step_bytes: int | None = None
    where: Frame | None = None
    others: tuple[Frame, ...] = ()
    events: tuple[int, int] | None = None
    device: int = 0
    rank: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain containers: the fields above under their names."""
        return asdict(self)
