"""What `hotbed fit` does once its options are read: which runs to make, what to print, how to exit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotbed.cli import fit_files, fit_search
from hotbed.cli.fit_request import Request, default_trace, program_of, refuse_contradictions, run_options
from hotbed.cli.printer import note, print_json, show
from hotbed.cli.progress import phases
from hotbed.errors import HotbedError, UsageError
from hotbed.predicting import Predictor, gpu_of
from hotbed.reporting.prediction_text import prediction_text, predictions_text

if TYPE_CHECKING:
    from pathlib import Path

    from hotbed.gpu import Gpu
    from hotbed.predicting import Prediction, Program


def answer(request: Request) -> int:
    """Does what `request` asks, prints the answer, and returns the exit status.

    Whatever keeps it from an answer is a UsageError: status 1 says "does not fit", to a script that asks too.
    """
    try:
        return _answer(request)
    except HotbedError as error:
        raise UsageError(error.message, hint=error.hint) from error


def _answer(request: Request) -> int:
    refuse_contradictions(request)
    fit_files.check(request)
    gpu, program = gpu_of(request.gpu), program_of(request)
    settings = request.settings or (fit_files.settings_in_file(gpu),)
    if request.is_search:
        return fit_search.answer(request, run_options(request, quiet=True), program, gpu, settings[0])
    pythons = request.pythons or (None,)
    if len(settings) * len(pythons) > 1:
        return _compare(request, program, gpu, [(python, text) for python in pythons for text in settings])
    out = request.trace_out or default_trace(request)
    found = _predict(request, program, gpu, pythons[0], settings[0], out)
    if request.as_json:
        print_json(found.to_json())
    else:
        show(prediction_text(found))
    within = fit_files.keep(request, program, found)
    return exit_status(found) or int(not within)


def exit_status(found: Prediction) -> int:
    """0 it fits, 1 it does not or that is not known, 3 the program failed, 130 interrupted."""
    if found.program_failed:
        return 3
    if found.ending == "interrupted":
        return 130
    return int(not found.fits_asked)


def _compare(request: Request, program: Program, gpu: Gpu, runs: list[tuple[str | None, str | None]]) -> int:
    every: list[Prediction] = []
    for python, settings in runs:
        if not (every and every[-1].ending == "interrupted"):
            every.append(_predict(request, program, gpu, python, settings, None, quiet=True))
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
        return predictor.predict(program, settings, trace_out=out)
