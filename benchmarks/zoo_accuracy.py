"""Claim: hotbed.fit predicts what a card measured, to the byte in most rows.

    python benchmarks/zoo_accuracy.py run zoo --torch PYTHON --out results/fit_zoo.jsonl
        each row of tests/data/h200/zoo.jsonl: public models, 4 steps, default and expandable segments
    python benchmarks/zoo_accuracy.py run workloads --torch PYTHON --out results/fit_workloads.jsonl
        each program of tests/data/h200/measured.jsonl without a cap, default and expandable segments
    ... --gpu h200              the GPC layout of the card unknown: several are tried, a range is predicted
    ... --truth FILE --program FILE     other rows of the same form
    ... --only TEXT --jobs 2    some rows, two at a time; rows that --out holds already are not run again
    python benchmarks/zoo_accuracy.py table results/fit_zoo.jsonl ... --out results/fit.md

The default --gpu is benchmarks/layouts/h200-18x5-16-16-10.toml, a layout that was fitted to the rows of zoo.jsonl.
PYTHON has torch 2.11.0 with cuDNN 9.19.0.56, torchvision 0.26, timm 1.0.29 and transformers 5.17, as on the card.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import hotbed
from hotbed.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parent.parent
DATA = ROOT / "tests" / "data" / "h200"
FITTED = ROOT / "benchmarks" / "layouts" / "h200-18x5-16-16-10.toml"
EXPANDABLE = "expandable_segments:True"
# The default run of this program met another program's memory; its recorded run did not.
RECORDED = ("kv_serving",)


@dataclass(frozen=True)
class Row:
    """One program as it ran on the card. Bytes; `used_bytes` is NVML's figure for the process, None where none was read."""

    spec: str
    settings: str
    arguments: tuple[str, ...]
    allocated_bytes: int
    reserved_bytes: int
    used_bytes: int | None

    @property
    def key(self) -> tuple[str, str]:
        return self.spec, self.settings


def zoo_rows(truth: Path) -> Iterator[Row]:
    for line in map(json.loads, truth.read_text().splitlines()):
        # What NVML said of the process at the end, with what the allocator let go of before.
        used = line["process_used"]
        used = used + line["reserved"] - line["reserved_now"] if isinstance(used, int) else None
        yield Row(
            line["spec"], line["conf"], (line["spec"], os.devnull), line["allocated"], line["reserved"], used
        )


def workload_rows(truth: Path) -> Iterator[Row]:
    seen = set()
    lines = sorted(map(json.loads, truth.read_text().splitlines()), key=lambda line: line["tag"] != "record")
    for line in lines:
        key = line["name"], line["conf"]
        wanted = line["cap_mib"] is None and line["conf"] in ("", EXPANDABLE) and not line["oom"]
        recorded = line["tag"] == "record"
        if (
            not wanted
            or key in seen
            or (recorded and line["name"] not in RECORDED and _has_plain(lines, key))
        ):
            continue
        seen.add(key)
        stats = line["stats"]
        arguments = (line["name"], tempfile.gettempdir(), "fit", "--steps", str(line["steps"]))
        allocated, reserved = stats["allocated_bytes.all.peak"], stats["reserved_bytes.all.peak"]
        yield Row(line["name"], line["conf"], arguments, allocated, reserved, None)


def _has_plain(lines: Sequence[dict[str, Any]], key: tuple[str, str]) -> bool:
    return any(
        (ln["name"], ln["conf"]) == key and ln["tag"] != "record" and not ln["cap_mib"] for ln in lines
    )


SETS = {
    "zoo": (zoo_rows, DATA / "zoo.jsonl", DATA / "zoo.py"),
    "workloads": (workload_rows, DATA / "measured.jsonl", DATA / "workloads.py"),
}


def run(options: argparse.Namespace) -> None:
    """Predicts each row that --out does not hold yet; each result is flushed as it comes."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    read, truth, program = SETS[options.set]
    truth, program = options.truth or truth, options.program or program
    done = set()
    if options.out.exists():
        held = map(json.loads, options.out.read_text().splitlines())
        done = {(line["spec"], line["settings"]) for line in held if "spec" in line}
    rows = [
        row for row in read(truth) if row.key not in done and options.only in f"{row.spec} {row.settings}"
    ]
    with options.out.open("a") as file, ThreadPoolExecutor(options.jobs) as pool:
        if not done:
            file.write(json.dumps(about(options)) + "\n")
        for answer in pool.map(lambda row: predicted(row, program, options.torch, options.gpu), rows):
            file.write(json.dumps(answer) + "\n")
            file.flush()
            print(_line(answer), flush=True)


def about(options: argparse.Namespace) -> dict[str, Any]:
    """What the numbers of a results file depend on."""
    ask = "import torch; print(torch.__version__, torch.backends.cudnn.version())"
    answer = subprocess.run([options.torch, "-c", ask], capture_output=True, text=True, check=True)
    torch, cudnn = answer.stdout.split()
    return {
        "claim": "hotbed.fit predicts what a card measured",
        "truth": "one NVIDIA H200, driver 580.159.04, torch 2.11.0, cuDNN 9.19.0, one run a row",
        "gpu": options.gpu if "/" not in options.gpu else Path(options.gpu).name,
        "torch": torch,
        "cudnn": cudnn,
        "hotbed": hotbed.__version__,
        "hardware": f"no GPU; {os.cpu_count()} x {_processor()}",
        "jobs": options.jobs,
        "command": shlex.join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *_plain(sys.argv[1:])]),
        "date": time.strftime("%Y-%m-%d"),
    }


def _plain(arguments: Sequence[str]) -> list[str]:
    """Arguments without the folders of this machine."""
    return [Path(word).name if word.startswith("/") else word for word in arguments]


def predicted(row: Row, program: Path, python: str, gpu: str) -> dict[str, Any]:
    """Truth and prediction of one row, or the error that there was instead."""
    answer: dict[str, Any] = {
        "spec": row.spec,
        "settings": row.settings,
        "measured": {
            "allocated": row.allocated_bytes,
            "reserved": row.reserved_bytes,
            "used": row.used_bytes,
        },
    }
    started = time.perf_counter()
    try:
        found = hotbed.fit(
            program,
            gpu,
            args=row.arguments,
            steps=None,
            settings=row.settings,
            python=python,
            echo="none",
        )
    except Exception as error:  # noqa: BLE001 - a failed row is a result
        return {**answer, "error": f"{type(error).__name__}: {error}"[:500]}
    return {
        **answer,
        "predicted": {
            "allocated": found.peak_allocated_bytes,
            "reserved": found.peak_reserved_bytes,
            "range": [found.peak_reserved_range_bytes.low, found.peak_reserved_range_bytes.high],
            "used": found.device_used_bytes,
            "margin": found.margin_bytes,
        },
        "overhead": dict(found.overhead.parts),
        "ending": found.ending,
        "steps": found.optimizer_steps,
        "passes": list(found.passes),
        "guesses": [f"{guess.where}: {guess.operation}" for guess in found.guesses],
        "not_modelled": list(found.not_modelled),
        "script_error": found.error and found.error.message[:500],
        "wall_s": round(time.perf_counter() - started, 2),
        "host_peak": found.host_peak_bytes,
    }


def error_percent(row: dict[str, Any], figure: str) -> float | None:
    """Prediction above truth in percent of the truth; None without either."""
    truth, guess = row["measured"][figure], row.get("predicted", {}).get(figure)
    return None if truth is None or guess is None else 100 * (guess / truth - 1)


def _line(row: dict[str, Any]) -> str:
    if "predicted" not in row:
        return f"{row['spec']:45} {row['settings'][:10]:10} {row['error']}"
    errors = " ".join(_percent(error_percent(row, figure)) for figure in ("allocated", "reserved", "used"))
    return f"{row['spec']:45} {row['settings'][:10]:10} {errors} {row['wall_s']:6.1f} s {row['passes']}"


def _percent(value: float | None) -> str:
    if value is None:
        return f"{'N/A':>8}"
    return f"{'0':>8}" if value == 0 else f"{value:+8.3f}"


def table(files: Sequence[Path], out: Path | None) -> None:
    """Markdown: a summary of each file, then its rows."""
    text = ""
    for file in files:
        first, *rows = map(json.loads, file.read_text().splitlines())
        text += f"## {file.stem}\n\n"
        text += f"{first['truth']}. Predicted for `{first['gpu']}` with torch {first['torch']}, cuDNN {first['cudnn']}, on "
        text += f"{first['hardware']}, {first['date']}: `{first['command']}`, {first['jobs']} at a time.\n\n"
        text += "\n".join(_summary(rows)) + "\n\n"
        text += "\n".join(_table_rows(rows)) + "\n\n"
    print(text)
    if out:
        out.write_text(text.rstrip() + "\n")


def _summary(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    done = [row for row in rows if "predicted" in row]
    yield f"{len(rows)} rows, {len(rows) - len(done)} without a prediction."
    for figure in ("allocated", "reserved", "used"):
        errors = [e for row in done if (e := error_percent(row, figure)) is not None]
        if errors:
            exact = sum(e == 0 for e in errors)
            worst = max(errors, key=abs)
            typical = median(map(abs, errors))
            yield f"- {figure}: {exact} of {len(errors)} equal to the byte; median {typical:.3f} %, largest {worst:+.3f} %"
    used = [
        (row["predicted"]["used"] - row["measured"]["used"]) / MIB
        for row in done
        if row["measured"]["used"] is not None
    ]
    if used:
        yield f"- used: off by at most {max(map(abs, used)):.0f} MiB"
    inside = [
        row["predicted"]["range"][0] <= row["measured"]["reserved"] <= row["predicted"]["range"][1]
        for row in done
    ]
    widths = sorted(
        100 * (row["predicted"]["range"][1] - row["predicted"]["range"][0]) / row["measured"]["reserved"]
        for row in done
    )
    if done:
        high = widths[min(len(widths) - 1, int(0.95 * len(widths)))]
        yield f"- range: holds the truth in {sum(inside)} of {len(done)}; width median {median(widths):.2f} %, 95th percentile {high:.2f} %"
        walls, hosts = [row["wall_s"] for row in done], [row["host_peak"] for row in done]
        yield f"- wall: median {median(walls):.1f} s, largest {max(walls):.1f} s; host memory: largest {max(hosts) / 1024 / MIB:.2f} GiB"


def _table_rows(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "| program | settings | measured allocated / reserved / used MiB | errors % | range MiB | wall s | host GiB |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows:
        truth = " / ".join(
            "" if value is None else f"{value / MIB:.1f}" for value in row["measured"].values()
        )
        if "predicted" not in row:
            yield f"| {row['spec']} | {row['settings']} | {truth} | {row['error'].splitlines()[0]} | | | |"
            continue
        errors = " / ".join(
            _percent(error_percent(row, figure)).strip() for figure in ("allocated", "reserved", "used")
        )
        low, high = (value / MIB for value in row["predicted"]["range"])
        between = f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}"
        host = row["host_peak"] / 1024 / MIB
        yield f"| {row['spec']} | {row['settings']} | {truth} | {errors} | {between} | {row['wall_s']:.1f} | {host:.2f} |"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    first = verbs.add_parser("run")
    first.add_argument("set", choices=SETS)
    first.add_argument("--torch", default=sys.executable)
    first.add_argument("--gpu", default=str(FITTED))
    first.add_argument("--truth", type=Path)
    first.add_argument("--program", type=Path)
    first.add_argument("--only", default="")
    first.add_argument("--jobs", type=int, default=1)
    first.add_argument("--out", type=Path, required=True)
    second = verbs.add_parser("table")
    second.add_argument("files", type=Path, nargs="+")
    second.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.verb == "run":
        run(options)
    else:
        table(options.files, options.out)


if __name__ == "__main__":
    main()
