"""Claim: balanced recommendations, margin included, come close to the lower bound and never exceed the default.

    python benchmarks/tune_quality.py [--torch PYTHON]... [--out results.json]

Tunes each shipped trace; prints how far the footprint (the cap, or the peak where there is none) lies above the
most bytes that are alive at once.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

from hotbed.tuning import Recommendation, tune
from hotbed.units import MIB

DATA = Path(__file__).parent.parent / "tests" / "data" / "h200"


def row_of(name: str, found: Recommendation) -> dict[str, Any]:
    choice, without_cap = found.recommended, found.without_cap
    return {
        "name": name,
        "lower_bound_mib": round(found.lower_bound_bytes / MIB, 1),
        "default_mib": found.default.peak_reserved_bytes / MIB,
        "settings": choice.settings,
        "cap_mib": choice.cap_bytes / MIB if choice.cap_bytes else None,
        "footprint_mib": choice.footprint_bytes / MIB,
        "above_bound_percent": round(found.above_lower_bound_percent, 2),
        "margin_mib": found.margin.total_bytes / MIB if found.margin else 0,
        "cost_ms_per_step": round(choice.cost_ms_per_step, 3),
        "step_ms": found.step_ms,
        "without_cap": {"settings": without_cap.settings, "peak_mib": without_cap.peak_reserved_bytes / MIB},
        "held_out": [found.held_out.fitted, found.held_out.runs] if found.held_out else None,
        "replays": found.replays,
        "seconds": round(found.seconds, 1),
    }


def measure(python: str | None) -> dict[str, Any]:
    rows, version = [], ""
    for path in sorted(DATA.glob("*.record.pickle.xz")):
        found = tune(path, python=python)
        version = found.torch_version
        row = row_of(path.name.split(".")[0], found)
        rows.append(row)
        print(
            f"{version:14} {row['name']:17} bound {row['lower_bound_mib']:8} default {row['default_mib']:7.0f}  "
            f"recommended {row['footprint_mib']:7.0f} (+{row['above_bound_percent']} %)  "
            f"{row['cost_ms_per_step']} ms a step  {row['settings']}",
            flush=True,
        )
    near = {limit: sum(row["above_bound_percent"] <= limit for row in rows) for limit in (3, 5, 10)}
    worse = [row["name"] for row in rows if row["footprint_mib"] > row["default_mib"]]
    print(
        f"{version:14} within 3, 5, 10 % of the bound: {list(near.values())} of {len(rows)}; worse than default: {worse}"
    )
    return {"torch": version, "within_percent": near, "worse_than_default": worse, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--torch", action="append", metavar="PYTHON")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results = [measure(python) for python in options.torch or [None]]
    if options.out:
        document = {
            "claim": "balanced recommendations are close to the lower bound",
            "command": "python benchmarks/tune_quality.py",
            "host": f"{platform.machine()}, {os.cpu_count()} cores, no GPU, Python {sys.version.split()[0]}",
            "cost_model": "one NVIDIA H200, driver 580.159.04, hotbed calibrate",
            "results": results,
        }
        options.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
