"""The options of `hotbed record` as typed: the program they name, where the recording goes, what the process is told."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hotbed.predicting.program import Program
from hotbed.predicting.targets import script
from hotbed.recording.files import path_of_rank, rank
from hotbed.recording.schedule import Plan


@dataclass(frozen=True)
class Request:
    """The options of `hotbed record` as typed; see hotbed.cli.record."""

    program: str
    arguments: tuple[str, ...]
    out: Path | None
    module: bool
    phantom: bool
    gpu_name: str | None
    gpus: int
    budget: float
    whole: bool
    every: int | None
    steps: int | None
    python: str | None
    as_json: bool


def program_of(request: Request) -> Program:
    if request.module:
        return Program("module", request.program, request.arguments, request.python)
    if request.program == "-":
        return Program("stdin", sys.stdin.read(), request.arguments, request.python)
    return script(request.program, request.arguments, request.python)


def path_of(request: Request) -> Path:
    """The recording; with the rank in its name where this is one process of several."""
    return path_of_rank(request.out or _default(request), rank())


def _default(request: Request) -> Path:
    name = request.program.rpartition(".")[2] if request.module else Path(request.program).stem
    return Path(f"{'stdin' if request.program == '-' else name}.record.hbt")


def job(request: Request, program: Program, path: Path) -> dict[str, Any]:
    """What hotbed.recording.boot reads in the process of the program."""
    plan = Plan(budget=request.budget / 100, whole=request.whole, every=request.every)
    return {
        "task": "recorded_program",
        "kind": program.kind,
        "target": program.target,
        "arguments": program.arguments,
        "source": program.source,
        "path": str(path.absolute()),
        "plan": asdict(plan),
        "steps": request.steps,
        "rank": rank(),
    }
