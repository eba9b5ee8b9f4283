"""What no allocator sees, roughly: the context, and the libraries of a typical training run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotbed.gpu import DEFAULT_GPU, find_gpu
from hotbed.predicting.prediction import Overhead
from hotbed.units import MIB

if TYPE_CHECKING:
    from hotbed.gpu import Gpu
    from hotbed.predicting.script_run import ScriptRun

_LIBRARIES = 240 * MIB
"""beyond the context in nearly every row of the H200"""


def overhead_of(gpu: Gpu, run: ScriptRun) -> Overhead:
    """The same for every program that used a GPU."""
    context = gpu.context_bytes or find_gpu(DEFAULT_GPU).context_bytes or 0
    libraries = _LIBRARIES if run.devices else 0
    return Overhead(
        context + libraries, (("context", context), ("libraries", libraries)), "NVIDIA H200", True
    )
