"""Claim: what empty_cache() every step, every tenth or never costs is predicted within 15 % in time, 5 % in bytes.

    python benchmarks/empty_cache_cost.py measure --out measured/       on the card, 3 to 5 minutes on an H200; needs no hotbed there
    python benchmarks/empty_cache_cost.py compare measured/ --out results.json        anywhere

`measure` runs two programs with each cadence, in turn, and records each once without timing it; `compare` predicts from
one recording and the card's calibration, and sets that against what was measured. fine_tune needs transformers; weights are
random, nothing is downloaded.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

CADENCES = (1, 10, 0)
RECORDED = (1, 0)
ROUNDS = 2
STEPS, WARM = 50, 10
NAMES = ("resnet18", "fine_tune")


def resnet18(device: str) -> Any:
    """The step of empty_cache_loop in tests/data/h200/workloads.py."""
    import torch
    import torchvision

    model = torchvision.models.resnet18().to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(_: int) -> None:
        model(torch.randn(64, 3, 224, 224).to(device)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def fine_tune(device: str) -> Any:
    """A causal language model of Hugging Face with sequences of many lengths."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=32000,
        hidden_size=1024,
        intermediate_size=2816,
        num_hidden_layers=12,
        num_attention_heads=16,
        num_key_value_heads=16,
    )
    model = LlamaForCausalLM(config).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    lengths = torch.randint(2, 17, (STEPS,), generator=torch.Generator().manual_seed(0)).mul(32).tolist()

    def step(number: int) -> None:
        tokens = torch.randint(0, 32000, (8, lengths[number])).to(device)
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def run(name: str, cadence: int, record: str | None) -> None:
    """One process: prints ms a step behind the warm-up, and the peak of reserved memory."""
    import time

    import torch

    torch.manual_seed(0)
    if record:
        torch.cuda.memory._record_memory_history("all", context=None, stacks="python")
    step = globals()[name]("cuda")
    begun = 0.0
    for number in range(STEPS):
        if number == WARM:
            torch.cuda.synchronize()
            begun = time.perf_counter()
        step(number)
        if cadence and (number + 1) % cadence == 0:
            torch.cuda.empty_cache()
    torch.cuda.synchronize()
    ms = 1000 * (time.perf_counter() - begun) / (STEPS - WARM)
    if record:
        torch.cuda.memory._dump_snapshot(record)
    stats = torch.cuda.memory_stats()
    print(
        json.dumps(
            {
                "name": name,
                "cadence": cadence,
                "ms": ms,
                "peak_reserved_bytes": stats["reserved_bytes.all.peak"],
                "device_mallocs": stats["num_device_alloc"],
                "device_frees": stats["num_device_free"],
                "torch": torch.__version__,
                "gpu": torch.cuda.get_device_name(),
            }
        )
    )


def child(name: str, cadence: int, record: Path | None = None) -> dict[str, Any]:
    """The figures of one run in a process of its own."""
    argv = [sys.executable, __file__, "run", name, str(cadence), *([str(record)] if record else [])]
    found = subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True, env=os.environ)
    row: dict[str, Any] = json.loads(found.stdout.splitlines()[-1])
    return row


def measure(out: Path) -> None:
    """Runs everything; writes measured.json and a recording of each program with each cadence."""
    out.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in NAMES:
        for cadence in RECORDED:
            path = out / f"{name}.{cadence}.pickle"
            child(name, cadence, path)
            path.with_suffix(".pickle.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
        for _ in range(ROUNDS):
            for cadence in CADENCES:
                rows.append(child(name, cadence))
                print(rows[-1], flush=True)
                (out / "measured.json").write_text(json.dumps(rows, indent=1) + "\n")


def compare(folder: Path, out: Path | None, python: str | None) -> None:
    """Predicts from each recording, and says how far off that is."""
    from hotbed.findings.cadence import cadences
    from hotbed.trace import load_trace

    rows = json.loads((folder / "measured.json").read_text())
    programs = []
    for name in NAMES:
        measured = [measured_at(rows, name, every) for every in CADENCES]
        predicted = []
        for recorded in RECORDED:
            curve = cadences(load_trace(folder / f"{name}.{recorded}.pickle.gz"), CADENCES, python=python)
            predicted.append(
                {"recorded_with": recorded, **against(curve.to_json(), measured, (name, recorded))}
            )
        programs.append({"name": name, "measured": measured, "predicted": predicted})
    if out is not None:
        found = {"hardware": rows[0]["gpu"], "torch": rows[0]["torch"], "programs": programs}
        out.write_text(json.dumps(found, indent=1) + "\n")


def measured_at(rows: list[dict[str, Any]], name: str, every: int) -> dict[str, Any]:
    """All rounds of one cadence, and in which call of `measure` they ran; `spread` is the difference between slowest and fastest, by the median."""
    runs = [row for row in rows if row["name"] == name and row["cadence"] == every]
    rounds = [row["ms"] for row in runs]
    return {
        "every": every,
        "rounds_ms": rounds,
        "sessions": [row.get("session", 1) for row in runs],
        "median_ms": median(rounds),
        "spread": (max(rounds) - min(rounds)) / median(rounds),
        "peak_reserved_bytes": median(row["peak_reserved_bytes"] for row in runs),
    }


def against(curve: dict[str, Any], measured: list[dict[str, Any]], label: tuple[str, int]) -> dict[str, Any]:
    """`curve` with the errors of its points, and of what calls at every step cost."""
    for point, truth in zip(curve["points"], measured, strict=True):
        likely = point["step_ms"]
        point["time_error"] = None if likely is None else likely / truth["median_ms"] - 1
        point["bytes_error"] = point["peak_reserved_bytes"] / truth["peak_reserved_bytes"] - 1
        print(*label, point, round(truth["median_ms"], 1))
    always, never = curve["points"][0], curve["points"][-1]
    with_calls, without = measured[0], measured[-1]
    curve["every_step_to_never"] = {
        "measured_medians": with_calls["median_ms"] / without["median_ms"],
        "measured_least": min(with_calls["rounds_ms"]) / max(without["rounds_ms"]),
        "measured_most": max(with_calls["rounds_ms"]) / min(without["rounds_ms"]),
        "predicted": always["step_ms"] and always["step_ms"] / never["step_ms"],
        "predicted_low": always["step_low_ms"] / never["step_high_ms"],
        "predicted_high": always["step_high_ms"] / never["step_low_ms"],
    }
    print(*label, curve["every_step_to_never"])
    return curve


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("measure")
    verb.add_argument("--out", type=Path, required=True)
    verb = verbs.add_parser("compare")
    verb.add_argument("folder", type=Path)
    verb.add_argument("--out", type=Path)
    verb.add_argument("--python", help="an interpreter with the torch that replays")
    verb = verbs.add_parser("run")
    verb.add_argument("name", choices=NAMES)
    verb.add_argument("cadence", type=int)
    verb.add_argument("record", nargs="?")
    options = parser.parse_args()
    if options.verb == "measure":
        measure(options.out)
    elif options.verb == "compare":
        compare(options.folder, options.out, options.python)
    else:
        run(options.name, options.cadence, options.record)


if __name__ == "__main__":
    main()
