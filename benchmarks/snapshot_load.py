"""Claim: a 1 GB torch snapshot with stacks loads in under 30 s and under 4 times its size of memory.

    python benchmarks/snapshot_load.py [--mib 1024] [--runs 3] [--out benchmarks/results/snapshot_load.json]

Makes the snapshot (benchmarks/make_snapshot.py), loads it in a new process each time, and reads the process's peak
resident memory from the kernel; the file itself, mapped into memory, counts. Beside it the .hbt file that
`hotbed trace convert` makes of it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hotbed.trace.opcodes import read_plain_pickle
from hotbed.trace.source import open_source
from make_snapshot import SEED, write

LOAD = """
import json, resource, sys, time
from hotbed.trace import load_trace
begin, cpu = time.perf_counter(), time.process_time()
trace = load_trace(sys.argv[1])
seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "peak_rss_bytes": peak, "events": len(trace.events)}))
"""


def load(path: Path) -> dict[str, Any]:
    """Loads `path` in a process of its own: wall and CPU seconds, peak memory, events."""
    result = subprocess.run(
        [sys.executable, "-c", LOAD, str(path)], capture_output=True, text=True, check=True
    )
    measured: dict[str, Any] = json.loads(result.stdout)
    return measured


def middle(path: Path, runs: int) -> dict[str, Any]:
    """The run with the median wall time of `runs`, beside the size of the file."""
    rows = sorted((load(path) for _ in range(runs)), key=lambda row: row["seconds"])
    return {"file_bytes": path.stat().st_size, **rows[len(rows) // 2]}


def processor() -> str:
    """What /proc calls the CPU."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with open_source(SEED) as data:
        seed = read_plain_pickle(data)
    with tempfile.TemporaryDirectory() as folder:
        snapshot, compact = Path(folder) / "large.pickle", Path(folder) / "large.hbt"
        with snapshot.open("wb") as out:
            write(out, seed, options.mib << 20)
        pickled = middle(snapshot, options.runs)
        subprocess.run(
            [sys.executable, "-m", "hotbed", "trace", "convert", str(snapshot), str(compact)], check=True
        )
        converted = middle(compact, options.runs)
    factor = round(pickled["peak_rss_bytes"] / pickled["file_bytes"], 2)
    result = {
        "claim": "a 1 GB snapshot with stacks loads in under 30 s and under 4 times its size of memory",
        "holds": pickled["seconds"] < 30 and factor < 4,
        "peak_rss_per_file_byte": factor,
        "snapshot": pickled,
        "hbt": converted,
        "hbt_note": "the snapshot repeats one trace, so the size of the .hbt file is no measure of compression",
        "hardware": f"{processor()}, {os.cpu_count()} cores, shared with other work",
        "versions": {
            "python": platform.python_version(),
            "numpy": version("numpy"),
            "zstandard": version("zstandard"),
        },
        "command": f"python benchmarks/snapshot_load.py --mib {options.mib} --runs {options.runs}",
    }
    text = json.dumps(result, indent=2) + "\n"
    print(text, end="")
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main()
