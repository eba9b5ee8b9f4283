"""Memory beside the allocator, against what NVML said of each program of zoo.jsonl on the H200."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hotbed.gpu import find_gpu
from hotbed.predicting.overhead import overhead_of
from hotbed.predicting.script_run import DeviceRun, ScriptRun
from hotbed.units import MIB

if TYPE_CHECKING:
    from pathlib import Path

H200 = find_gpu("h200")
KERNELS = (("kernels", 1000),)
PRODUCTS = (("cublas", 50), ("cublas handles", 2))
CONVOLUTIONS = (("cudnn", 30), ("cudnn handles", 2))


def run_with(libraries: tuple[tuple[str, int], ...], devices: int = 1) -> ScriptRun:
    each = tuple(DeviceRun(device, None, (), (), 0, 0, 0, 0, 0) for device in range(devices))
    return ScriptRun(H200, each, "end", 0, None, 4, "2.11.0", "9.19.0", "", libraries, (), (), 0, 0, 1.0)


def test_every_program_measured_on_the_card_is_within_four_mib(data: Path) -> None:
    """Segmentation nets multiply no matrices; text models in fp32 have no use for cuDNN."""
    text = ("hf:bert", "hf:distilbert", "hf:gpt2", "hf:opt")
    for row in map(json.loads, (data / "h200" / "zoo.jsonl").read_text().splitlines()):
        libraries = KERNELS
        if not row["spec"].startswith("seg:"):
            libraries += PRODUCTS
        if not row["spec"].startswith(text):
            libraries += CONVOLUTIONS
        overhead = overhead_of(H200, run_with(libraries))
        measured = row["process_used"] - row["reserved_now"]
        assert abs(overhead.bytes - measured) <= 4 * MIB, row["spec"]
        assert not overhead.estimated


def test_a_process_that_only_looked_at_the_gpu_has_a_context() -> None:
    overhead = overhead_of(H200, run_with(()))
    assert overhead.parts == (("CUDA context", 518 * MIB),)


def test_handles_are_counted_on_each_device() -> None:
    one = overhead_of(H200, run_with((("cublas", 9), ("cublas handles", 2))))
    four_on_two = overhead_of(H200, run_with((("cublas", 9), ("cublas handles", 4)), devices=2))
    assert four_on_two.bytes == one.bytes


def test_another_card_is_estimated_from_the_h200() -> None:
    overhead = overhead_of(find_gpu("a100-80"), run_with(KERNELS))
    assert overhead.estimated
    assert overhead.measured_on == "NVIDIA H200"
    assert overhead.bytes > 518 * MIB
