"""Claim: recording with Python stacks costs under 2 % of a training step of 1,000 allocations on an H200.

    python benchmarks/record_overhead.py --out results/record_overhead.jsonl

Two loops, each plain and recorded in fresh processes, in turns: "gpu", a transformer of 12 layers whose steps keep the GPU busy,
and "host", the same with so little work that the host is what takes the time. Behind a first row on the machine, a row a process, written at once: median and mean
milliseconds of the steps after the first 20 (the mean has the readings in it), allocations a step. The last rows compare: the
median over rounds of recorded / plain.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parent.parent
SHAPES = {"gpu": (32, 512, 768, 12), "host": (2, 16, 96, 4)}
"""batch, tokens, width, heads"""
LAYERS = 12
UNCOUNTED = 20


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each process trains")
    parser.add_argument("--workloads", nargs="*", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--torch", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", nargs=2, metavar=("WORKLOAD", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        _train(options.child[0], options.child[1], options.seconds)
        return 0
    if options.out:
        with options.out.open("w") as out:
            _measure(options, out)
    else:
        _measure(options, sys.stdout)
    return 0


def _measure(options: argparse.Namespace, out: IO[str]) -> None:
    print(json.dumps(_about()), file=out, flush=True)
    rows: list[dict[str, Any]] = []
    for number in range(options.rounds):
        for workload in options.workloads:
            # Turns about: what the machine does meanwhile meets both.
            for recorded in (False, True) if number % 2 == 0 else (True, False):
                row = {"round": number, **_row(options, workload, recorded)}
                rows.append(row)
                print(json.dumps(row), file=out, flush=True)
    for workload in options.workloads:
        print(json.dumps(_compared(workload, rows)), file=out, flush=True)


def _about() -> dict[str, Any]:
    driver = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return {
        "claim": (__doc__ or "").splitlines()[0].removeprefix("Claim: "),
        "hardware": f"{subprocess.check_output(driver, text=True).strip()}; {os.cpu_count()} CPU cores",
        "hotbed": version("hotbed"),
        "command": shlex.join(["python", *sys.argv]),
        "date": date.today().isoformat(),
    }


def _row(options: argparse.Namespace, workload: str, recorded: bool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.hbt"
        argv = [options.torch, __file__, "--seconds", str(options.seconds)]
        argv += ["--child", workload, str(path) if recorded else ""]
        env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{os.environ.get('PYTHONPATH', '')}"}
        result = subprocess.run(argv, env=env, stdout=subprocess.PIPE, text=True, check=True)
        row: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
        return {**row, "file_bytes": path.stat().st_size if recorded else None}


def _compared(workload: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    mine = [row for row in rows if row["workload"] == workload]
    ratios: dict[str, list[float]] = {"median_ms": [], "mean_ms": []}
    for number in {row["round"] for row in mine}:
        pair = {row["recorded"]: row for row in mine if row["round"] == number}
        for name, found in ratios.items():
            found.append(pair[True][name] / pair[False][name])
    return {
        "workload": workload,
        "recorded_over_plain": {name: round(statistics.median(found), 4) for name, found in ratios.items()},
        "of_rounds": {name: [round(ratio, 4) for ratio in found] for name, found in ratios.items()},
    }


def _train(workload: str, path: str, seconds: float) -> None:
    import torch

    import hotbed

    batch, tokens, width, heads = SHAPES[workload]
    torch.manual_seed(0)
    if path:
        hotbed.record.start(path)
    layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    host = torch.randn(batch, tokens, width)

    def step() -> float:
        begun = time.perf_counter()
        optimizer.zero_grad()
        model(host.cuda()).square().mean().backward()
        optimizer.step()
        torch.cuda.synchronize()
        return (time.perf_counter() - begun) * 1e3

    for _ in range(UNCOUNTED):
        step()
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        taken.append(step())
    made = torch.cuda.memory_stats()["allocation.all.allocated"] - before
    hotbed.record.stop()
    row = {
        "workload": workload,
        "recorded": bool(path),
        "steps": len(taken),
        "median_ms": round(statistics.median(taken), 4),
        "mean_ms": round(statistics.fmean(taken), 4),
        "allocations_per_step": round(made / len(taken)),
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
    }
    print(json.dumps(row))


if __name__ == "__main__":
    sys.exit(main())
