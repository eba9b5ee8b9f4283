"""What reserved memory would have been without the calls of empty_cache(), by replay through torch's own allocator."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hotbed.errors import HotbedError
from hotbed.replaying import Op, Program, Replayer, compile_trace, gpu_for
from hotbed.replaying.steps import Steps

if TYPE_CHECKING:
    from hotbed.trace import Trace


@dataclass(frozen=True)
class Reruns:
    """Peak reserved bytes with the calls as they were, with every tenth of them, and with none; driver calls likewise."""

    as_it_was_bytes: int
    every_tenth_bytes: int
    without_bytes: int
    as_it_was_calls: int
    without_calls: int


def rerun(trace: Trace) -> Reruns | None:
    """Replays `trace` under its own settings; None where the installed torch, or the trace, does not allow it."""
    try:
        program = compile_trace(trace)
        with Replayer(gpu_for(None, program)) as replayer:
            pending = [
                replayer.submit(trace, one, trace.settings)
                for one in (program, _thinned(program, 10), _thinned(program, 0))
            ]
            with_all, every_tenth, without = (wait() for wait in pending)
    except HotbedError:
        return None
    return Reruns(
        as_it_was_bytes=with_all.peak_reserved_bytes,
        every_tenth_bytes=every_tenth.peak_reserved_bytes,
        without_bytes=without.peak_reserved_bytes,
        as_it_was_calls=with_all.device_mallocs + with_all.device_frees,
        without_calls=without.device_mallocs + without.device_frees,
    )


def _thinned(program: Program, cadence: int) -> Program:
    """`program` with every `cadence`-th call of empty_cache() only; 0: with none. Those before the recording stay."""
    kept, calls = [], 0
    for index, op in enumerate(program.op):
        if op == Op.EMPTY_CACHE and program.event[index] >= 0:
            calls += 1
            if not cadence or calls % cadence:
                continue
        kept.append(index)
    columns: dict[str, Any] = {
        name: array(column.typecode, [column[index] for index in kept])
        for name in ("op", "allocation", "size", "stream", "pool", "event")
        for column in (getattr(program, name),)
    }
    return replace(program, **columns, steps=Steps())
