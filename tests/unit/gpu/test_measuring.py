"""Calibration against a made-up driver on a made-up clock: the fit must find the costs that were put in."""

from __future__ import annotations

from ctypes import c_uint64
from typing import Any

import pytest

from hotbed.errors import PlatformError
from hotbed.gpu import measuring
from hotbed.gpu.cuda import ATTRIBUTES
from hotbed.gpu.measuring import Sample, fit, measure
from hotbed.units import GIB, MIB

COSTS_US = {  # base, per MiB
    "cudaMalloc": (30.0, 0.25),
    "cudaFree": (25.0, 0.0),
    "cuMemCreate": (40.0, 1.5),
    "cuMemRelease": (20.0, 0.1),
    "cuMemMap": (5.0, 0.0),
    "cuMemUnmap": (12.0, 0.2),
    "cuMemSetAccess": (15.0, 0.05),
    "cuMemAddressReserve": (8.0, 0.0),
    "cuMemAddressFree": (8.0, 0.0),
    "cuDriverGetVersion": (0.0, 0.0),
}
MEASURED_AS = {
    "cuda_malloc": "cudaMalloc",
    "cuda_free": "cudaFree",
    "mem_create": "cuMemCreate",
    "mem_release": "cuMemRelease",
    "mem_map": "cuMemMap",
    "mem_unmap": "cuMemUnmap",
    "set_access": "cuMemSetAccess",
}


class MadeUpCuda:
    """Device memory as a dict from address or handle to size, and a clock that only its calls advance."""

    runtime = driver = object()

    def __init__(self, total_bytes: int) -> None:
        self.total, self.now_ns, self.next = total_bytes, 0, 1 << 40
        self.sizes: dict[int, int] = {}
        self.peak_bytes = 0
        self.overhead_us = 0.5

    def clock(self) -> int:
        return self.now_ns

    def entry(self, name: str) -> Any:
        def call(*args: Any) -> int:
            size = self._effect(name, args)
            base, slope = COSTS_US[name]
            self.now_ns += int(1000 * (self.overhead_us + base + slope * size / MIB))
            return 0

        return call

    def _effect(self, name: str, args: tuple[Any, ...]) -> int:
        if name in ("cudaMalloc", "cuMemCreate"):
            args[0]._obj.value = self.next
            self.sizes[self.next] = args[1]
            self.next += 1
            self.peak_bytes = max(self.peak_bytes, sum(self.sizes.values()))
            return int(args[1])
        if name in ("cudaFree", "cuMemRelease"):
            address = args[0].value if isinstance(args[0], c_uint64) else args[0]
            return self.sizes.pop(address)
        return int(args[1]) if name in ("cuMemMap", "cuMemUnmap", "cuMemSetAccess") else 0

    def check(self, name: str, code: int) -> None:
        assert code == 0, name

    def free_bytes(self) -> int:
        return self.total - sum(self.sizes.values())

    def total_bytes(self) -> int:
        return self.total

    def attribute(self, number: int) -> int:
        return number

    def has_virtual_memory(self) -> bool:
        return True

    def name(self) -> str:
        return "Made-up GPU"

    def uuid(self) -> str:
        return "GPU-0"

    def driver_version(self) -> tuple[int, int]:
        return 13, 0

    def open_context(self) -> None:
        pass

    def allocation_property(self) -> c_uint64:
        return c_uint64()

    access_description = allocation_property


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> MadeUpCuda:
    made_up = MadeUpCuda(64 * GIB)
    monkeypatch.setattr(measuring, "perf_counter_ns", made_up.clock)
    monkeypatch.setattr(measuring, "live_gpus", lambda: ())
    return made_up


def test_the_fit_finds_the_costs_of_the_driver_without_the_timing_overhead(cuda: MadeUpCuda) -> None:
    measured = measure(cuda, quick=True)  # type: ignore[arg-type]
    for call, entry in MEASURED_AS.items():
        cost = measured.costs[call]
        assert (cost.base_us, cost.us_per_mib) == pytest.approx(COSTS_US[entry], abs=0.01), call
    assert measured.overhead_us == 0.5
    assert measured.reserve_us == 8.0
    assert measured.reserve_bytes == 72 * GIB
    assert measured.figures["sm_count"] == ATTRIBUTES["sm_count"]


def test_measuring_gives_everything_back_and_keeps_to_a_quarter_of_the_memory(cuda: MadeUpCuda) -> None:
    measure(cuda)  # type: ignore[arg-type]
    assert cuda.sizes == {}
    assert cuda.peak_bytes <= cuda.total / 4


def test_a_nearly_full_gpu_is_measured_at_the_sizes_that_fit(cuda: MadeUpCuda) -> None:
    cuda.total = 400 * MIB
    measured = measure(cuda, quick=True)  # type: ignore[arg-type]
    assert {sample.size_mib for sample in measured.samples if sample.mode == "burst"} >= {2, 20, 32}
    assert cuda.peak_bytes <= 100 * MIB


def test_context_is_unknown_when_nvml_is_silent(cuda: MadeUpCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> tuple[()]:
        raise PlatformError("no driver")

    monkeypatch.setattr(measuring, "live_gpus", broken)
    measured = measure(cuda, quick=True)  # type: ignore[arg-type]
    assert measured.context.context_bytes is None
    assert measured.nvml_total_bytes is None


def test_a_line_never_has_a_negative_part() -> None:
    falling = [Sample("mem_map", "burst", mib, us, us, 9) for mib, us in ((2, 12.0), (64, 10.0), (256, 8.0))]
    steep = [Sample("mem_map", "burst", mib, us, us, 9) for mib, us in ((2, 1.0), (64, 64.0), (256, 300.0))]
    assert fit(falling).us_per_mib == 0.0
    assert 8.0 < fit(falling).base_us < 12.0
    assert fit(steep).base_us >= 0.0
