"""NVML on the phantom, through hotbed's own reader and nvidia-ml-py."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from hotbed.gpu import find_gpu
from hotbed.phantom import start

PROGRAM = """
import ctypes, json, os
from dataclasses import asdict
from hotbed.gpu.live import live_driver, live_gpus
before = live_gpus()[0].processes
cuda, address = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
cuda.cudaSetDevice(1)
cuda.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(100 << 20))
print(json.dumps({"pid": os.getpid(), "before": before, "gpus": [asdict(gpu) for gpu in live_gpus()],
                  "driver": asdict(live_driver())}))
"""


def seen() -> dict[str, Any]:
    """What a process sees of two T4, before and after it takes 100 MiB of the second."""
    child = start(
        [sys.executable, "-c", PROGRAM], gpu=find_gpu("t4"), count=2, stdout=subprocess.PIPE, text=True
    )
    output, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    result: dict[str, Any] = json.loads(output)
    return result


def test_nvml_shows_this_process_and_its_memory() -> None:
    result = seen()
    first, second = result["gpus"]
    assert result["before"] == first["processes"] == []
    assert second["processes"] == [{"pid": result["pid"], "used_bytes": 100 << 20}]
    assert second["used_bytes"] - first["used_bytes"] == 100 << 20
    assert first["free_bytes"] == find_gpu("t4").total_bytes
    assert second["compute_capability"] == [7, 5]
    assert first["uuid"] != second["uuid"]
    assert first["pci_bus_id"] != second["pci_bus_id"]


def test_what_the_phantom_cannot_measure_is_not_available() -> None:
    gpu = seen()["gpus"][0]
    assert gpu["temperature_c"] is None
    assert gpu["power_w"] is None
    assert gpu["power_limit_w"] is None
    assert gpu["utilization_percent"] == 0
    assert not gpu["mig_enabled"]
