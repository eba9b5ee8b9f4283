"""storm/*: memory that is still taken from the driver, step after step, when the training has settled."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from hotbed.findings.finding import Finding
from hotbed.findings.wording import counted, line_words
from hotbed.replaying.cost import growth_us
from hotbed.trace.model import DEFAULT_POOL, NONE, Action, Frame
from hotbed.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from hotbed.findings.case import Case
    from hotbed.trace.recorded import Step

_ENOUGH_STEPS: Final = 4
"""settled steps from which on a habit can be told from growth that ends"""
_HABIT: Final = 0.5
"""share of the settled steps that must take memory from the driver"""
_NOTABLE_SHARE: Final = 0.01
"""of a step's time: what hotbed.tune lets `balanced` spend"""
_PARTS: Final = 12
_FEWEST_EVENTS: Final = 20
"""of a part of a run without steps"""
_TAKEN: Final = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)
_EMPTY_CACHE: Final = "empty_cache"
_GIVEN: Final = (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)


@dataclass(frozen=True)
class _Storm:
    """Driver calls in the settled steps, and what they cost."""

    unit: str
    """what the steps are, in words"""
    steps: int
    busy_steps: int
    mallocs: int
    taken_bytes: int
    frees: int
    returned_bytes: int
    cost_us: float
    costs_of: str
    step_us: float | None
    lines: tuple[Frame, ...]

    @property
    def share(self) -> float | None:
        """Part of a step's time that the calls take; None where steps have no times."""
        return self.cost_us / self.steps / self.step_us if self.step_us else None


def find(case: Case) -> Iterator[Finding]:
    """At most one finding: the storm by its cause. Emptied caches are the matter of cache/*, and left to it."""
    steps = [step for step in case.settled_steps if step.device_mallocs is not None] or _parts(case)
    if len(steps) < _ENOUGH_STEPS:
        return
    storm = _measure(case, steps)
    if storm.busy_steps < _HABIT * storm.steps or _is_growth(case, steps, storm):
        return
    cause = _cause(case, steps, storm)
    if cause == _EMPTY_CACHE:
        return
    heavy = storm.share is None or storm.share >= _NOTABLE_SHARE
    yield Finding(
        code=cause,
        severity="problem" if heavy else "notice",
        title=f"{storm.mallocs / storm.steps:.1f} cudaMalloc a {storm.unit} after the warm-up: {_TITLES[cause]}",
        evidence=tuple(_evidence(case, storm)),
        fix=_fix(case, cause),
        bytes=storm.taken_bytes,
        per_step_bytes=storm.taken_bytes // storm.steps if storm.unit == "step" else None,
        where=storm.lines[0] if storm.lines else None,
        others=storm.lines[1:5],
        events=_stretch(steps),
    )


def _is_private(case: Case, first: int, end: int) -> bool:
    """Whether most of what was taken went into private pools: each capture takes memory of its own."""
    events = case.trace.events
    taken = np.isin(events.action[first:end], _TAKEN)
    default = [NONE, *(number for number, pool in enumerate(case.trace.pools) if pool == DEFAULT_POOL)]
    size = events.size[first:end][taken]
    return 2 * int(size[~np.isin(events.pool[first:end][taken], default)].sum()) > int(size.sum())


def _is_growth(case: Case, steps: list[Step], storm: _Storm) -> bool:
    """Whether what was taken, and not given back, is live: a leak's matter, or a cache's that fills; or in pools of graphs."""
    first, end = _stretch(steps)
    if _is_private(case, first, end):
        return True
    more = case.allocated_at(end) - case.allocated_at(first)
    return (
        more >= (storm.taken_bytes - storm.returned_bytes) / 2 > 0
        and 2 * storm.returned_bytes < storm.taken_bytes
    )


_TITLES: Final = {
    "storm/retries": "memory is at its limit, the cache is flushed to serve requests",
    "storm/gc-threshold": "garbage_collection_threshold returns memory that is soon needed again",
    "storm/sizes": "sizes change, and nothing cached fits",
}


def _parts(case: Case) -> list[Step]:
    """Of a program that does not train: even parts of its longest stretch of forward passes, behind the first quarter."""
    spans = [
        (step.first_event, step.end_event)
        for step in case.recorded.steps
        if step.phase == "eval" and step.first_event is not None and step.end_event is not None
    ]
    first, end = max(spans, key=lambda span: span[1] - span[0], default=(0, 0))
    if case.train_steps or end - first < _PARTS * _FEWEST_EVENTS:
        return []
    bounds = np.linspace(first, end, _PARTS + 1).astype(np.int64).tolist()
    parts = [case.part("eval", number, *span) for number, span in enumerate(pairwise(bounds))]
    return parts[_PARTS // 4 :]


def _stretch(steps: list[Step]) -> tuple[int, int]:
    """From the first to the last event of `steps`, as far as they were recorded."""
    firsts = [step.first_event for step in steps if step.first_event is not None]
    ends = [step.end_event for step in steps if step.end_event is not None]
    return min(firsts, default=0), max(ends, default=0)


def _measure(case: Case, steps: list[Step]) -> _Storm:
    """Calls by torch's own counters, which do not depend on what was recorded; their bytes by the events there are."""
    events = case.trace.events
    inside = np.zeros(len(events), bool)
    for step in steps:
        if step.first_event is not None:
            inside[step.first_event : step.end_event] = True
    inside &= case.is_real
    taken = np.isin(events.action, _TAKEN) & inside
    given = np.isin(events.action, _GIVEN) & inside
    mallocs = sum(step.device_mallocs or 0 for step in steps)
    frees = sum(step.device_frees or 0 for step in steps)
    bytes_taken = _scaled(int(events.size[taken].sum()), int(taken.sum()), mallocs)
    bytes_given = _scaled(int(events.size[given].sum()), int(given.sum()), frees)
    cost, whose = growth_us(bytes_taken, mallocs, bytes_given, frees, case.trace.device_info.name)
    seconds = [step.seconds for step in steps if step.seconds > 0]
    return _Storm(
        unit="step" if steps[0].phase == "train" else f"{_PARTS}th of the run",
        steps=len(steps),
        busy_steps=sum(bool(step.device_mallocs) for step in steps),
        mallocs=mallocs,
        taken_bytes=bytes_taken,
        frees=frees,
        returned_bytes=bytes_given,
        cost_us=cost,
        costs_of=whose,
        step_us=1e6 * sum(seconds) / len(seconds) if seconds else None,
        lines=_lines(case, np.flatnonzero(taken)),
    )


def _scaled(size: int, seen: int, calls: int) -> int:
    """Bytes of `calls` calls, of which `seen` were recorded with `size` bytes."""
    return size * calls // seen if seen else 0


def _lines(case: Case, growths: npt.NDArray[np.int64]) -> tuple[Frame, ...]:
    """The lines whose requests made memory grow, most calls first."""
    made = np.flatnonzero(case.trace.events.action == Action.ALLOC)
    served = np.searchsorted(made, growths)
    requests = made[served[served < len(made)]]
    frames = [case.line_of(stack) for stack in case.trace.events.stack[requests].tolist()]
    return tuple(frame for frame, _ in Counter(f for f in frames if f is not None).most_common())


def _cause(case: Case, steps: list[Step], storm: _Storm) -> str:
    """Most of what was taken replaces what was given back before, or nothing was given back: then sizes change."""
    if storm.frees < storm.mallocs / 2 and storm.returned_bytes < storm.taken_bytes / 2:
        return "storm/sizes"
    first, end = _stretch(steps)
    retries = sum(step.retries or 0 for step in steps)
    if retries >= _HABIT * len(steps):
        return "storm/retries"
    if sum(first <= event < end for event in case.empty_cache_events) >= _HABIT * len(steps):
        return _EMPTY_CACHE
    return "storm/gc-threshold" if case.settings.garbage_collection_threshold else "storm/retries"


def _evidence(case: Case, storm: _Storm) -> Iterator[str]:
    yield (
        f"{storm.busy_steps} of {storm.steps} settled {'steps' if storm.unit == 'step' else 'parts of the run'} took memory from "
        f"the driver: {counted(storm.mallocs, 'call')}, "
        f"{format_size(storm.taken_bytes)} in all; {counted(storm.frees, 'call')} gave {format_size(storm.returned_bytes)} back"
    )
    share = "" if storm.share is None else f", {100 * storm.share:.1f} % of its time"
    yield (
        f"modelled at {storm.cost_us / 1000 / storm.steps:.2f} ms a {storm.unit}{share}, by the call costs of {storm.costs_of}; "
        "waiting for kernels that cudaFree implies comes on top"
    )
    if storm.lines:
        names = ", ".join(line_words(frame.filename, frame.line) for frame in storm.lines[:3])
        yield f"the requests that made memory grow came from {names}"
    retries = [step.retries for step in case.settled_steps if step.retries is not None]
    if any(retries):
        yield f"torch counted {counted(sum(retries), 'retry', 'retries')} after flushing its cache"


def _fix(case: Case, cause: str) -> str:
    ask = f"hotbed tune {case.trace.source} shows what each setting would do"
    if cause == "storm/retries":
        return f"use less memory at the peak (smaller batch, checkpointing) so that the cache survives; {ask}"
    if cause == "storm/gc-threshold":
        return f"raise garbage_collection_threshold or drop it; {ask}"
    if case.settings.expandable_segments:
        return f"pad inputs to a few sizes, largest first; {ask}"
    return f"pad inputs to a few sizes, or run the largest first; or expandable_segments:True; {ask}"
