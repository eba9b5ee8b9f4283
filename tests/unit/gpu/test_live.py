"""Live facts: what NVML does not tell is None; a machine without a driver gets a sentence, not a traceback."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from hotbed.errors import PlatformError
from hotbed.gpu.live import LiveProcess, ask, live_driver, live_gpus
from hotbed.units import MIB


def refuse(code: int) -> Any:
    def call(*_: object) -> Any:
        raise pynvml.NVMLError(code)

    return call


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> None:
    """One GPU that tells its name, memory, clocks and processes; every other question is "not supported"."""
    answers = {
        "nvmlInit": None,
        "nvmlShutdown": None,
        "nvmlDeviceGetCount": 1,
        "nvmlDeviceGetHandleByIndex": "handle",
        "nvmlDeviceGetName": "NVIDIA H200",
        "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=143771 * MIB, used=5 * MIB, free=143766 * MIB),
        "nvmlDeviceGetPowerUsage": 76543,
        "nvmlDeviceGetCudaComputeCapability": [9, 0],
        "nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=42, usedGpuMemory=None)],
        "nvmlSystemGetDriverVersion": "580.159.04",
        "nvmlSystemGetCudaDriverVersion_v2": 13000,
    }
    for name in dir(pynvml):
        if name.startswith(("nvmlDeviceGet", "nvmlSystemGet")) or name in answers:
            unsupported = refuse(pynvml.NVML_ERROR_NOT_SUPPORTED)
            answer = (lambda *_, name=name: answers[name]) if name in answers else unsupported
            monkeypatch.setattr(pynvml, name, answer)


def test_known_values_come_through_in_the_units_of_their_names(card: None) -> None:
    (gpu,) = live_gpus()
    assert (gpu.name, gpu.total_bytes, gpu.used_bytes) == ("NVIDIA H200", 143771 * MIB, 5 * MIB)
    assert gpu.compute_capability == (9, 0)
    assert gpu.power_w == 76.543
    assert live_driver().cuda_version == (13, 0)


def test_values_that_nvml_does_not_tell_are_none(card: None) -> None:
    (gpu,) = live_gpus()
    assert (gpu.temperature_c, gpu.utilization_percent, gpu.mig_enabled, gpu.uuid) == (None,) * 4
    assert gpu.processes == (LiveProcess(42, None),)


@pytest.mark.parametrize(
    "code", [pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH]
)
def test_no_working_driver_is_one_clear_error(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    monkeypatch.setattr(pynvml, "nvmlInit", refuse(code))
    with pytest.raises(PlatformError, match="does not answer"):
        live_gpus()


def test_one_refused_question_is_an_answer() -> None:
    assert ask(refuse(pynvml.NVML_ERROR_NO_PERMISSION)) is None
    assert ask(int, "7") == 7
