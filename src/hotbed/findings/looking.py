"""Runs every kind of finding over traces, and puts what they found in order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hotbed.errors import UsageError
from hotbed.findings import cache, composition, fragmentation, leaks, oom, peaks, steady, storms
from hotbed.findings.case import Case

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from hotbed.findings.finding import Finding
    from hotbed.trace import Trace

RULES: Final[tuple[tuple[str, Callable[[Case], Iterator[Finding]]], ...]] = (
    ("oom", oom.find),
    ("peak", peaks.find),
    ("peak", composition.find),
    ("fragmentation", fragmentation.find),
    ("storm", storms.find),
    ("cache", cache.find),
    ("leak", leaks.find),
    ("memory", steady.find),
)
"""group → the rule that finds it; the group is what stands before the slash of a code"""
_ORDER: Final = {"problem": 0, "notice": 1, "fine": 2}


def groups() -> list[str]:
    """The groups of findings there are."""
    return sorted({group for group, _ in RULES})


def examine(traces: Sequence[Trace | Case], only: Collection[str] = ()) -> list[Finding]:
    """What `traces` show, one per device and rank: problems first, then by size. A Case keeps what was worked out.

    `only` names the groups to look for; none means all. Raises UsageError for a group that there is not.
    """
    unknown = sorted(set(only) - set(groups()))
    if unknown:
        raise UsageError(
            f"there is no group of findings {unknown[0]!r}", hint="groups: " + ", ".join(groups())
        )
    found = [
        replace(finding, device=case.trace.device, rank=case.trace.rank)
        for case in (one if isinstance(one, Case) else Case(one) for one in traces)
        for group, rule in RULES
        if not only or group in only
        for finding in rule(case)
    ]
    return sorted(found, key=lambda finding: (_ORDER[finding.severity], -(finding.bytes or 0)))
