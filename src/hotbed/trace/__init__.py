"""Traces: allocator histories as columns, read from torch snapshots and from hotbed's own .hbt files.

Names load on first use (PEP 562): hotbed.trace.writer runs inside other people's processes and must not bring numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hotbed.trace.loading import load_devices as load_devices
    from hotbed.trace.loading import load_trace as load_trace
    from hotbed.trace.model import Action as Action
    from hotbed.trace.model import Block as Block
    from hotbed.trace.model import Events as Events
    from hotbed.trace.model import Frame as Frame
    from hotbed.trace.model import Segment as Segment
    from hotbed.trace.model import Trace as Trace

_PUBLIC = {
    "load_devices": "hotbed.trace.loading",
    "load_trace": "hotbed.trace.loading",
    **dict.fromkeys(("Action", "Block", "Events", "Frame", "Segment", "Trace"), "hotbed.trace.model"),
}
__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> object:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'hotbed.trace' has no attribute {name!r}")
