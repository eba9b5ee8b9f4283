"""Claim: replay is fast enough to search by it: operations a second, and 150 configurations of three traces.

    python benchmarks/replay_speed.py [--torch PYTHON]... [--out results.json]

An operation is one alloc or free. The rate is that inside one replay process with the machine otherwise idle; the
sweep includes starting torch, forking, CUDA initialisation and both directions of the pipe.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

from hotbed.gpu import find_gpu
from hotbed.replaying import Replayer, compile_trace
from hotbed.trace import load_trace
from hotbed.units import MIB

DATA = Path(__file__).parent.parent / "tests" / "data" / "h200"
TRACES = ("bert_varlen", "detection", "token_budget")
CONFIGURATIONS = 150
REPEATS = 15


def configurations() -> list[tuple[str, int | None]]:
    """150 different (settings, cap) as a search tries them; keys that every torch from 2.6 on knows."""
    expandable = ("", "expandable_segments:True")
    rounding = ("", *(f"roundup_power2_divisions:{value}" for value in (2, 4, 8, 16)))
    splits = ("", *(f"max_split_size_mb:{value}" for value in (64, 128, 256, 512)))
    caps = (None, 40 << 30, 20 << 30)
    whole = itertools.product(caps, splits, rounding, expandable)
    return [(",".join(filter(None, texts)), cap) for cap, *texts in whole][:CONFIGURATIONS]


def measure(python: str | None) -> dict[str, Any]:
    loaded = [load_trace(DATA / f"{name}.record.pickle.xz") for name in TRACES]
    programs = [compile_trace(trace) for trace in loaded]
    started = time.perf_counter()
    with Replayer(find_gpu("h200"), python=python) as replayer:
        ready = time.perf_counter() - started
        rates = {}
        for name, trace, program in zip(TRACES, loaded, programs, strict=True):
            seconds = [replayer.replay(trace, program, detail=False).seconds for _ in range(REPEATS)]
            rates[name] = {
                "operations": len(program),
                "best_per_second": round(len(program) / min(seconds)),
                "median_per_second": round(len(program) / sorted(seconds)[REPEATS // 2]),
            }
        sweep_started = time.perf_counter()
        for trace, program in zip(loaded, programs, strict=True):
            pending = [replayer.submit(trace, program, *configuration) for configuration in configurations()]
            peaks = [result().peak_reserved_bytes for result in pending]
            assert len(peaks) == CONFIGURATIONS
        sweep = time.perf_counter() - sweep_started
        version, parallel = replayer.engine.torch_version, replayer.engine.parallel
    return {
        "torch": version,
        "processes": parallel,
        "start_seconds": round(ready, 2),
        "operations_per_second": rates,
        "sweep": f"{CONFIGURATIONS} configurations of each of {', '.join(TRACES)}",
        "sweep_seconds": round(sweep, 2),
        "sweep_and_start_seconds": round(sweep + ready, 2),
    }


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--torch", action="append", metavar="PYTHON")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    results = [measure(python) for python in options.torch or [None]]
    print(json.dumps(results, indent=1))
    if options.out:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // MIB
        document = {
            "claim": "replay speed",
            "command": "python benchmarks/replay_speed.py",
            "host": f"{processor()}, {os.cpu_count()} cores, {memory} MiB, Python {sys.version.split()[0]}",
            "load_before": load,
            "results": results,
        }
        options.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
