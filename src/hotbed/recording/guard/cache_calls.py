"""Calls of empty_cache() and gc.collect() in this process: timed, placed, and, if somebody so decides, not carried out."""

from __future__ import annotations

import gc
import os
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from hotbed.recording.guard.calling import Caller, caller
from hotbed.recording.guard.levels import NONE, Levels, levels

if TYPE_CHECKING:
    from collections.abc import Callable

Kind = Literal["empty_cache", "gc.collect"]
_PLACES = (("_cuda_emptyCache", "empty_cache"), ("_accelerator_emptyCache", "empty_cache"))
"""of torch._C: the functions that every Python name of empty_cache() ends in, whenever it was imported"""


@dataclass(frozen=True)
class Call:
    """One call. `begun` is of time.perf_counter(); `before` and `after` it, by device."""

    kind: Kind
    caller: Caller
    begun: float
    seconds: float
    before: Levels
    after: Levels
    skipped: bool = False


class CacheCalls:
    """Tells `told` of each call once it is over. `skips`, asked before, says whether not to carry it out.

    `from gc import collect` before this escapes it. Does nothing in forked children. stop() puts everything back.
    """

    def __init__(
        self,
        torch: Any,
        told: Callable[[Call], None],
        skips: Callable[[Kind, Caller, Levels], bool] = lambda *_: False,
    ) -> None:
        self._torch, self._told, self._skips = torch, told, skips
        self._owner = os.getpid()
        self._active = True
        self.collecting = False
        """gc.collect() is under way, called under the name that is watched"""
        self._put: list[tuple[Any, str, Any, Any]] = []
        for name, kind in _PLACES:
            if hasattr(torch._C, name):
                self._wrap(torch._C, name, kind, None)
        self._wrap(gc, "collect", "gc.collect", 0)

    def stop(self) -> None:
        """Watches no longer; a second call does nothing."""
        self._active = False
        for place, name, original, ours in self._put:
            # Where somebody has wrapped ours meanwhile, it stays and only passes calls on.
            if getattr(place, name) is ours:
                setattr(place, name, original)
        self._put.clear()

    def empty(self) -> None:
        """Empties the cache without anybody being told."""
        for _, name, original, _ in self._put:
            if name == _PLACES[0][0]:
                original()

    def _wrap(self, place: Any, name: str, kind: Any, nothing: Any) -> None:
        original = getattr(place, name)

        def watched(*arguments: Any, **keywords: Any) -> Any:
            if self._passes():
                return original(*arguments, **keywords)
            before, by = levels(self._torch), caller(self._torch, 1)
            if by.by_hotbed:
                return original(*arguments, **keywords)
            if self._skips(kind, by, before):
                self._told(Call(kind, by, time.perf_counter(), 0.0, before, before, skipped=True))
                return nothing
            begun = time.perf_counter()
            self.collecting = kind == "gc.collect"
            result = original(*arguments, **keywords)
            self.collecting = False
            seconds = time.perf_counter() - begun
            self._told(Call(kind, by, begun, seconds, before, levels(self._torch)))
            return result

        watched.__name__ = watched.__qualname__ = name
        watched.__doc__ = original.__doc__
        setattr(place, name, watched)
        self._put.append((place, name, original, watched))

    def _passes(self) -> bool:
        """Whether nobody is to know: stopped, a forked child, code that torch.compile looks at, the interpreter's end."""
        return (
            not self._active
            or os.getpid() != self._owner
            or not self._torch.cuda.is_initialized()
            or self._torch.compiler.is_compiling()
        )


def as_row(call: Call) -> dict[str, Any]:
    """The row of a recording for `call`: fields of hotbed.trace.recorded.CacheCall, bytes by device."""
    where, via = call.caller.where, call.caller.via
    captures = call.caller.by_torch and via is not None and via.filename.endswith("/cuda/graphs.py")
    return {
        "kind": "capture" if captures else call.kind,
        "where": None if where is None else asdict(where),
        "seconds": call.seconds,
        "skipped": call.skipped,
        "devices": {
            str(device): {
                "allocated_before": level.allocated_bytes,
                "allocated_after": call.after.get(device, NONE).allocated_bytes,
                "reserved_before": level.reserved_bytes,
                "reserved_after": call.after.get(device, NONE).reserved_bytes,
            }
            for device, level in call.before.items()
        },
    }
