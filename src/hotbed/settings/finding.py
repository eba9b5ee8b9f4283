"""What a rule says about allocator settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One remark on a settings string.

    `rule` is a stable name; `since` and `until` bound the torch releases to which the rule applies ("2.7", first one
    included, last one not), None where there is no bound.
    """

    severity: Severity
    rule: str
    message: str
    hint: str | None = None
    since: str | None = None
    until: str | None = None
