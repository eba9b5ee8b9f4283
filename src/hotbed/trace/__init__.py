"""Traces: allocator histories as columns, read from torch snapshots and from hotbed's own .hbt files."""

from __future__ import annotations

from hotbed.trace.loading import load_trace
from hotbed.trace.model import Action, Block, Events, Frame, Segment, Trace

__all__ = ["Action", "Block", "Events", "Frame", "Segment", "Trace", "load_trace"]
