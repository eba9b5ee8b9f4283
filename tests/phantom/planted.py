"""Programs with planted memory problems, recorded as typed, and how what findings say of them compares with what was planted.

Those of tests/data/planted are by an author who had not seen the rules, those of leak_programs.py by the author of the rules for
leaks. Used by test_planted.py and benchmarks/planted_suite.py.
"""

from __future__ import annotations

import io
import os
import subprocess
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomlkit
from tests.phantom.leak_programs import BEGIN, INNOCENT, LEAKS

from hotbed import phantom
from hotbed.cli.recording import answer
from hotbed.cli.recording_request import Request
from hotbed.findings.looking import examine
from hotbed.gpu import find_gpu
from hotbed.trace import load_trace
from hotbed.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.forking import Server

    from hotbed.findings.finding import Finding
    from hotbed.trace import Frame

PLANTED = Path(__file__).parents[1] / "data" / "planted"
CODES = {
    "reference-cycle": {"leak/reference-cycle"},
    "growing-container": {"leak/growing-container"},
    "retained-graph": {"leak/retained-graph"},
    "kept-exception": {"leak/traceback"},
    "pending-stream": {"leak/pending-stream"},
    "side-stream-cache": {"leak/side-stream-cache", "fragmentation/stream"},
    "oom-capacity": {"oom/capacity"},
    "oom-fragmentation": {"oom/fragmentation"},
    "oom-pending-frees": {"oom/pending-free"},
    "oom-other-process": {"oom/other-process"},
    "oom-private-pools": {"oom/private-pool"},
    "oom-cap": {"oom/cap-too-low"},
    "first-step-peak": {"peak/first-step"},
    "eval-peak": {"peak/eval"},
    "hot-flush": {"cache/useless"},
    "allocation-storm": {"storm/sizes", "storm/gc-threshold"},
    "rank-asymmetry": {"rank/asymmetry"},
    "useful-flush": {"cache/useful", "cache/once"},
    "unknown-owner": {"leak/unknown-owner"},
    "not-a-leak": set(),
}
"""class of expected.toml → codes that are right for it; written before the first run"""
ACCUSING = ("leak", "storm", "cache", "oom", "rank")
"""groups in which a problem is a false alarm if the program is innocent"""
DECIDING = ("leak", "oom")
"""groups of which only the first finding counts: the others of a peak or a storm do not contradict it"""
UNITS_A_STEP = {"val_step_outputs": 4 / 5, "val_loss_sum": 20 / 6, "skipped_batches": 1 / 2}
"""How many of what `bytes` counts come to one optimizer step, where that is not one: from the programs' own numbers.

A failed batch makes no optimizer step (in the first run this said 1/3)."""
TOLERANCE = 0.05
GPU = find_gpu("h200")


@dataclass(frozen=True)
class Planted:
    """A program, how it is run, and what should be found."""

    name: str
    path: Path
    kind: str
    also: tuple[str, ...] = ()
    innocent: bool = False
    lines: tuple[int, ...] = ()
    size_bytes: int | None = None
    gpu_mib: int = 16384
    others_mib: int = 0
    behind: bool = False
    environments: tuple[dict[str, str], ...] = ({},)
    arguments: tuple[str, ...] = ()
    ends: str = "ok"
    independent: bool = True

    @property
    def codes(self) -> set[str]:
        return set().union(*(CODES[kind] for kind in (self.kind, *self.also)))


@dataclass(frozen=True)
class Verdict:
    """How what was found compares; None where there is nothing to compare with."""

    class_right: bool
    line_right: bool | None = None
    line_among_others: bool | None = None
    bytes_right: bool | None = None
    false_alarms: tuple[str, ...] = ()
    found: dict[str, Any] | None = None
    all_found: tuple[str, ...] = ()


def independent_programs() -> Iterator[Planted]:
    entries = tomlkit.parse((PLANTED / "expected.toml").read_text()).unwrap()
    for name, entry in entries.items():
        if name == "schema":
            continue
        shared = entry.get("env", {})
        yield Planted(
            name,
            PLANTED / f"{name}.py",
            entry["class"],
            tuple(entry.get("also", ())),
            entry["innocent"],
            tuple(entry["line"]),
            entry.get("bytes"),
            entry["gpu_mib"],
            entry.get("other_process_mib", 0),
            entry.get("hold_events", False),
            tuple({**shared, **run} for run in entry.get("runs", [{}])),
            tuple(entry.get("args", ())),
            entry["ends"],
        )


def programs_of_the_rules(folder: Path) -> Iterator[Planted]:
    """Those of leak_programs.py, written into `folder`; `# here` marks the line."""
    kinds = {code: kind for kind, codes in CODES.items() for code in codes}
    programs = {name: (kinds[code], text) for name, (code, text) in LEAKS.items()}
    programs |= {name: ("not-a-leak", text) for name, text in INNOCENT.items()}
    for name, (kind, text) in programs.items():
        path = folder / f"{name.replace(' ', '_')}.py"
        path.write_text(BEGIN + text)
        lines = [n for n, line in enumerate((BEGIN + text).splitlines(), 1) if line.endswith("# here")]
        yield Planted(path.stem, path, kind, innocent=name in INNOCENT, lines=tuple(lines), independent=False)


def look(program: Planted, folder: Path, server: Server | None) -> Verdict:
    """Records `program` as often as it has environments and judges what the files show."""
    for number, env in enumerate(program.environments):
        file = folder / f"{program.name}.{number}.hbt"
        if not list(folder.glob(f"{file.stem}*")):
            _record(program, env, file, server)
    files = sorted(folder.glob(f"{program.name}.*hbt"))
    return judge(program, examine([load_trace(file) for file in files]))


def _record(program: Planted, env: dict[str, str], out: Path, server: Server | None) -> None:
    """As `hotbed record --phantom -o OUT PROGRAM ARGUMENTS...`, on a card of the program's own size."""
    options = dict.fromkeys(("gpu_name", "every", "steps", "python"))
    options |= {"module": False, "phantom": True, "gpus": 1, "budget": 1.0, "whole": False, "as_json": False}
    with _standing_in(partial(_start, program, server)), _added(env), redirect_stderr(io.StringIO()):
        status = answer(Request(program=str(program.path), arguments=program.arguments, out=out, **options))
    assert status == (3 if program.ends == "oom" else 0), f"{program.name} ended with {status}"


def _start(program: Planted, server: Server | None, argv: list[str], **_: object) -> Any:
    """Stands for hotbed.phantom.start, which knows cards of the catalogue only, and no GPU that is behind."""
    card = replace(GPU, total_bytes=program.gpu_mib * MIB, nvml_total_bytes=None)
    child = phantom.environment(card, context=True, others=program.others_mib * MIB)
    child["HOTBED_PHANTOM_GPU"] += f";behind={int(program.behind)}"
    if server is None:
        return subprocess.Popen(argv, env=child, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return server.fork(argv[1:], child, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextmanager
def _standing_in(start: Any) -> Iterator[None]:
    before, phantom.start = phantom.start, start
    try:
        yield
    finally:
        phantom.start = before


@contextmanager
def _added(env: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(env)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def judge(program: Planted, found: list[Finding]) -> Verdict:
    """Compares; what is "fine" says nothing against an innocent program and accuses no other."""
    heard = [finding for finding in found if finding.severity != "fine" or program.innocent]
    alarms = [
        finding.code
        for finding in found
        if finding.severity == "problem"
        and _group(finding.code) in ACCUSING
        and (program.innocent or finding.code not in program.codes)
    ]
    shown = tuple(f"{finding.code} {finding.severity} {_place(finding.where)}" for finding in found)
    right = next((finding for finding in heard if finding.code in program.codes), None)
    if not program.codes:
        return Verdict(not alarms, false_alarms=tuple(alarms), all_found=shown)
    if right is None:
        first = next((finding for finding in heard if _group(finding.code) in _groups(program)), None)
        line = False if program.lines else None
        size = False if program.size_bytes else None
        return Verdict(False, line, line, size, tuple(alarms), _brief(first), shown)
    before = heard[: heard.index(right)]
    group = _group(right.code)
    contradicted = group in DECIDING and any(_group(one.code) == group for one in before)
    line = near = None
    if program.lines:
        line = _is_planted(program, right.where)
        near = line or any(_is_planted(program, frame) for frame in right.others)
    return Verdict(
        not contradicted and not (program.innocent and alarms),
        line,
        near,
        _bytes_agree(program, right),
        tuple(alarms),
        _brief(right),
        shown,
    )


def _group(code: str) -> str:
    return code.partition("/")[0]


def _groups(program: Planted) -> set[str]:
    return {_group(code) for code in program.codes}


def _is_planted(program: Planted, frame: Frame | None) -> bool:
    return (
        frame is not None and Path(frame.filename).name == program.path.name and frame.line in program.lines
    )


def _bytes_agree(program: Planted, finding: Finding) -> bool | None:
    if not program.size_bytes:
        return None
    a_step = program.size_bytes * UNITS_A_STEP.get(program.name, 1)
    pairs = [(finding.bytes, program.size_bytes), (finding.per_step_bytes, a_step)]
    return any(given is not None and abs(given - want) <= TOLERANCE * want for given, want in pairs)


def _place(frame: Frame | None) -> str:
    return f"{Path(frame.filename).name}:{frame.line}" if frame else "-"


def _brief(finding: Finding | None) -> dict[str, Any] | None:
    if finding is None:
        return None
    return {
        "code": finding.code,
        "severity": finding.severity,
        "where": _place(finding.where),
        "others": [_place(frame) for frame in finding.others],
        "bytes": finding.bytes,
        "per_step_bytes": finding.per_step_bytes,
        "title": finding.title,
    }
