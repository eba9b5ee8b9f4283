"""Claims: a report on 1 million events is under 3 MB and interactive within 2 s in Chromium; one on a 1 GB snapshot is
written in under 60 s and 4 GB.

    python benchmarks/report_size.py [--events 1000000] [--mib 1024] [--out benchmarks/results/report_size.json]

The events are those that an H200 recorded, one program after the other (make_long_trace.py); the snapshot repeats one
program (make_snapshot.py --closed). Reports are written in processes of their own, whose peak resident memory the kernel
tells; a mapped file counts. Interactive is when the page says so, behind its first drawing, counted from the navigation.
Needs playwright and Debian's chromium (`make browser-test`).
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from hotbed.trace.compaction import write_compact
from hotbed.trace.opcodes import read_plain_pickle
from hotbed.trace.source import open_source
from make_long_trace import long_trace
from make_snapshot import SEED, closed, write
from snapshot_load import processor

REPORT = """
import json, os, resource, sys, time
from pathlib import Path
from hotbed.cli.report_file import write_report
begin = time.perf_counter()
write_report(Path(sys.argv[1]), Path(sys.argv[2]), None, (), None)
seconds, usage = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"seconds": round(seconds, 1), "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
                  "peak_rss_bytes": usage.ru_maxrss * 1024, "page_bytes": os.path.getsize(sys.argv[2])}))
"""


def written(trace: Path, page: Path) -> dict[str, Any]:
    """Writes the report on `trace` in a process of its own: wall and CPU seconds, peak memory, bytes."""
    command = [sys.executable, "-c", REPORT, str(trace), str(page)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    measured: dict[str, Any] = json.loads(result.stdout)
    return {"file_bytes": trace.stat().st_size, **measured}


def opened(page: Path, runs: int) -> dict[str, Any]:
    """Median seconds until the page is interactive, of `runs` in a browser that is already there."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        seconds = []
        for _ in range(runs):
            tab = browser.new_page(viewport={"width": 1400, "height": 1000})
            tab.goto(page.as_uri())
            tab.wait_for_selector("body[data-state=ready]", timeout=60_000)
            seconds.append(int(tab.get_attribute("body", "data-ready-ms") or 0) / 1000)
            tab.close()
        found = {"interactive_seconds": sorted(seconds)[runs // 2], "chromium": browser.version}
        browser.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        events, snapshot, page = (Path(folder) / name for name in ("events.hbt", "large.pickle", "page.html"))
        write_compact(events, [long_trace(options.events)])
        million = written(events, page) | opened(page, options.runs)
        with open_source(SEED) as data, snapshot.open("wb") as out:
            entries = write(out, closed(read_plain_pickle(data)), options.mib << 20)
        large = written(snapshot, page) | {"events": entries} | opened(page, options.runs)
    result = {
        "claim": "1 million events: under 3 MB, interactive within 2 s; a 1 GB snapshot: report in under 60 s and 4 GB",
        "holds": million["page_bytes"] < 3e6
        and million["interactive_seconds"] < 2
        and large["seconds"] < 60
        and large["peak_rss_bytes"] < 4e9,
        "million_events": {"events": options.events, **million},
        "snapshot": large,
        "hardware": f"{processor()}, shared with other work",
        "versions": {name: version(name) for name in ("numpy", "jinja2", "playwright")}
        | {"python": platform.python_version()},
        "command": f"python benchmarks/report_size.py --events {options.events} --mib {options.mib} --runs {options.runs}",
    }
    text = json.dumps(result, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
