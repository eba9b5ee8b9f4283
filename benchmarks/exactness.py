"""Claim: a replayed trace gives the numbers of the card. Every H200 row against its replay, without a GPU.

    python benchmarks/exactness.py [--torch PYTHON]... [--out results.json]

One row per workload and tag of tests/data/h200/measured.jsonl (the first), all from the one trace of the uncapped
default run. Left out: rows of runs that met another program's memory (no cap, yet an OOM, a retry or, in a
workload that never empties its cache, a free).
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotbed.gpu import find_gpu
from hotbed.replaying import Job, Outcome, Program, Replayer, compile_trace
from hotbed.settings import AllocatorSettings, TorchVersion, translate
from hotbed.trace import Action, Trace, load_trace
from hotbed.tuning.variants import with_timing
from hotbed.units import MIB

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

ROOT = Path(__file__).parent.parent
DATA = ROOT / "tests" / "data" / "h200"
# Their numbers depend on when a side stream finished, or on which address the driver gave again: shown apart.
UNSTEADY = ("streams", "empty_cache_loop")
ADDRESS_RULES = ("recorded", "driver", "ascending", "descending")
TIMINGS = 24
ASCENDING = ROOT / "benchmarks" / "results" / "exactness_ascending.json"
GPU = "h200"


@dataclass(frozen=True)
class Row:
    """One configuration as it ran on the H200."""

    name: str
    tag: str
    settings: str
    cap_bytes: int | None
    stats: dict[str, int]
    out_of_memory: bool

    @property
    def backend(self) -> str:
        return AllocatorSettings.parse(self.settings).backend


@dataclass(frozen=True)
class Comparison:
    row: Row
    outcome: Outcome

    @property
    def error_percent(self) -> float:
        """Replayed peak reserved against the card's, in percent of the card's."""
        truth = self.row.stats["reserved_bytes.all.peak"]
        return 100 * (self.outcome.peak_reserved_bytes - truth) / truth

    @property
    def verdict_equal(self) -> bool:
        return self.outcome.out_of_memory == self.row.out_of_memory

    @property
    def all_equal(self) -> bool:
        """Peak reserved and allocated, device mallocs and frees, retries and the verdict: equal to the byte."""
        stats, outcome = self.row.stats, self.outcome
        return self.verdict_equal and (
            stats["reserved_bytes.all.peak"],
            stats["allocated_bytes.all.peak"],
            stats["num_device_alloc"],
            stats["num_device_free"],
            stats["num_alloc_retries"],
        ) == (
            outcome.peak_reserved_bytes,
            outcome.peak_allocated_bytes,
            outcome.device_mallocs,
            outcome.device_frees,
            outcome.alloc_retries,
        )


def read_rows(file: str) -> list[Row]:
    rows: dict[tuple[str, str], Row] = {}
    for line in (DATA / file).read_text().splitlines():
        raw = json.loads(line)
        row = Row(
            raw["name"],
            raw["tag"],
            raw["conf"],
            raw["cap_mib"] * MIB if raw["cap_mib"] else None,
            raw["stats"],
            raw["oom"] is not None or raw["stats"]["num_ooms"] > 0,
        )
        rows.setdefault((row.name, row.tag), row)
    return list(rows.values())


def is_contaminated(row: Row) -> bool:
    """No cap was set, and yet the allocator hit a limit: another program had filled the card."""
    if row.cap_bytes is not None:
        return False
    stats = row.stats
    frees = stats["num_device_free"] if row.name not in ("empty_cache_loop", "graphs") else 0
    return bool(row.out_of_memory or stats["num_alloc_retries"] or frees)


def compare(rows: list[Row], python: str | None, addresses: str = "recorded") -> tuple[str, list[Comparison]]:
    """(torch version, one comparison per row) for the native rows."""
    traces = {name: load_trace(DATA / f"{name}.record.pickle.xz") for name in {row.name for row in rows}}
    programs = {name: compile_trace(trace) for name, trace in traces.items()}
    backend = rows[0].backend
    with Replayer(find_gpu(GPU), python=python, backend=backend) as replayer:
        version = replayer.engine.torch_version

        def one(row: Row) -> Comparison:
            trace, program = traces[row.name], programs[row.name]
            return Comparison(row, _replay(replayer, trace, program, row, version, addresses))

        with ThreadPoolExecutor(replayer.engine.parallel) as threads:
            return version, list(threads.map(one, rows))


def _replay(
    replayer: Replayer, trace: Trace, program: Program, row: Row, version: str, addresses: str
) -> Outcome:
    # The rows ran on 2.11; an older torch reads some lists differently, so it gets the same meaning.
    settings = translate(AllocatorSettings.parse(row.settings), TorchVersion.parse(version)).to_string()
    return replayer.replay(trace, program, settings, row.cap_bytes, detail=False, addresses=addresses)


def figures(item: Comparison) -> list[int]:
    """What two replays must agree in to count as the same run."""
    outcome = item.outcome
    return [
        outcome.peak_reserved_bytes,
        outcome.peak_allocated_bytes,
        outcome.device_mallocs,
        outcome.device_frees,
        outcome.alloc_retries,
        int(outcome.out_of_memory),
    ]


def explained_by_ties(comparisons: list[Comparison]) -> tuple[int, int]:
    """(rows that differ from the card, those of them that equal torch 2.11 with ascending addresses).

    torch 2.13 and later choose the older of two equal blocks, where 2.11 chose the lower address. With every
    address above the one before, the two rules are one: what then agrees differs from the card by that rule alone.
    """
    other = json.loads(ASCENDING.read_text())["rows"]
    differing = [item for item in comparisons if not item.all_equal]
    same = [item for item in differing if other.get(f"{item.row.name} {item.row.tag}") == figures(item)]
    return len(differing), len(same)


def write_ascending(python: str | None) -> None:
    """Makes the reference of explained_by_ties; for torch 2.11."""
    rows = [
        row for row in read_rows("measured.jsonl") if row.backend == "native" and not is_contaminated(row)
    ]
    version, compared = compare(rows, python, "ascending")
    document = {
        "what": "replays with each cudaMalloc address above the one before: reserved, allocated, mallocs, frees, retries, oom",
        "torch": version,
        "rows": {f"{item.row.name} {item.row.tag}": figures(item) for item in compared},
    }
    ASCENDING.write_text(json.dumps(document) + "\n")


def recorded_pointers(python: str | None) -> dict[str, tuple[int, int]]:
    """For each trace: how many allocations there are, and how many got the recorded address.

    Only up to torch 2.11 do addresses decide between equal blocks, so only there must all agree.
    """
    found = {}
    with Replayer(find_gpu(GPU), python=python) as replayer, tempfile.TemporaryDirectory() as folder:
        for path in sorted(DATA.glob("*.record.pickle.xz")):
            trace = load_trace(path)
            snapshot = Path(folder) / "snapshot.pickle"
            job = Job(history=True, snapshot_path=str(snapshot))
            replayer.engine.run(compile_trace(trace), job)
            truth, replayed = _allocated_addresses(trace), _allocated_addresses(load_trace(snapshot))
            found[path.name.split(".")[0]] = (len(truth), int((truth == replayed).sum()))
    return found


def _allocated_addresses(trace: Trace) -> npt.NDArray[np.uint64]:
    return trace.events.address[trace.events.action == Action.ALLOC]


@dataclass(frozen=True)
class Spread:
    """Lowest and highest peak reserved of one row over what a trace cannot tell, beside the card's."""

    name: str
    tag: str
    h200_mib: float
    lowest_mib: float
    highest_mib: float

    @property
    def contains(self) -> bool:
        return self.lowest_mib <= self.h200_mib <= self.highest_mib


def spreads(rows: list[Row], python: str | None) -> list[Spread]:
    """Each row of the unsteady workloads over event times (streams) and over address rules (both)."""
    found = []
    with Replayer(find_gpu(GPU), python=python) as replayer:
        for name in UNSTEADY:
            trace = load_trace(DATA / f"{name}.record.pickle.xz")
            program = compile_trace(trace)
            programs = [program]
            if program.has_pending_frees:
                programs += [with_timing(program, seed) for seed in (None, *range(TIMINGS))]
            for row in (row for row in rows if row.name == name):
                pending = [
                    replayer.submit(trace, variant, row.settings, row.cap_bytes, rule)
                    for variant in programs
                    for rule in ADDRESS_RULES
                ]
                peaks = [result().peak_reserved_bytes / MIB for result in pending]
                truth = row.stats["reserved_bytes.all.peak"] / MIB
                found.append(Spread(row.name, row.tag, truth, min(peaks), max(peaks)))
    return found


def known_here(row: Row, version: str) -> bool:
    """Whether the replaying torch knows the row's keys (large_segment_size_mb is new in 2.11)."""
    return "large_segment_size_mb" not in row.settings or TorchVersion.parse(version) >= TorchVersion.parse(
        "2.11"
    )


def summary(comparisons: list[Comparison]) -> dict[str, Any]:
    errors = [abs(item.error_percent) for item in comparisons]
    return {
        "rows": len(comparisons),
        "verdict_equal": sum(item.verdict_equal for item in comparisons),
        "reserved_equal": sum(error == 0 for error in errors),
        "all_equal": sum(item.all_equal for item in comparisons),
        "lowest_error_percent": round(min(item.error_percent for item in comparisons), 2),
        "highest_error_percent": round(max(item.error_percent for item in comparisons), 2),
        "mean_error_percent": round(sum(errors) / len(errors), 4),
        "max_error_percent": round(max(errors), 3),
    }


def table(version: str, title: str, comparisons: list[Comparison]) -> None:
    figures = summary(comparisons)
    print(
        f"{version:14} {title:34} rows {figures['rows']:4}  verdict {figures['verdict_equal']:4}  reserved equal "
        f"{figures['reserved_equal']:4}  all equal {figures['all_equal']:4}  mean error "
        f"{figures['mean_error_percent']} %  max {figures['max_error_percent']} %"
    )


def differing(comparisons: list[Comparison]) -> list[dict[str, Any]]:
    return [
        {
            "name": item.row.name,
            "tag": item.row.tag,
            "error_percent": round(item.error_percent, 3),
            "verdict_equal": item.verdict_equal,
            "h200_mib": item.row.stats["reserved_bytes.all.peak"] / MIB,
            "replay_mib": item.outcome.peak_reserved_bytes / MIB,
        }
        for item in comparisons
        if item.error_percent != 0 or not item.verdict_equal
    ]


def measure(python: str | None) -> dict[str, Any]:
    started = time.perf_counter()
    rows = read_rows("measured.jsonl")
    native = [row for row in rows if row.backend == "native"]
    clean = [row for row in native if not is_contaminated(row)]
    version, compared = compare(clean, python)
    steady = [item for item in compared if item.row.name not in UNSTEADY]
    unsteady = [item for item in compared if item.row.name in UNSTEADY]
    tuned_rows = [row for row in read_rows("tuned.jsonl") if known_here(row, version)]
    tuned = compare(tuned_rows, python)[1]
    groups = {"all clean rows": compared, "without " + " and ".join(UNSTEADY): steady}
    groups |= {f"only {name}": [item for item in unsteady if item.row.name == name] for name in UNSTEADY}
    groups["tuned.jsonl"] = tuned
    stream_ordered = [row for row in rows if row.backend != "native"]
    groups["cudaMallocAsync (estimate)"] = compare(stream_ordered, python)[1]
    for title, items in groups.items():
        table(version, title, items)
    ties: dict[str, int] = {}
    if TorchVersion.parse(version) >= TorchVersion.parse("2.13"):
        differ, explained = explained_by_ties(compared)
        ties = {"differ_from_card": differ, "equal_torch_2_11_with_ascending_addresses": explained}
        print(
            f"{version:14} differences from the card explained by the order of ties: {explained} of {differ}"
        )
    unsteady_rows = [row for row in clean if row.name in UNSTEADY]
    spread = spreads(unsteady_rows, python)
    for name in UNSTEADY:
        mine = [item for item in spread if item.name == name]
        inside = sum(item.contains for item in mine)
        print(
            f"{version:14} {name}: the card's figure lies within the spread in {inside} of {len(mine)} rows"
        )
    pointers = recorded_pointers(python)
    total, equal = (sum(column) for column in zip(*pointers.values(), strict=True))
    print(f"{version:14} allocations at their recorded address: {equal} of {total}")
    return {
        "torch": version,
        "ties": ties,
        "recorded_pointers": pointers,
        "spreads": [{**asdict(item), "contains": item.contains} for item in spread],
        "seconds": round(time.perf_counter() - started, 1),
        "contaminated": [f"{row.name} {row.tag}" for row in native if is_contaminated(row)],
        "groups": {title: summary(items) for title, items in groups.items()},
        "differing": differing(compared) + differing(tuned),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--torch", action="append", metavar="PYTHON", help="interpreter with another torch")
    parser.add_argument("--out", type=Path)
    parser.add_argument(
        "--write-ascending", action="store_true", help="make the reference for ties, with torch 2.11"
    )
    options = parser.parse_args()
    if options.write_ascending:
        write_ascending(options.torch[0] if options.torch else None)
        return
    results = [measure(python) for python in options.torch or [None]]
    if options.out:
        document = {
            "claim": "replay equals the card",
            "command": "python benchmarks/exactness.py --torch PYTHON --torch PYTHON --torch PYTHON",
            "host": f"{platform.machine()}, Python {platform.python_version()}",
            "truth": "NVIDIA H200, driver 580.159.04, torch 2.11.0+cu130",
            "results": results,
        }
        options.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
