"""What the GPUs of this machine say of themselves now, through NVML; a value that is not available is None."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from hotbed.errors import PlatformError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")


@dataclass(frozen=True)
class LiveProcess:
    """A process with a context on a GPU. `used_bytes` is None where the driver hides it, as inside containers."""

    pid: int
    used_bytes: int | None


@dataclass(frozen=True)
class LiveGpu:
    """One GPU as NVML sees it now. `index` is NVML's, which CUDA_VISIBLE_DEVICES does not change."""

    index: int
    name: str | None
    uuid: str | None
    pci_bus_id: str | None
    total_bytes: int | None
    used_bytes: int | None
    free_bytes: int | None
    compute_capability: tuple[int, int] | None
    utilization_percent: int | None
    temperature_c: int | None
    power_w: float | None
    power_limit_w: float | None
    mig_enabled: bool | None
    processes: tuple[LiveProcess, ...] | None


@dataclass(frozen=True)
class LiveDriver:
    """The installed driver: its version, and the newest CUDA it supports as (major, minor)."""

    version: str | None
    cuda_version: tuple[int, int] | None


def live_gpus() -> tuple[LiveGpu, ...]:
    """Every GPU that NVML lists, none when there is a driver without GPUs.

    Raises PlatformError when there is no NVIDIA driver, or none that answers.
    """
    with _session() as nvml:
        count = ask(nvml.nvmlDeviceGetCount) or 0
        handles = [(index, ask(nvml.nvmlDeviceGetHandleByIndex, index)) for index in range(count)]
        return tuple(_gpu(nvml, index, handle) for index, handle in handles if handle is not None)


def live_driver() -> LiveDriver:
    """The NVIDIA driver of this machine. Raises PlatformError when there is none, or none that answers."""
    with _session() as nvml:
        version = ask(nvml.nvmlSystemGetDriverVersion)
        cuda = ask(nvml.nvmlSystemGetCudaDriverVersion_v2)
        return LiveDriver(version, (cuda // 1000, cuda % 1000 // 10) if cuda else None)


def ask(call: Callable[..., T], *args: object) -> T | None:
    """The answer of one NVML call, None when this GPU, driver or user does not get one.

    Raises PlatformError when NVML as a whole does not work: no driver, or a library that does not match it.
    """
    import pynvml as nvml

    broken = (
        nvml.NVML_ERROR_UNINITIALIZED,
        nvml.NVML_ERROR_DRIVER_NOT_LOADED,
        nvml.NVML_ERROR_LIBRARY_NOT_FOUND,
        nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    )
    try:
        return call(*args)
    except nvml.NVMLError as error:
        if error.value in broken:
            hint = "nvidia-smi must work first; on a machine without a GPU use `hotbed phantom run`"
            raise PlatformError(f"NVIDIA's management library does not answer: {error}", hint=hint) from None
        return None


@contextmanager
def _session() -> Iterator[Any]:
    import pynvml as nvml

    ask(nvml.nvmlInit)
    try:
        yield nvml
    finally:
        ask(nvml.nvmlShutdown)


def _gpu(nvml: Any, index: int, handle: Any) -> LiveGpu:
    memory = ask(nvml.nvmlDeviceGetMemoryInfo, handle)
    load = ask(nvml.nvmlDeviceGetUtilizationRates, handle)
    pci = ask(nvml.nvmlDeviceGetPciInfo, handle)
    mig = ask(nvml.nvmlDeviceGetMigMode, handle)
    milliwatts = ask(nvml.nvmlDeviceGetPowerUsage, handle)
    limit_milliwatts = ask(nvml.nvmlDeviceGetPowerManagementLimit, handle)
    capability = ask(nvml.nvmlDeviceGetCudaComputeCapability, handle)
    return LiveGpu(
        index=index,
        name=ask(nvml.nvmlDeviceGetName, handle),
        uuid=ask(nvml.nvmlDeviceGetUUID, handle),
        pci_bus_id=None if pci is None else pci.busId,
        total_bytes=None if memory is None else memory.total,
        used_bytes=None if memory is None else memory.used,
        free_bytes=None if memory is None else memory.free,
        compute_capability=None if capability is None else (capability[0], capability[1]),
        utilization_percent=None if load is None else load.gpu,
        temperature_c=ask(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
        power_w=None if milliwatts is None else milliwatts / 1000,
        power_limit_w=None if limit_milliwatts is None else limit_milliwatts / 1000,
        mig_enabled=None if mig is None else mig[0] == nvml.NVML_DEVICE_MIG_ENABLE,
        processes=_processes(nvml, handle),
    )


def _processes(nvml: Any, handle: Any) -> tuple[LiveProcess, ...] | None:
    compute = ask(nvml.nvmlDeviceGetComputeRunningProcesses, handle)
    if compute is None:
        return None
    graphics = ask(nvml.nvmlDeviceGetGraphicsRunningProcesses, handle) or []
    used = {process.pid: process.usedGpuMemory for process in (*compute, *graphics)}
    return tuple(LiveProcess(pid, used[pid]) for pid in sorted(used))
