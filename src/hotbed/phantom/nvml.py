"""What NVML shows of phantom GPUs, asked in a process that runs on them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotbed.errors import InternalError
from hotbed.phantom.start import LEAVE_WORKING_FOLDER, start

if TYPE_CHECKING:
    from hotbed.gpu import Gpu

_PROGRAM = """
import json
from hotbed.gpu.live import live_gpus
keys = ("index", "name", "uuid", "total_bytes", "used_bytes")
print(json.dumps([{key: getattr(gpu, key) for key in keys} for gpu in live_gpus()]))
"""


@dataclass(frozen=True)
class SeenGpu:
    """One phantom GPU in NVML's eyes; `used_bytes` includes what the driver keeps for itself."""

    index: int
    name: str
    uuid: str
    total_bytes: int
    used_bytes: int


def seen_by_nvml(gpu: Gpu, count: int) -> tuple[SeenGpu, ...]:
    """The `count` phantom GPUs of model `gpu` before any program uses them. Raises InternalError without answer."""
    child = start(
        [sys.executable, "-c", LEAVE_WORKING_FOLDER + _PROGRAM],
        gpu=gpu,
        count=count,
        stdout=subprocess.PIPE,
        text=True,
    )
    answer, _ = child.communicate()
    if child.returncode:
        raise InternalError(f"NVML does not answer on the phantom: exit status {child.returncode}")
    return tuple(SeenGpu(**row) for row in json.loads(answer))
