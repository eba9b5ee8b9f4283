"""What `hotbed fit` does once its options are read: which runs to make, what to print, how to exit."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hotbed.cli import fit_files, fit_search
from hotbed.cli.printer import note, print_json, show
from hotbed.cli.progress import phases
from hotbed.errors import UsageError
from hotbed.predicting import Predictor, Program, RunOptions, gpu_of
from hotbed.reporting.prediction_text import predictions_text, prediction_text

if TYPE_CHECKING:
    from hotbed.gpu import Gpu
    from hotbed.predicting import Prediction


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
    largest: str | None
    vary: tuple[str, ...]
    seed: int
    seeds: int
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


def answer(request: Request) -> int:
    """Does what `request` asks, prints the answer, and returns the exit status."""
    _refuse_contradictions(request)
    gpu, program = gpu_of(request.gpu), _program(request)
    settings = request.settings or (fit_files.settings_in_file(gpu),)
    if request.is_search:
        return fit_search.answer(request, program, gpu, settings[0])
    pythons = request.pythons or (None,)
    if len(settings) * len(pythons) > 1:
        return _compare(request, program, gpu, [(python, text) for python in pythons for text in settings])
    out = request.trace_out or _default_trace(request)
    found = _predict(request, program, gpu, pythons[0], settings[0], out)
    if request.as_json:
        print_json(found.to_json())
    else:
        show(prediction_text(found))
    within = fit_files.keep(request, found)
    return exit_status(found) or int(not within)


def exit_status(found: Prediction) -> int:
    """0 it fits, 1 it does not or nothing was seen, 3 the program failed, 130 interrupted."""
    if found.program_failed:
        return 3
    if found.ending == "interrupted":
        return 130
    stopped_early = found.ending in ("time", "host_memory") and not found.optimizer_steps
    return int(stopped_early or not found.fits_asked)


def _compare(
    request: Request, program: Program, gpu: Gpu, runs: list[tuple[str | None, str | None]]
) -> int:
    every = [_predict(request, program, gpu, python, settings, None, quiet=True) for python, settings in runs]
    for found in every:
        if request.as_json:
            print_json(found.to_json())
        elif found.error and found.program_failed:
            note(found.error.traceback)
    if not request.as_json:
        show(predictions_text(every))
    return max(exit_status(found) for found in every)


def _predict(
    request: Request,
    program: Program,
    gpu: Gpu,
    python: str | None,
    settings: str | None,
    out: Path | None,
    *,
    quiet: bool = False,
) -> Prediction:
    options = run_options(request, quiet=quiet)
    with (
        phases() as tell,
        Predictor(gpu, options, python=python, goal=request.goal_of_search, on_phase=tell) as predictor,
    ):
        return predictor.over_seeds(program, settings, request.seeds, out)


def run_options(request: Request, *, quiet: bool) -> RunOptions:
    """How far the program runs. `quiet`: nobody sees what it prints, since it runs more than once."""
    return RunOptions(
        steps=request.steps,
        until=request.until,
        gpus=request.gpus,
        time_limit_s=request.time_limit,
        host_limit_bytes=request.host_limit,
        seed=request.seed,
        echo="none" if quiet else "stderr" if request.as_json else "all",
        stacks=not request.is_search,
    )


def _program(request: Request) -> Program:
    if request.module:
        return Program("module", request.program, request.arguments)
    if request.program == "-":
        return Program("stdin", sys.stdin.read(), request.arguments)
    if not Path(request.program).is_file():
        raise UsageError(f"there is no file {request.program}", hint="for a module: hotbed fit -m NAME")
    return Program("script", request.program, request.arguments)


def _default_trace(request: Request) -> Path:
    """NAME.fit.hbt in this folder, or in that for temporary files if this one is read-only; only fit writes it."""
    name = request.program.rpartition(".")[2] if request.module else Path(request.program).stem
    folder = Path() if os.access(".", os.W_OK) else Path(tempfile.gettempdir())
    return folder / f"{'stdin' if request.program == '-' else name}.fit.hbt"


def _refuse_contradictions(request: Request) -> None:
    several = len(request.settings) > 1 or len(request.pythons) > 1
    one_run = [
        ("--trace-out", request.trace_out),
        ("--write", request.write),
        ("--budget", request.budget),
        ("--seeds", request.seeds > 1),
    ]
    for name, given in one_run:
        if given and (several or request.is_search):
            raise UsageError(f"{name} is for a single prediction: leave out what asks for several")
    if several and request.is_search:
        raise UsageError("--max and --vary take one --settings and one --torch")
    fit_files.check(request)
