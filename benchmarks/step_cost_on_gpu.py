"""Claim: a balanced recommendation costs at most 1 % of a step. Step times on the card, default and recommended in turn.

    python benchmarks/step_cost_on_gpu.py choices.jsonl --workloads workloads.py --out results.json

`choices.jsonl` comes from tuned_on_gpu.py choose. Each workload runs ROUNDS times with either; between step 3 and step
12 nothing waits for the GPU that the program does not wait for. Ratios, since machines are noisy.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

NAMES = ("bert_large", "bert_varlen", "token_budget", "llama_ckpt", "detection", "resnet50")
ROUNDS = 3
FIRST, LAST = 3, 12
CLOCK = f"""
import json, os, time, torch
def _timed(kind):
    inner = kind.step
    def step(self, *args, **kwargs):
        result = inner(self, *args, **kwargs)
        _timed.count += 1
        if _timed.count in ({FIRST}, {LAST}):
            torch.cuda.synchronize()
            _timed.marks.append(time.perf_counter())
            json.dump(_timed.marks, open(os.environ["STEP_MARKS"], "w"))
        return result
    kind.step = step
_timed.count, _timed.marks = 0, []
for _kind in (torch.optim.AdamW, torch.optim.SGD):
    _timed(_kind)
"""


def step_ms(row: dict[str, Any], workloads: Path, folder: Path, *, recommended: bool) -> float | None:
    """Mean milliseconds of steps 4 to 12 of one run; None if it did not get there."""
    program, marks = folder / "program.py", folder / "marks.json"
    marks.unlink(missing_ok=True)
    program.write_text(CLOCK + workloads.read_text())
    settings = row["settings"] if recommended else ""
    environment = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": settings, "STEP_MARKS": str(marks)}
    argv = [sys.executable, str(program), row["name"], str(folder), "run", "--steps", str(LAST)]
    if recommended and row["cap_mib"]:
        argv += ["--cap-mib", str(row["cap_mib"])]
    subprocess.run(argv, env=environment, capture_output=True, check=False)
    found = json.loads(marks.read_text()) if marks.exists() else []
    return 1000 * (found[1] - found[0]) / (LAST - FIRST) if len(found) == 2 else None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("choices", type=Path)
    parser.add_argument("--workloads", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = {row["name"]: row for row in map(json.loads, options.choices.read_text().splitlines())}
    results = []
    with tempfile.TemporaryDirectory() as folder:
        step_ms(rows["resnet50"], options.workloads, Path(folder), recommended=False)  # reads all files once
        for name in NAMES:
            pairs = [
                [
                    step_ms(rows[name], options.workloads, Path(folder), recommended=kind)
                    for kind in (False, True)
                ]
                for _ in range(ROUNDS)
            ]
            whole = [(plain, tuned) for plain, tuned in pairs if plain and tuned]
            ratio = median(tuned / plain for plain, tuned in whole) if whole else None
            results.append(
                {
                    "name": name,
                    "step_ms": pairs,
                    "median_ratio": ratio,
                    "modelled_ms": rows[name]["cost_ms_per_step"],
                }
            )
            print(results[-1], flush=True)
            options.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
