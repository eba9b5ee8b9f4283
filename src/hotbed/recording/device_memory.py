"""What NVML counts for this process and for the others on a device; through ctypes, since nothing else may be there."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from functools import cache
from typing import Any

_MOST_PROCESSES = 256
_UNKNOWN = (1 << 64) - 1


@dataclass(frozen=True)
class Seen:
    """Bytes of device memory; None where NVML does not say: no driver, another pid namespace."""

    process_bytes: int | None
    others_bytes: int | None


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used_bytes", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


def memory_seen(torch: Any, device: int) -> Seen:
    """For the device that torch calls `device`. Raises nothing."""
    try:
        used = _used(torch, device)
    except (OSError, AttributeError, ValueError, RuntimeError):
        used = {}
    mine = used.pop(os.getpid(), None)
    if mine is None or _UNKNOWN in used.values():
        return Seen(mine, None)
    return Seen(mine, sum(used.values()))


def _used(torch: Any, device: int) -> dict[int, int]:
    nvml = _nvml()
    uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}".encode()
    handle = ctypes.c_void_p()
    if nvml.nvmlDeviceGetHandleByUUID(uuid, ctypes.byref(handle)):
        return {}
    count = ctypes.c_uint(_MOST_PROCESSES)
    rows = (_Process * _MOST_PROCESSES)()
    if nvml.nvmlDeviceGetComputeRunningProcesses_v3(handle, ctypes.byref(count), rows):
        return {}
    return {row.pid: row.used_bytes for row in rows[: count.value] if row.used_bytes != _UNKNOWN}


@cache
def _nvml() -> Any:
    library = ctypes.CDLL("libnvidia-ml.so.1")
    if library.nvmlInit_v2():
        raise OSError("NVML does not start")
    return library
