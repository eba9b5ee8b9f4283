"""Runs every kind of finding over traces, and puts what they found in order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from hotbed.errors import UsageError
from hotbed.findings import cache, composition, fragmentation, leaks, oom, peaks, steady, storms
from hotbed.findings.case import Case
from hotbed.findings.ranks import find_across
from hotbed.findings.savings import with_savings

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
ACROSS: Final = "rank"
"""the group of what is found between traces"""
_ORDER: Final = {"problem": 0, "notice": 1, "fine": 2}
_PASSING: Final = ("cache", "storm")
"""groups whose bytes count what was given back and taken again, over the whole run"""


def groups() -> list[str]:
    """The groups of findings there are."""
    return sorted({group for group, _ in RULES} | {ACROSS})


def examine(
    traces: Sequence[Trace | Case], only: Collection[str] = (), *, tuned: bool = False
) -> list[Finding]:
    """What `traces` show, one for each device and rank of one run: problems first, then what holds memory, then by size.

    A Case instead of a trace keeps what was worked out. `only` names the groups to look for; none means all.
    `tuned`: fragmentation comes with what other settings would save, which takes a search. Raises UsageError for a group that there is not.
    """
    unknown = sorted(set(only) - set(groups()))
    if unknown:
        raise UsageError(
            f"there is no group of findings {unknown[0]!r}", hint="groups: " + ", ".join(groups())
        )
    cases = [one if isinstance(one, Case) else Case(one) for one in traces]
    found = [finding for case in cases for finding in _alone(case, only, tuned=tuned)]
    if not only or ACROSS in only:
        found += find_across(cases)
    return sorted(found, key=_place)


def _place(finding: Finding) -> tuple[int, bool, int]:
    """Where it stands among others: memory that is held comes before memory that only passes to and fro."""
    passing = finding.code.split("/")[0] in _PASSING
    return _ORDER[finding.severity], passing, -(finding.bytes or 0)


def _alone(case: Case, only: Collection[str], *, tuned: bool) -> Iterator[Finding]:
    """What one trace shows, marked with its device and rank."""
    for group, rule in RULES:
        if only and group not in only:
            continue
        for finding in rule(case):
            marked = replace(finding, device=case.trace.device, rank=case.trace.rank)
            worth = tuned and group == "fragmentation" and finding.severity != "fine"
            yield with_savings(marked, case.trace) if worth else marked
