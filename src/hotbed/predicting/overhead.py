"""Device memory of a process that no allocator sees: the CUDA context, and what libraries load and keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotbed.gpu.library_growth import library_growth_for
from hotbed.predicting.prediction import Overhead

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotbed.gpu import Gpu
    from hotbed.predicting.script_run import ScriptRun

_ONCE = {
    "kernels": "kernels",
    "cublas": "cuBLAS",
    "cudnn": "cuDNN",
    "cusolver": "cuSOLVER",
    "cusparse": "cuSPARSE",
    "cufft": "cuFFT",
    "nccl": "NCCL",
    "streams": "streams",
}
"""first uses that add memory, and their names for people"""
_EACH = {"cublas handles": ("cublas handle", "cublas"), "cudnn handles": ("cudnn handle", "cudnn")}
"""count in ScriptRun.libraries: (what each one after the first adds, the first use that it belongs to)"""


def overhead_of(gpu: Gpu, run: ScriptRun) -> Overhead:
    """What a process that used the libraries of `run` takes on `gpu`, by the growth measured on it or, else, on an H200.

    Nothing where it had no context.
    """
    growth = library_growth_for(gpu)
    if not run.used_gpu:
        return Overhead(0, (), growth.card, estimated=False)
    measured_here = growth.card == gpu.name
    context = growth.context_bytes if measured_here or gpu.context_bytes is None else gpu.context_bytes
    added: dict[str, int] = {}
    for use, name, count in _uses(run):
        added[name] = added.get(name, 0) + count * growth.added_by(use)
    parts = (("CUDA context", context), *((name, size) for name, size in added.items() if size))
    return Overhead(
        bytes=sum(size for _, size in parts),
        parts=parts,
        measured_on=growth.card,
        estimated=not measured_here,
    )


def _uses(run: ScriptRun) -> Iterator[tuple[str, str, int]]:
    """(what was used, its name for people, how often it adds memory) on one device of `run`."""
    for what, count in run.libraries:
        if what in _ONCE:
            yield what, _ONCE[what], 1
        elif what in _EACH:
            # Each thread has handles of its own on each device, autograd's thread too.
            use, belongs_to = _EACH[what]
            yield use, _ONCE[belongs_to], -(-count // max(1, len(run.devices))) - 1
