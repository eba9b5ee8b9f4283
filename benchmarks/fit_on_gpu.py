"""Claim: what hotbed.fit predicts holds on the card, also as a cap.

    python benchmarks/fit_on_gpu.py --out FOLDER

On a machine with a GPU: calibrates that very card, predicts each program for it on the phantom there, then runs it on the
card with its memory limited to the predicted reserved peak and the predicted margin. Everything is written to
FOLDER/fit_on_gpu.jsonl as it comes, the calibration to FOLDER/card.toml.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hotbed
from hotbed.errors import HotbedError
from hotbed.units import MIB

if TYPE_CHECKING:
    from collections.abc import Sequence

DATA = Path(__file__).parent.parent / "tests" / "data" / "h200"
PROGRAMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("zoo.py", ("tv:resnet50:sgdm:fp32:64", os.devnull)),
    ("zoo.py", ("tv:vgg16:sgdm:fp32:32", os.devnull)),
    ("zoo.py", ("rnn:GRU:adam:fp32:32:200", os.devnull)),
    ("zoo.py", ("hf:gpt2:adamw:bf16amp:4:1024", os.devnull)),
    ("zoo.py", ("hf:qwen2_05b:adamw:bf16:2:2048:ckpt", os.devnull)),
    ("workloads.py", ("token_budget", tempfile.gettempdir(), "cap", "--steps", "8")),
    ("routed.py", ("moe",)),
    ("routed.py", ("generate",)),
    ("workloads.py", ("detection", tempfile.gettempdir(), "cap", "--steps", "6")),
)
# Runs a program with a limit, then says what its allocator and NVML saw. The program may end itself with an error.
CAPPED = """
import json, os, runpy, sys
import torch
cap, report, sys.argv = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
if cap:
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(cap / total)
raised = None
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
except torch.OutOfMemoryError as error:
    raised = str(error)[:300]
stats = torch.cuda.memory_stats()
used = None
try:
    import pynvml
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    used = next((p.usedGpuMemory for p in pynvml.nvmlDeviceGetComputeRunningProcesses(handle) if p.pid == os.getpid()), None)
except Exception as error:
    used = repr(error)
names = ("allocated_bytes.all.peak", "reserved_bytes.all.peak", "reserved_bytes.all.current", "num_ooms", "num_alloc_retries")
json.dump({"oom": raised, "process_used": used, **{name: stats.get(name, 0) for name in names}}, open(report, "w"))
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    card = options.out / "card.toml"
    calibrate = [sys.executable, "-m", "hotbed", "calibrate", "--out", str(card), "--force"]
    started = time.perf_counter()
    subprocess.run(calibrate, check=True)
    print(f"calibrated in {time.perf_counter() - started:.1f} s", flush=True)
    with (options.out / "fit_on_gpu.jsonl").open("w") as file:
        for name, arguments in PROGRAMS:
            if options.only in " ".join(arguments):
                row = _compared(DATA / name, arguments, card)
                file.write(json.dumps(row) + "\n")
                file.flush()
                print(row, flush=True)


def _compared(program: Path, arguments: Sequence[str], card: Path) -> dict[str, Any]:
    row: dict[str, Any] = {"program": program.name, "arguments": list(arguments)}
    cap = 0
    try:
        found = hotbed.fit(program, str(card), args=arguments, steps=None, settings="", echo="none")
        cap = found.peak_reserved_bytes + found.margin_bytes
        row["predicted"] = {
            "allocated_bytes": found.peak_allocated_bytes,
            "reserved_bytes": found.peak_reserved_bytes,
            "used_bytes": found.device_used_bytes,
            "margin_bytes": found.margin_bytes,
            "overhead": dict(found.overhead.parts),
            "guesses": len(found.guesses),
            "not_modelled": list(found.not_modelled),
            "wall_s": round(found.wall_seconds, 2),
            "error": found.error and found.error.message[:500],
        }
    except HotbedError as error:
        row["error"] = str(error)
    row["capped"] = _run(program, arguments, cap)
    row["uncapped"] = _run(program, arguments, 0)
    return row


def _run(program: Path, arguments: Sequence[str], cap_bytes: int) -> dict[str, Any]:
    """Peaks of one run on the card, limited to `cap_bytes` unless that is 0."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = [sys.executable, "-c", CAPPED, str(cap_bytes), str(report), str(program), *arguments]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if not report.exists():
            return {"failed": done.stderr[-500:]}
        result: dict[str, Any] = json.loads(report.read_text())
        return {"cap_mib": cap_bytes / MIB, **result}


if __name__ == "__main__":
    main()
