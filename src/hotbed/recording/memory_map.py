"""torch's map of segments and blocks, without its history, and without harm to the interpreter."""

from __future__ import annotations

import ctypes
from typing import Any


def mapped_segments(torch: Any) -> list[dict[str, Any]]:
    """torch.cuda.memory_snapshot() of all devices; torch before 2.11 hands its history out with it, which takes longer.

    Empty with cudaMallocAsync, which keeps no map.
    """
    if torch.cuda.get_allocator_backend() == "cudaMallocAsync":
        return []
    ask = torch.cuda.memory_snapshot
    try:
        # torch 2.11 to 2.14 drops a reference of this flag that it never took: before Python 3.12, where True and False are
        # immortal, the interpreter aborts after some hundred calls.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(False))
        found: list[dict[str, Any]] = ask(include_traces=False)
    except TypeError:
        found = ask()
    return found
