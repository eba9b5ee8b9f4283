"""What is known after a program has run on a phantom GPU: the raw material of a Prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from hotbed.gpu import Gpu
    from hotbed.trace import Trace
    from hotbed.trace.marking.phases import StepMark

Ending = Literal[
    "steps", "end", "until", "time", "host_memory", "interrupted", "error", "out_of_memory", "killed"
]
"""Why the run stopped: enough optimizer steps; the program's own end; its output held the --until text; a limit; Ctrl-C;
an exception of the program; torch.OutOfMemoryError that reached the top; a signal."""


@dataclass(frozen=True)
class Workspace:
    """Device memory lent to a library (cuBLAS, cuDNN): `event` is the alloc event that it came from.

    `alternative_bytes` are the sizes that the same call would have wanted under the other GPC layouts of Gpu.layouts,
    in their order; empty where the layout does not matter. `bytes` may be 0: the call took none, but would have under
    another layout; it came right before `event`.
    """

    event: int
    library: str
    bytes: int
    alternative_bytes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Read:
    """Reads of device values by the program at one place.

    `known`: the bytes were followed from the host to the read. Otherwise `answer` says in words what the program was
    told ("False", "0.0", "random index below 8", "half of the elements"), and a prediction that depends on it is a guess.
    """

    where: str
    """file:line in function"""
    operation: str
    """item, nonzero, copy to host, unique, ..."""
    count: int
    known: bool
    answer: str | None = None


@dataclass(frozen=True)
class ScriptError:
    """The exception that ended the program, as its user would see it."""

    type: str
    message: str
    traceback: str
    requested_bytes: int | None = None
    """size of the request that failed, for an out-of-memory error that names one"""


@dataclass(frozen=True)
class DeviceRun:
    """What one phantom GPU saw. The peaks are torch.cuda.memory_stats() at the end of the run."""

    device: int
    trace: Trace | None
    """with steps and categories; None where the backend records none (cudaMallocAsync)"""
    steps: tuple[StepMark, ...]
    workspaces: tuple[Workspace, ...]
    peak_allocated_bytes: int
    peak_reserved_bytes: int
    peak_driver_bytes: int
    """most bytes that the phantom's driver had given out at once, context included"""
    alloc_retries: int
    ooms: int


def failed_by_itself(ending: Ending, exit_code: int | None) -> bool:
    """Whether a program came to a bad end of its own: an exception, a signal, an exit status; not out of memory."""
    return ending in ("error", "killed") or (ending == "end" and bool(exit_code))


@dataclass(frozen=True)
class ScriptRun:
    """One program, run to its ending on phantom GPUs. `devices` are those that it allocated on, by number."""

    gpu: Gpu
    devices: tuple[DeviceRun, ...]
    ending: Ending
    script_exit_code: int | None
    """of the program itself, where it came to its own end"""
    error: ScriptError | None
    optimizer_steps: int
    torch_version: str
    cudnn_version: str | None
    settings: str
    """allocator settings in force, as an env string"""
    libraries: tuple[tuple[str, int], ...]
    """calls into each CUDA library that was used at all: ("kernels", 812), ("cublas", 40), ...; and how many handles and
    streams were made: ("cublas handles", 2), ..."""
    reads: tuple[Read, ...]
    not_modelled: tuple[str, ...]
    """sentences: entry points without a model, lower-confidence paths, what this program did that memory depends on"""
    host_peak_bytes: int
    """most resident memory of the program's process"""
    host_model_bytes: int
    """parameters and buffers that were built on the CPU before they went to the device"""
    wall_seconds: float
    passes: tuple[str, ...] = ()
    """the runs that it took, e.g. ("plain",) or ("plain, stopped at a read", "learn", "answered")"""
    used_gpu: bool = True
    """whether its process had a CUDA context"""
    seed: int = 0
    """that guessed values were drawn with"""
    further: tuple[ScriptRun, ...] = ()
    """the same program with other seeds, where sizes rest on guesses; this one reserved the most"""
    unrecorded: str | None = None
    """what hides the memory of all or a part of the program, in words: it left no report, a child used the GPU"""
