"""cache/*: calls of empty_cache() and gc.collect() by call site: what they cost, and whether they ever paid."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from hotbed.findings.finding import Finding
from hotbed.findings.reruns import rerun
from hotbed.findings.wording import counted
from hotbed.replaying.cost import growth_us
from hotbed.trace.model import Action
from hotbed.units import MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotbed.findings.case import Case
    from hotbed.findings.reruns import Reruns
    from hotbed.trace import Frame
    from hotbed.trace.recorded import CacheCall

_LOOP: Final = 3
"""calls from which on a site is taken to be in a loop: twice is before and after something"""
_HEAVY: Final = 0.01
"""share of the run's time that makes a problem: what hotbed.tune lets `balanced` spend"""
_NOTHING: Final = 0.002
"""share of the run's time below which a call is not worth a change; what waiting for the device costs is not in it"""
_LOWERED: Final = 0.02
"""share by which the peak must be lower for the calls to have paid: replays agree with the card to less than this"""
_CAME_BACK: Final = 0.8
_TAKEN: Final = (Action.SEGMENT_ALLOC, Action.SEGMENT_MAP)
_GIVEN: Final = (Action.SEGMENT_FREE, Action.SEGMENT_UNMAP)


@dataclass(frozen=True)
class _Site:
    """All calls of empty_cache() from one line, and what the driver did because of them. `came_back`: after how many of
    them reserved memory rose to where it had been."""

    where: Frame | None
    calls: int
    releasing: int
    steps: int
    first_event: int
    end_event: int
    seconds: float | None
    released_bytes: int
    taken_again_bytes: int
    mallocs_again: int
    came_back: int
    modelled_us: float
    costs_of: str

    @property
    def is_in_a_loop(self) -> bool:
        return self.calls >= _LOOP and self.releasing >= _LOOP


@dataclass(frozen=True)
class _Call:
    """One call of empty_cache(): where it stands in the events, what was reserved before and after it."""

    where: Frame | None
    event: int
    step: int | None
    seconds: float | None
    before: int
    after: int


def find(case: Case) -> Iterator[Finding]:
    """A finding for each line that empties the cache, and one for each that collects garbage."""
    sites = list(_sites(case))
    reruns = rerun(case.trace) if any(site.is_in_a_loop for site in sites) else None
    for site in sites:
        yield _judged(case, site, reruns)
    yield from _collections(case)


def _sites(case: Case) -> Iterator[_Site]:
    calls = _calls(case)
    by_line: dict[Frame | None, list[int]] = defaultdict(list)
    for index, call in enumerate(calls):
        by_line[call.where].append(index)
    for where, indices in by_line.items():
        yield _site(case, where, calls, indices)


def _calls(case: Case) -> list[_Call]:
    """Recorded calls, else what the releases of the trace tell of them."""
    recorded = [
        _Call(call.where, call.event, call.step, call.seconds, call.reserved_before, call.reserved_after)
        for call in case.recorded.calls
        if call.kind == "empty_cache" and not call.skipped and call.event is not None
    ]
    return recorded or [_release(case, event) for event in case.empty_cache_events]


def _release(case: Case, event: int) -> _Call:
    """The call behind the run of releases that begins with `event`."""
    action = case.trace.events.action
    end = event
    while end < len(action) and action[end] in (*_GIVEN, Action.FREE_COMPLETED):
        end += 1
    step = case.step_at(event)
    return _Call(
        where=case.line_of(int(case.trace.events.stack[event])),
        event=event,
        step=step.number if step is not None else None,
        seconds=None,
        before=case.reserved_at(event),
        after=case.reserved_at(end),
    )


def _site(case: Case, where: Frame | None, calls: list[_Call], indices: list[int]) -> _Site:
    events = case.trace.events
    growths = np.flatnonzero(np.isin(events.action, _TAKEN) & case.is_real)
    released = again = mallocs = came_back = 0
    for index in indices:
        call = calls[index]
        end = calls[index + 1].event if index + 1 < len(calls) else len(events)
        inside = growths[slice(*np.searchsorted(growths, [call.event, end]))]
        gave = max(call.before - call.after, 0)
        total = np.cumsum(events.size[inside])
        needed = int(np.searchsorted(total, gave)) + 1 if gave else 0
        released += gave
        again += min(gave, int(total[-1]) if len(total) else 0)
        mallocs += min(needed, len(inside))
        came_back += bool(gave and len(total) and call.after + int(total[-1]) >= _CAME_BACK * call.before)
    given = int(np.isin(events.action, _GIVEN).sum())
    mean = released / max(len(indices), 1)
    frees = round(mallocs * released / again) if again else given
    cost, whose = growth_us(again, mallocs, released, frees if mean else 0, case.trace.device_info.name)
    seconds = [calls[index].seconds for index in indices]
    return _Site(
        where=where,
        calls=len(indices),
        releasing=sum(calls[index].before > calls[index].after for index in indices),
        steps=len({calls[index].step for index in indices} - {None}),
        first_event=calls[indices[0]].event,
        end_event=calls[indices[-1]].event + 1,
        seconds=None if None in seconds else sum(second for second in seconds if second is not None),
        released_bytes=released,
        taken_again_bytes=again,
        mallocs_again=mallocs,
        came_back=came_back,
        modelled_us=cost,
        costs_of=whose,
    )


def _judged(case: Case, site: _Site, reruns: Reruns | None) -> Finding:
    code, severity = _verdict(case, site, reruns)
    title, fix = _words(site, code, reruns)
    return Finding(
        code=code,
        severity=severity,  # type: ignore[arg-type]
        title=title,
        evidence=tuple(_evidence(case, site, reruns)),
        fix=fix,
        bytes=site.released_bytes,
        per_step_bytes=site.released_bytes // site.steps if site.steps >= _LOOP else None,
        where=site.where,
        events=(site.first_event, site.end_event),
    )


def _verdict(case: Case, site: _Site, reruns: Reruns | None) -> tuple[str, str]:
    if not site.is_in_a_loop:
        return "cache/once", "fine"
    if _paid(site, reruns):
        return "cache/useful", "notice" if (_share(case, site) or 0) >= _HEAVY else "fine"
    share = _share(case, site)
    hot = _is_hot(case, site)
    if share is not None and share < _NOTHING and not hot:
        return "cache/harmless", "fine"
    return "cache/useless", "problem" if hot or not case.train_steps else "notice"


def _is_hot(case: Case, site: _Site) -> bool:
    """Whether at least every other training step makes the call. Then no share of the time excuses it: where the host is
    slow, as on a phantom or under a debugger, shares say little."""
    steps = [
        step
        for step in case.train_steps
        if step.first_event is not None
        and site.first_event <= (step.end_event or 0)
        and step.first_event < site.end_event
    ]
    return bool(steps) and 2 * site.calls >= len(steps)


def _paid(site: _Site, reruns: Reruns | None) -> bool:
    """Whether the peak is lower for the calls; without a replay: whether memory mostly stayed below where it had been."""
    if reruns is not None:
        more = reruns.without_bytes - reruns.as_it_was_bytes
        return more > max(_LOWERED * reruns.as_it_was_bytes, 20 * MIB)
    return site.came_back < site.releasing / 2


def _cost_us(site: _Site) -> float:
    """The calls as measured, or what they returned as modelled, and the memory that was taken again as modelled."""
    return max(site.modelled_us, 1e6 * (site.seconds or 0.0))


def _share(case: Case, site: _Site) -> float | None:
    """Part of the run's time that the calls took; None where the trace has no times."""
    times = case.trace.events.time_us
    times = times[times > 0]
    span = int(times.max() - times.min()) if len(times) else 0
    return _cost_us(site) / span if span > 0 else None


def _words(site: _Site, code: str, reruns: Reruns | None) -> tuple[str, str | None]:
    often = counted(site.calls, "call")
    if code == "cache/once":
        return f"{often} of empty_cache(): not in a loop, nothing to change", None
    if code == "cache/useful":
        return f"{often} of empty_cache() lower the peak of reserved memory", _cadence(reruns)
    if code == "cache/harmless":
        return f"{often} of empty_cache() change nothing, and cost next to nothing", None
    return (
        f"{often} of empty_cache() never lowered a later peak: what they return is taken again",
        "remove the call from the loop: torch empties its cache by itself before it reports out of memory",
    )


def _cadence(reruns: Reruns | None) -> str:
    if reruns is None:
        return "call it less often, say every tenth step, and see whether the peak stays"
    extra = reruns.every_tenth_bytes - reruns.as_it_was_bytes
    kept = f"{format_size(extra)} more" if extra > MIB else "the same"
    return (
        f"every tenth call would reserve {format_size(reruns.every_tenth_bytes)} at its peak ({kept}), none "
        f"{format_size(reruns.without_bytes)}: if the card has that, call it less often or not at all"
    )


def _evidence(case: Case, site: _Site, reruns: Reruns | None) -> Iterator[str]:
    yield (
        f"{counted(site.calls, 'call')}, {site.releasing} with something to return: {format_size(site.released_bytes)} in all; "
        f"{format_size(site.taken_again_bytes)} of it were taken again, in {counted(site.mallocs_again, 'cudaMalloc')}"
    )
    share = _share(case, site)
    part = "" if share is None else f", {100 * share:.1f} % of the run"
    measured = "" if site.seconds is None else f"{1000 * site.seconds:.0f} ms in the calls as measured; "
    if site.released_bytes:
        yield (
            f"{measured}{site.modelled_us / 1000:.1f} ms of driver calls by the costs of {site.costs_of}{part}; the wait for the "
            "device that each call implies comes on top"
        )
    if reruns is not None:
        yield (
            f"replayed without any of the calls, reserved memory peaks at {format_size(reruns.without_bytes)} instead of "
            f"{format_size(reruns.as_it_was_bytes)}, with {reruns.without_calls} driver calls instead of {reruns.as_it_was_calls}"
        )
    elif site.releasing:
        yield (
            f"after {site.came_back} of {site.releasing} calls reserved memory rose to where it had been (by the events: no "
            "torch here could replay the trace)"
        )


# --- gc.collect()


def _collections(case: Case) -> Iterator[Finding]:
    by_line: dict[Frame | None, list[CacheCall]] = defaultdict(list)
    for call in case.recorded.calls:
        if call.kind == "gc.collect" and not call.skipped:
            by_line[call.where].append(call)
    for where, calls in by_line.items():
        if len(calls) >= _LOOP:
            yield _collection(case, where, calls)


def _collection(case: Case, where: Frame | None, calls: list[CacheCall]) -> Finding:
    seconds = sum(call.seconds for call in calls)
    freed = sum(max(call.allocated_before - call.allocated_after, 0) for call in calls)
    span = calls[-1].time_us - calls[0].time_us
    share = 1e6 * seconds / span if span > 0 else 0.0
    pays = freed >= MIB
    return Finding(
        code="cache/gc-useful" if pays else "cache/gc-useless",
        severity="notice" if pays or share < _HEAVY else "problem",
        title=f"{counted(len(calls), 'call')} of gc.collect() {'free memory that only cycles hold' if pays else 'free nothing'}",
        evidence=(
            f"{1000 * seconds:.0f} ms in all, {100 * share:.1f} % of the time from the first to the last call; "
            f"{format_size(freed)} of device memory freed",
        ),
        fix="break the cycles that hold tensors (see leak/*), then the call is not needed"
        if pays
        else "remove the call from the loop",
        bytes=freed,
        where=where,
    )
