"""leak/*: memory that grows step by step and is never given back, who keeps it, and the line that makes it so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from hotbed.findings import cycles, streams
from hotbed.findings.finding import Finding, Severity
from hotbed.findings.growth import within_evaluation
from hotbed.findings.keepers import Keeper, keepers
from hotbed.findings.leak_text import FIXES, evidence, title
from hotbed.findings.wording import counted
from hotbed.trace.model import NONE
from hotbed.units import KIB, MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotbed.findings.case import Case
    from hotbed.findings.growth import Growth
    from hotbed.trace import Frame

FAR_STEPS: Final = 1_000_000
"""A leak that fills the GPU only after so many steps is worth knowing, not more."""
_NEVER_STEPS: Final = 100_000_000
_UNKNOWN_GPU: Final = 80 << 30
_SMALL: Final = 4 * KIB
"""mean bytes of tensors from which on they, and not their graphs, are what is kept"""
_NOTABLE: Final = 0.05
"""share of what is live that must have grown where there are no steps to count"""
_HELD_AT_FAILURE: Final = 0.05
"""share of what was allocated at an out-of-memory error that a traceback must hold to be named"""
_ADDED_TO: Final = "which is added to"
_LEAST_HELD: Final = 16 * MIB
_EXPECTED: Final = frozenset(("optimizer state", "gradients"))
"""Memory that comes step by step when parameters are used for the first time, and then stays."""


def find(case: Case) -> Iterator[Finding]:
    """One finding for each owner of memory that grows, and those of cycles and side streams."""
    found = [finding for finding in growing(case) if finding.code.startswith("leak/")]
    found += _in_evaluations(case)
    yield from found
    if not any(finding.code == "leak/reference-cycle" for finding in found):
        yield from cycles.find(case)
    yield from _tracebacks(case, found)
    yield from streams.find(case)


def _in_evaluations(case: Case) -> list[Finding]:
    """Of a program that trains, the graphs that pile up while it evaluates. What else an evaluation gathers is its own."""
    if case.growth is None or case.growth.axis != "train":
        return []
    found = _growing(case, within_evaluation(case))
    return [finding for finding in found if finding.code == "leak/retained-graph"]


def growing(case: Case) -> Iterator[Finding]:
    """What grows, by owner: leak/*, and memory/still-growing where it may yet end."""
    yield from _growing(case, case.growth)


def _growing(case: Case, growth: Growth | None) -> Iterator[Finding]:
    if growth is None:
        return
    for keeper in keepers(case, growth):
        code = _code(case, growth, keeper)
        if code is None:
            continue
        severity = _severity(case, growth, keeper)
        if severity is None:
            continue
        lines = [line.frame for line in keeper.lines if line.frame is not None]
        where = keeper.holding.where if keeper.holding is not None else None
        where = where or (lines[0] if lines else None)
        yield Finding(
            code=code,
            severity="notice" if code == "memory/still-growing" else severity,
            title=title(code, growth, keeper),
            evidence=tuple(evidence(case, growth, keeper, steps_left(case, keeper.per_step_bytes))),
            fix=FIXES[code],
            bytes=keeper.bytes,
            per_step_bytes=round(keeper.per_step_bytes) if growth.axis != "events" else None,
            where=where,
            others=_others(where, lines),
            events=(int(growth.ends[growth.settled]), int(growth.ends[-1])),
        )


def _others(where: Frame | None, lines: list[Frame]) -> tuple[Frame, ...]:
    return tuple(line for line in dict.fromkeys(lines) if line != where)[:5]


def _code(case: Case, growth: Growth, keeper: Keeper) -> str | None:
    """The class of the leak; memory/still-growing where it may yet end; None where it is expected."""
    if _expected(case, keeper):
        return None
    courses = {line.course for line in keeper.lines if line.bytes >= keeper.bytes / 2} or {"steady"}
    holding = keeper.holding
    bounded = holding is not None and holding.owner.startswith("deque of at most")
    if bounded or courses == {"slowing"}:
        return "memory/still-growing"
    if courses == {"enlarging"}:
        # Batches that grow leave a larger one behind each time, too; and what a cache of keys and values adds has an end.
        added_to = holding is not None and holding.owner.endswith(_ADDED_TO)
        return "leak/growing-container" if added_to and growth.axis == "train" else "memory/still-growing"
    if holding is None:
        return "leak/unknown-owner" if growth.axis != "events" else None
    if holding.kind == "cycle":
        return "leak/reference-cycle"
    if holding.kind == "traceback":
        return "leak/traceback"
    small = bool(holding.tensors) and holding.bytes / holding.tensors <= _SMALL
    if keeper.by_graph >= 0.5 or (small and holding.with_graph >= holding.tensors / 2 > 0):
        return "leak/retained-graph"
    return "leak/growing-container"


def _expected(case: Case, keeper: Keeper) -> bool:
    kept = np.concatenate([line.kept for line in keeper.lines])
    if not len(kept) or (
        keeper.holding is not None and keeper.holding.kind in ("cycle", "traceback", "graph")
    ):
        return False
    category = case.allocations.category[kept]
    names = [case.trace.strings[index] if index != NONE else None for index in category.tolist()]
    return sum(name in _EXPECTED for name in names) > len(names) / 2


def steps_left(case: Case, per_step_bytes: float) -> int | None:
    """How many more steps fit on this GPU at this growth; None where its size is not known."""
    total = case.trace.device_info.total_bytes
    growth = case.growth
    if total is None or per_step_bytes <= 0 or (growth is not None and growth.axis == "events"):
        return None
    live = int(growth.live[-1]) if growth is not None else case.allocated_at(len(case.trace.events))
    return max(int((total - live - (case.recorded.context_bytes or 0)) / per_step_bytes), 0)


def _severity(case: Case, growth: Growth, keeper: Keeper) -> Severity | None:
    """By how soon the GPU is full; None for growth that no program lives to see."""
    if keeper.per_step_bytes <= 0:
        return None
    if growth.axis == "events":
        share = keeper.bytes / max(int(growth.live[-1]), 1)
        is_cycle = keeper.holding is not None and keeper.holding.kind == "cycle"
        return "problem" if is_cycle and share >= cycles.HEAVY else "notice" if share >= _NOTABLE else None
    left = steps_left(case, keeper.per_step_bytes)
    if left is None:
        left = int(_UNKNOWN_GPU / keeper.per_step_bytes)
    if left < FAR_STEPS:
        return "problem"
    # Beside the few bytes on the GPU a graph keeps its nodes in the memory of the host.
    with_graph = keeper.by_graph > 0 or (keeper.holding is not None and keeper.holding.with_graph > 0)
    return "notice" if left < _NEVER_STEPS or with_graph else None


def _tracebacks(case: Case, found: list[Finding]) -> Iterator[Finding]:
    """An earlier exception that holds memory when it runs out: once is enough."""
    failures = case.recorded.failures
    if not failures or any(finding.code == "leak/traceback" for finding in found):
        return
    # The sample taken as the last error came; a later one sees that error's own frames.
    sample = next((item for item in case.recorded.samples if item.time_us >= failures[-1].time_us), None)
    rows = [row for row in sample.holdings if row.kind == "traceback"] if sample is not None else []
    row = min(rows, key=lambda row: (-row.bytes, len(row.path)), default=None)
    live = failures[-1].allocated_bytes or 0
    if row is None or row.bytes < max(_LEAST_HELD, _HELD_AT_FAILURE * live):
        return
    yield Finding(
        code="leak/traceback",
        severity="problem",
        title=f"an earlier exception keeps {format_size(row.bytes)} through its traceback as memory runs out",
        evidence=(
            f"{row.owner}: {counted(row.tensors, 'tensor')} in local variables of the frames that it passed through, "
            f"of {format_size(live)} allocated",
        ),
        fix=FIXES["leak/traceback"],
        bytes=row.bytes,
        where=row.where,
        others=tuple(failure.where for failure in failures[-1:] if failure.where is not None),
    )
