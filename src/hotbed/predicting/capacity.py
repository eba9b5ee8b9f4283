"""The least memory that a trace runs in, and which cards have it: found by replay under limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hotbed.replaying import Replayer, compile_trace
from hotbed.tuning.bounds import lower_bound
from hotbed.tuning.search import CAP_STEP_BYTES, rounded_up
from hotbed.units import GIB

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotbed.gpu import Gpu
    from hotbed.replaying import Outcome, Program
    from hotbed.trace import Trace

ROOMY_BYTES = 1024 * GIB
"""memory of the card that replays run on: only caps limit them"""


def roomy(gpu: Gpu) -> Gpu:
    """`gpu` with more memory than any program needs."""
    return replace(gpu, total_bytes=ROOMY_BYTES, nvml_total_bytes=None)


@dataclass(frozen=True)
class Need:
    """What a trace needs under `settings`, all in reserved bytes.

    `peak_bytes` is what it reserves where nothing limits it, `smallest_bytes` the least under which it ran: near its
    limit the allocator gives back its cache and tries again. None for both: it ran out of memory even without a limit.
    """

    settings: str
    peak_bytes: int | None
    smallest_bytes: int | None
    retries: int = 0
    """flushes of the cache where nothing limits it"""


class Capacity:
    """Replays one trace under limits, with a Replayer on a card that has `roomy` memory."""

    def __init__(self, replayer: Replayer, trace: Trace) -> None:
        self.replayer, self.trace = replayer, trace
        self.program: Program = compile_trace(trace)
        self.lower_bound_bytes = rounded_up(lower_bound(self.program))
        self._known: dict[tuple[str, int | None], Outcome] = {}

    def outcomes(self, settings: str, caps: Sequence[int | None]) -> list[Outcome]:
        """One outcome a cap, in parallel; each is replayed once."""
        pending = [
            ((settings, cap), self.replayer.submit(self.trace, self.program, settings, cap))
            for cap in dict.fromkeys(caps)
            if (settings, cap) not in self._known
        ]
        self._known |= {key: result() for key, result in pending}
        return [self._known[settings, cap] for cap in caps]

    def need(self, settings: str) -> Need:
        """What the trace needs under `settings`, to CAP_STEP_BYTES."""
        free = self.outcomes(settings, [None])[0]
        if free.out_of_memory:
            return Need(settings, None, None)
        peak = free.peak_reserved_bytes
        return Need(settings, peak, self._smallest(settings, peak), free.alloc_retries)

    def within(self, settings: str, limit_bytes: int) -> Outcome | None:
        """The outcome with `limit_bytes` of memory for the allocator; None where it does not fit."""
        if limit_bytes < self.lower_bound_bytes:
            return None
        free = self.outcomes(settings, [None])[0]
        if not free.out_of_memory and free.peak_reserved_bytes <= limit_bytes:
            return free
        cap = limit_bytes
        while cap >= self.lower_bound_bytes:
            found = self.outcomes(settings, [cap])[0]
            if found.out_of_memory:
                return None
            if found.peak_reserved_bytes <= limit_bytes:
                return found
            # Pages of expandable segments are rounded up past a cap, which the card itself would not allow.
            cap -= found.peak_reserved_bytes - limit_bytes
        return None

    def _smallest(self, settings: str, peak: int) -> int:
        """Bisects between what is alive at once, which nothing can do without, and what is surely enough.

        As many caps at a time as there are cores.
        """
        low, high, best = self.lower_bound_bytes - CAP_STEP_BYTES, rounded_up(peak), peak
        caps = [self.lower_bound_bytes]
        while high - low > CAP_STEP_BYTES:
            for cap, found in zip(caps, self.outcomes(settings, caps), strict=True):
                # A cap that fits may lie below one that does not; the smallest that fits counts.
                if cap >= high:
                    break
                if found.out_of_memory:
                    low = cap
                else:
                    high, best = cap, max(cap, found.peak_reserved_bytes)
            caps = _between(low, high, self.replayer.engine.parallel)
        return min(best, peak)


def _between(low: int, high: int, count: int) -> list[int]:
    """Up to `count` multiples of CAP_STEP_BYTES that cut (low, high) into equal parts."""
    steps = (high - low) // CAP_STEP_BYTES
    places = {max(1, steps * part // (count + 1)) for part in range(1, count + 1)}
    return [low + place * CAP_STEP_BYTES for place in sorted(places)]
