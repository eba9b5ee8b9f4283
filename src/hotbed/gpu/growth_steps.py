"""Uses one CUDA library of torch after the other and waits after each, so that somebody else can measure this process.

Runs as a program in the interpreter whose torch is measured: stdlib, torch and the neighbour cudnn_device, loaded by path.
Prints one JSON object a line: first the versions, then, for each step, its name and what torch's allocator holds. It goes on when
a line comes in. Last comes what cuDNN says of the device.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import threading
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def say(**values: Any) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def steps(torch: Any) -> dict[str, Callable[[], object]]:
    """What to do for each step, in order; each is small and computes nothing of interest."""
    square = torch.full((64, 64), 0.5)

    def on_device() -> Any:
        return square.cuda()

    def multiply() -> None:
        on_device() @ on_device()

    def convolve() -> None:
        images = on_device().reshape(1, 4, 32, 32)
        torch.nn.functional.conv2d(images, on_device()[:9, :16].reshape(4, 4, 3, 3))

    def solve() -> None:
        positive = on_device() + 64 * torch.eye(64, device="cuda")
        torch.linalg.cholesky(positive)
        torch.linalg.qr(positive)
        torch.linalg.eigh(positive)

    def compute() -> None:
        values = on_device() + 1
        values.scatter_add_(0, torch.zeros_like(values, dtype=torch.int64), values + 1)
        torch.nn.functional.layer_norm(values, values.shape).softmax(-1).sum().item()
        torch.nn.functional.adaptive_avg_pool2d(values[None], 1)

    return {
        "context": torch.cuda.synchronize,
        "kernels": compute,
        "cublas": multiply,
        "cublas handle": lambda: beside(multiply),
        "cublaslt": lambda: torch._addmm_activation(on_device()[0], on_device(), on_device(), use_gelu=True),
        "cudnn": convolve,
        "cudnn handle": lambda: beside(convolve),
        "cusolver": solve,
        "cufft": lambda: torch.fft.rfft(on_device()),
        "cusparse": lambda: on_device().to_sparse_csr() @ on_device(),
        "streams": torch.cuda.Stream,
    }


def beside(work: Callable[[], object]) -> None:
    """Does `work` in a thread that then stays: library handles belong to threads and outlive the work."""
    done = threading.Event()

    def stay() -> None:
        try:
            work()
        finally:
            done.set()
        threading.Event().wait()

    threading.Thread(target=stay, daemon=True).start()
    done.wait()


def device_of_cudnn() -> dict[str, Any]:
    """What the neighbour cudnn_device reads, or {"failed": why}."""
    path = Path(__file__).with_name("cudnn_device.py")
    spec = importlib.util.spec_from_file_location("cudnn_device", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["cudnn_device"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        return asdict(module.read_device())
    except module.CudnnError as error:
        return {"failed": str(error)}


def main() -> None:
    warnings.simplefilter("ignore")
    import torch

    torch.cuda.set_device(int(sys.argv[1]))
    say(torch=torch.__version__, cudnn=torch.backends.cudnn.version())
    for name, work in steps(torch).items():
        failed = None
        try:
            work()
            torch.cuda.synchronize()
        except (RuntimeError, AttributeError) as error:
            failed = str(error).splitlines()[0]
        say(step=name, reserved_bytes=torch.cuda.memory_reserved(), failed=failed)
        if not sys.stdin.readline():
            return
    say(cudnn_device=device_of_cudnn())


if __name__ == "__main__":
    main()
