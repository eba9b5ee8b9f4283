"""Peak memory and driver calls of several settings on one recorded training, from Python.

python examples/compare_settings.py [snapshot]
"""

from __future__ import annotations

import sys
from pathlib import Path

import hotbed

SHIPPED = Path(__file__).parent.parent / "tests" / "data" / "h200" / "detection.record.pickle.xz"
SETTINGS = ("", "expandable_segments:True", "max_split_size_mb:128", "roundup_power2_divisions:4")


def main() -> None:
    trace = hotbed.load_trace(sys.argv[1] if len(sys.argv) > 1 else SHIPPED)
    for settings in SETTINGS:
        outcome = hotbed.replay(trace, settings, detail=False)
        peak_mib = outcome.peak_reserved_bytes / (1 << 20)
        print(f"{settings or 'default':30} {peak_mib:8.0f} MiB {outcome.cost.device_calls:6} driver calls")


if __name__ == "__main__":
    main()
