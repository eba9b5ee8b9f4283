"""Replay: a recorded trace through the installed torch's own allocator on a phantom GPU, to an Outcome."""

from hotbed.replaying.api import Replayer, gpu_for, replay
from hotbed.replaying.detail import OWN_SEGMENT
from hotbed.replaying.engine import Job
from hotbed.replaying.outcome import Cost, Fragmentation, FreeMemory, OomPoint, Outcome, Timeline
from hotbed.replaying.program import Op, Program, compile_trace
from hotbed.replaying.steps import Steps

__all__ = [
    "OWN_SEGMENT",
    "Cost",
    "Fragmentation",
    "FreeMemory",
    "Job",
    "OomPoint",
    "Op",
    "Outcome",
    "Program",
    "Replayer",
    "Steps",
    "Timeline",
    "compile_trace",
    "gpu_for",
    "replay",
]
