"""torch's memory snapshot, without the imports that torch makes for it."""

from __future__ import annotations

import functools
from typing import Any

from hotbed.recording.native_calls import at_once, calls_of

_INDUCTOR = "_inductor"
_taking: list[functools.partial[Any]] = []


def snapshot(torch: Any) -> dict[str, Any]:
    """torch.cuda.memory._snapshot() as the program's own call would give it."""
    taken: dict[str, Any] = snapshot_and(torch, [])[0]
    return taken


def snapshot_and(torch: Any, more: list[functools.partial[Any]]) -> list[Any]:
    """The snapshot, then what `more` native calls return, all at once.

    To name the lines of compiled code torch asks for `torch._inductor`, which imports it: a second for nothing, and on
    another thread than one that is importing it already the two break each other's imports. Where the program has not
    imported all of it, nothing stands for it.
    """
    names = torch.__dict__
    if not _taking:
        _taking.extend(calls_of(torch, "_cuda_memorySnapshot", torch.cuda.memory._snapshot))
    taking = list(_taking)
    if _INDUCTOR in names:
        return at_once(taking + more)
    # It stands there for this list of calls alone, so no other thread sees it.
    hide = functools.partial(names.__setitem__, _INDUCTOR, None)
    show = functools.partial(names.pop, _INDUCTOR)
    try:
        _, taken, _, *rest = at_once([hide, *taking, show, *more])
    except BaseException:
        names.pop(_INDUCTOR, None)
        raise
    return [taken, *rest]
