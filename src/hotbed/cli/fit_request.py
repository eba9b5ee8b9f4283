"""The options of `hotbed fit`, what they mean for the runs, and which of them exclude each other."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hotbed.errors import UsageError
from hotbed.predicting import Program, RunOptions
from hotbed.predicting.targets import script


@dataclass(frozen=True)
class Request:
    """The options of `hotbed fit` as typed; see hotbed.cli.fit."""

    program: str
    arguments: tuple[str, ...]
    gpu: str
    gpus: int
    module: bool
    steps: int
    until: str | None
    time_limit: float
    host_limit: int | None
    settings: tuple[str, ...]
    tune: bool
    goal: str
    largest: tuple[str, ...]
    vary: tuple[str, ...]
    seed: int
    seeds: int | None
    pythons: tuple[str, ...]
    trace_out: Path | None
    write: bool
    budget: Path | None
    fail_over: str | None
    update_budget: bool
    as_json: bool

    @property
    def goal_of_search(self) -> str | None:
        """Goal of --tune; None without it."""
        return self.goal if self.tune else None

    @property
    def is_search(self) -> bool:
        """Whether there are variables to fill in."""
        return bool(self.largest or self.vary)


def run_options(request: Request, *, quiet: bool) -> RunOptions:
    """How far the program runs. `quiet`: nobody sees what it prints, since it runs more than once."""
    return RunOptions(
        steps=request.steps,
        until=request.until,
        gpus=request.gpus,
        time_limit_s=request.time_limit,
        host_limit_bytes=request.host_limit,
        seed=request.seed,
        seeds=request.seeds,
        echo="none" if quiet else "stderr" if request.as_json else "all",
        stacks=not request.is_search,
    )


def program_of(request: Request) -> Program:
    if request.module:
        return Program("module", request.program, request.arguments)
    if request.program == "-":
        return Program("stdin", sys.stdin.read(), request.arguments)
    return script(request.program, request.arguments)


def default_trace(request: Request) -> Path:
    """NAME.fit.hbt in this folder, or in that for temporary files if this one is read-only; only fit writes it."""
    name = request.program.rpartition(".")[2] if request.module else Path(request.program).stem
    folder = Path() if os.access(".", os.W_OK) else Path(tempfile.gettempdir())
    return folder / f"{'stdin' if request.program == '-' else name}.fit.hbt"


def refuse_contradictions(request: Request) -> None:
    several = len(request.settings) > 1 or len(request.pythons) > 1
    one_run = [
        ("--trace-out", request.trace_out),
        ("--write", request.write),
        ("--budget", request.budget),
    ]
    for name, given in one_run:
        if given and (several or request.is_search):
            raise UsageError(f"{name} is for a single prediction: leave out what asks for several")
    if len(request.largest) > 1:
        raise UsageError("--max is for one variable", hint="give the others a list of values with --vary")
    if several and request.is_search:
        raise UsageError("--max and --vary take one --settings and one --torch")
