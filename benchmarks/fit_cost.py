"""Claim: a prediction takes seconds and little host memory, and the same program gives the same peaks each time.

python benchmarks/fit_cost.py --torch PYTHON [--times 5] [--only TEXT] --out results/fit_cost.json
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from statistics import median
from typing import Any

from zoo_accuracy import DATA, FITTED, about, predicted, zoo_rows

# One of each kind: convolutions, recurrent, attention, half precision, values read back, built on the CPU, checkpointed.
SPECS = (
    "tv:resnet50:sgdm:fp32:32",
    "tv:convnext_tiny:adamw:fp32:64",
    "rnn:LSTM:adam:fp32:64:128",
    "timm:mixer_b16_224:adamw:bf16amp:64",
    "hf:bert_base:adamw:fp32:32:128",
    "hf:opt_125m:adam:fp32:8:1024",
    "hf:llama_1b:adamw:bf16:2:4096:ckpt",
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--torch", default=sys.executable)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.gpu, options.jobs, options.set = str(FITTED), 1, "zoo"
    os.environ["HF_HUB_OFFLINE"] = "1"
    rows = {row.spec: row for row in zoo_rows(DATA / "zoo.jsonl") if not row.settings}
    costs: list[dict[str, Any]] = []
    for spec in SPECS:
        if options.only not in spec:
            continue
        runs = [
            predicted(rows[spec], DATA / "zoo.py", options.torch, options.gpu) for _ in range(options.times)
        ]
        costs.append(_cost(spec, runs))
        print(costs[-1], flush=True)
        document = {**about(options), "claim": "cost and repeatability of hotbed.fit", "rows": costs}
        options.out.write_text(json.dumps(document, indent=1) + "\n")


def _cost(spec: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    done = [run for run in runs if "predicted" in run]
    peaks = {json.dumps(run["predicted"], sort_keys=True) for run in done}
    return {
        "spec": spec,
        "runs": len(runs),
        "failed": [run["error"] for run in runs if "predicted" not in run],
        "identical": len(peaks) == 1,
        "wall_s": [run["wall_s"] for run in done],
        "median_wall_s": median(run["wall_s"] for run in done) if done else None,
        "host_peak_gib": max((run["host_peak"] for run in done), default=0) / (1 << 30),
    }


if __name__ == "__main__":
    main()
