"""Claim: what hotbed tune recommends without a GPU does on the card what was predicted.

    python benchmarks/tuned_on_gpu.py choose --torch PYTHON --out choices.jsonl
        tunes each shipped trace (goal balanced) with the torch that will run on the card
    python benchmarks/tuned_on_gpu.py run choices.jsonl --workloads workloads.py --out measured.jsonl
        on the card: each workload once with its default and once as recommended, then variable ones with other seeds
    python benchmarks/tuned_on_gpu.py compare choices.jsonl measured.jsonl --out results.json

`workloads.py NAME OUTDIR TAG [--cap-mib N]` is the program that the traces were recorded from; it writes
OUTDIR/NAME.TAG.json with torch.cuda.memory_stats() under "stats" and the error under "oom".
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
from typing import Any

MIB = 1 << 20
DATA = Path(__file__).parent.parent / "tests" / "data" / "h200"
STEPS = {"kv_serving": 20, "empty_cache_loop": 8}
VARIABLE = ("bert_varlen", "detection", "kv_serving", "streams", "token_budget", "unet_mixed")
OTHER_SEEDS = (1, 2)
TIMINGS = 24


def choose(python: str | None, out: Path) -> None:
    """One line a trace: the recommendation, and the spread of its peak over event times and addresses."""
    from hotbed.replaying import Replayer, compile_trace, gpu_for
    from hotbed.trace import load_trace
    from hotbed.tuning import tune
    from hotbed.tuning.variants import with_timing

    with out.open("w") as file:
        for path in sorted(DATA.glob("*.record.pickle.xz")):
            trace = load_trace(path)
            found = tune(trace, python=python)
            choice = found.recommended
            program = compile_trace(trace)
            programs = [program]
            if program.has_pending_frees:
                programs += [with_timing(program, seed) for seed in (None, *range(TIMINGS))]
            with Replayer(gpu_for(None, program), python=python) as replayer:
                pending = [
                    replayer.submit(trace, variant, choice.settings, choice.cap_bytes, rule)
                    for variant in programs
                    for rule in ("recorded", "driver", "ascending", "descending")
                ]
                peaks = [result().peak_reserved_bytes for result in pending]
            row = {
                "name": path.name.split(".")[0],
                "settings": choice.settings,
                "cap_mib": choice.cap_bytes // MIB if choice.cap_bytes else None,
                "predicted_mib": choice.peak_reserved_bytes / MIB,
                "spread_mib": [min(peaks) / MIB, max(peaks) / MIB],
                "default_mib": found.default.peak_reserved_bytes / MIB,
                "lower_bound_mib": found.lower_bound_bytes / MIB,
                "cost_ms_per_step": choice.cost_ms_per_step,
                "step_ms": found.step_ms,
                "torch": found.torch_version,
                "recommendation": found.to_json(),
            }
            file.write(json.dumps(row) + "\n")
            file.flush()
            print(
                row["name"],
                row["settings"],
                row["cap_mib"],
                row["predicted_mib"],
                row["spread_mib"],
                flush=True,
            )


def run(choices: Path, workloads: Path, out: Path) -> None:
    """Runs everything on this machine's GPU; each result is flushed as it comes."""
    rows = [json.loads(line) for line in choices.read_text().splitlines()]
    with out.open("w") as file, tempfile.TemporaryDirectory() as folder:
        jobs = [(row, "recommended", 0) for row in rows] + [(row, "default", 0) for row in rows]
        jobs += [
            (row, "recommended", seed) for row in rows for seed in OTHER_SEEDS if row["name"] in VARIABLE
        ]
        for row, kind, seed in jobs:
            measured = _run_one(row, kind, seed, workloads, Path(folder))
            file.write(json.dumps(measured) + "\n")
            file.flush()
            print(measured["name"], kind, seed, measured["reserved_mib"], measured["oom"], flush=True)


def _run_one(row: dict[str, Any], kind: str, seed: int, workloads: Path, folder: Path) -> dict[str, Any]:
    recommended = kind == "recommended"
    environment = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": row["settings"] if recommended else ""}
    program = folder / f"workloads-{seed}.py"
    program.write_text(
        workloads.read_text()
        .replace("random.Random(0)", f"random.Random({seed})")
        .replace("torch.manual_seed(0)", f"torch.manual_seed({seed})")
    )
    argv = [
        sys.executable,
        str(program),
        row["name"],
        str(folder),
        kind,
        "--steps",
        str(STEPS.get(row["name"], 12)),
    ]
    if recommended and row["cap_mib"]:
        argv += ["--cap-mib", str(row["cap_mib"])]
    started = time.perf_counter()
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    result: dict[str, Any] = {
        "name": row["name"],
        "kind": kind,
        "seed": seed,
        "wall_s": time.perf_counter() - started,
    }
    file = folder / f"{row['name']}.{kind}.json"
    if done.returncode or not file.exists():
        return {**result, "oom": None, "reserved_mib": None, "error": done.stderr[-500:]}
    measured = json.loads(file.read_text())
    file.unlink()
    stats = measured["stats"]
    return {
        **result,
        "seconds": measured["seconds"],
        "oom": measured["oom"],
        "num_ooms": stats["num_ooms"],
        "reserved_mib": stats["reserved_bytes.all.peak"] / MIB,
        "allocated_mib": stats["allocated_bytes.all.peak"] / MIB,
        "device_mallocs": stats["num_device_alloc"],
        "device_frees": stats["num_device_free"],
        "retries": stats["num_alloc_retries"],
        "torch": measured["torch"],
    }


def compare(choices: Path, measured: Path, out: Path | None) -> None:
    """Predicted against measured, a line each."""
    rows = {row["name"]: row for row in map(json.loads, choices.read_text().splitlines())}
    runs = list(map(json.loads, measured.read_text().splitlines()))
    table = []
    for name, row in rows.items():
        real = next(
            run for run in runs if (run["name"], run["kind"], run["seed"]) == (name, "recommended", 0)
        )
        plain = next(run for run in runs if (run["name"], run["kind"], run["seed"]) == (name, "default", 0))
        others = [run for run in runs if run["name"] == name and run["seed"]]
        table.append(
            {
                "name": name,
                "settings": row["settings"],
                "cap_mib": row["cap_mib"],
                "predicted_mib": row["predicted_mib"],
                "spread_mib": row["spread_mib"],
                "measured_mib": real["reserved_mib"],
                "error_percent": round(100 * (row["predicted_mib"] / real["reserved_mib"] - 1), 3),
                "ran_out_of_memory": real["oom"] is not None,
                "default_mib": plain["reserved_mib"],
                "seconds_against_default": round(real["seconds"] / plain["seconds"], 3),
                "other_seeds": [
                    {"seed": run["seed"], "oom": run["oom"] is not None, "reserved_mib": run["reserved_mib"]}
                    for run in others
                ],
            }
        )
        print(table[-1])
    if out:
        document = {
            "claim": "recommendations hold on the card",
            "hardware": "NVIDIA H200, driver 580.159.04",
            "torch": next(run["torch"] for run in runs if "torch" in run),
            "command": "choose, run, compare of benchmarks/tuned_on_gpu.py",
            "rows": table,
        }
        out.write_text(json.dumps(document, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    first = verbs.add_parser("choose")
    first.add_argument("--torch")
    first.add_argument("--out", type=Path, required=True)
    second = verbs.add_parser("run")
    second.add_argument("choices", type=Path)
    second.add_argument("--workloads", type=Path, required=True)
    second.add_argument("--out", type=Path, required=True)
    third = verbs.add_parser("compare")
    third.add_argument("choices", type=Path)
    third.add_argument("measured", type=Path)
    third.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.verb == "choose":
        choose(options.torch, options.out)
    elif options.verb == "run":
        run(options.choices, options.workloads, options.out)
    else:
        compare(options.choices, options.measured, options.out)


if __name__ == "__main__":
    main()
