"""Runs a program on phantom GPUs and hands back what is known of it: the entry point of everything that predicts."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

from hotbed.errors import TorchError, UsageError
from hotbed.predicting.assembling import device_runs, host_model_bytes
from hotbed.predicting.forked import ANSWERING, LEARNING
from hotbed.predicting.passes import Finished, Pass, Running, finished_draw, run_pass, show_kept
from hotbed.predicting.script_run import Read, ScriptError, ScriptRun
from hotbed.recording.draws import further_draws, named
from hotbed.recording.report import REPORT
from hotbed.recording.values.session import ANSWERS, STOPPED_EXIT_STATUS
from hotbed.trace import Action
from hotbed.trace.compaction import write_compact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from hotbed.gpu import Gpu
    from hotbed.predicting.program import Program
    from hotbed.predicting.script_run import DeviceRun

_STOPPED = "plain, stopped at a read"
_NO_TORCH = ("ModuleNotFoundError", "No module named 'torch'")

Echo = Literal["all", "stderr", "none"]


@dataclass(frozen=True)
class RunOptions:
    """How far a program runs, on what, and what its user sees of it.

    The first of `steps`, `until` and the limits that is reached ends it; None is no limit. `total_bytes` replaces the
    memory of the GPU. `echo`: the program's stdout and stderr go where ours go ("all"), both to stderr, or nowhere.
    Without `stacks` the trace has no Python stacks and recording costs less. `progress` is told in words what goes on.
    """

    steps: int | None = 3
    until: str | None = None
    gpus: int = 1
    time_limit_s: float = 600.0
    host_limit_bytes: int | None = None
    seed: int = 0
    seeds: int | None = None
    """how many seeds guesses are drawn with, from `seed` upwards; None: AUTOMATIC where sizes follow from guesses, else 1"""
    total_bytes: int | None = None
    echo: Echo = "all"
    stacks: bool = True
    progress: Callable[[str], None] | None = None
    running: Running = field(default_factory=Running)
    """ends the program from another thread"""
    checkpoint: bool = True
    """False: each pass starts from scratch, instead of from the program's first use of CUDA"""


def run(program: Program, gpu: Gpu, options: RunOptions | None = None) -> ScriptRun:
    """Runs `program` on phantom GPUs of model `gpu` in its own folder, up to three times; see docs/internals/fit.md.

    An end of the program's own making, its exceptions included, is a result. Raises UsageError for a program that
    does not exist, TorchError where its interpreter has no torch with CUDA, PlatformError where no phantom can run.
    """
    options = options or RunOptions()
    _check(program)
    card = (
        replace(gpu, total_bytes=options.total_bytes, nvml_total_bytes=None) if options.total_bytes else gpu
    )
    begun = time.monotonic()
    with TemporaryDirectory(prefix="hotbed-run-") as folder:
        finished, passes = _passes(program, card, options, Path(folder))
        draws = {0: finished, **dict(_further(program, card, options, finished))}
        seconds = time.monotonic() - begun
        return _of_the_largest(
            [
                _script_run(program, card, one, passes, seconds, options.seed + draw)
                for draw, one in draws.items()
            ]
        )


def _further(
    program: Program, gpu: Gpu, options: RunOptions, first: Finished
) -> Iterator[tuple[int, Finished]]:
    """(what was added to the seed, the pass that counts) of each further draw that came to an end."""
    folder = first.folder.parent
    if first.folder != folder / "answered":
        return
    for draw in further_draws(options.seeds, first.folder / REPORT):
        if len(first.modes) == 1:
            _draw_from_scratch(program, gpu, options, folder, draw)
        found = finished_draw(first, draw)
        if found is not None:
            yield draw, found


def _draw_from_scratch(program: Program, gpu: Gpu, options: RunOptions, folder: Path, draw: int) -> None:
    """For a program whose passes cannot go on from a checkpoint."""
    _say(options, f"sizes rest on guesses: running it with those of seed {options.seed + draw}")
    values = folder / named("values", draw)
    values.mkdir()
    for mode in ("learn", "answered"):
        this = Pass(mode, folder / named(mode, draw), values, kept=True, draw=draw)
        this.folder.mkdir()
        if run_pass(program, gpu, options, this).ending == "interrupted":
            return


def _of_the_largest(runs: list[ScriptRun]) -> ScriptRun:
    """The one that reserved the most on a device, with the others in `further`. One that ran out of memory needs more."""

    def needs(run: ScriptRun) -> tuple[bool, int]:
        peaks = [device.peak_reserved_bytes for device in run.devices]
        return run.ending == "out_of_memory", max(peaks, default=0)

    usual = (runs[0].ending, "out_of_memory")
    whole = [run for run in runs if run.ending in usual]
    largest = max(whole, key=needs)
    odd = [
        f"with seed {run.seed} it came to another end: {run.ending}"
        for run in runs
        if run.ending not in usual
    ]
    return replace(
        largest,
        not_modelled=(*largest.not_modelled, *odd),
        further=tuple(run for run in whole if run is not largest),
    )


def _passes(
    program: Program, gpu: Gpu, options: RunOptions, folder: Path
) -> tuple[Finished, tuple[str, ...]]:
    """The pass that counts, and the names of all. Only a program that reads values from the device runs again."""
    (folder / "values").mkdir()

    def next_pass(mode: str, *, kept: bool) -> tuple[Pass, Finished]:
        forks = mode == "plain" and options.checkpoint
        this = Pass(mode, folder / mode, folder / "values", kept, forks)
        this.folder.mkdir()
        return this, run_pass(program, gpu, options, this)

    this, finished = next_pass("plain", kept=True)
    _check_torch(program, finished.report)
    if len(finished.modes) > 1:
        return finished, (_STOPPED, *finished.modes[1:])
    if finished.report or finished.ending == "interrupted" or finished.exit_code != STOPPED_EXIT_STATUS:
        show_kept(options, this)
        return finished, ("plain",)
    _say(options, LEARNING)
    _, learnt = next_pass("learn", kept=True)
    if learnt.ending == "interrupted":
        return learnt, (_STOPPED, "learn")
    mode = "answered" if (folder / "values" / ANSWERS).exists() else "policy"
    _say(options, ANSWERING)
    return next_pass(mode, kept=False)[1], (_STOPPED, "learn", mode)


def _say(options: RunOptions, what: str) -> None:
    if options.progress is not None:
        options.progress(what)


def write_trace(run: ScriptRun, path: str | os.PathLike[str]) -> bool:
    """Writes the traces of all devices of `run` to the .hbt file `path`; False where there is none."""
    traces = [device.trace for device in run.devices if device.trace is not None]
    if traces:
        write_compact(path, traces)
    return bool(traces)


def _check(program: Program) -> None:
    if program.kind == "script" and not (Path(program.folder or ".") / program.target).exists():
        raise UsageError(
            f"there is no {program.target}", hint="give the path of a Python script, or -m MODULE"
        )


def _check_torch(program: Program, report: dict[str, Any]) -> None:
    error = report.get("error")
    if error and (error["type"], error["message"]) == _NO_TORCH:
        raise TorchError(
            f"{program.python or 'this interpreter'} has no torch", hint='pip install "hotbed[torch]" there'
        )
    if report.get("torch") is not None and report["cuda"] is None:
        raise TorchError(
            f"{program.python or 'this interpreter'} has torch {report['torch']}, which is built without CUDA",
            hint='install a CUDA build (no GPU needed): pip install "hotbed[torch]"',
        )


def _script_run(
    program: Program, gpu: Gpu, finished: Finished, passes: tuple[str, ...], seconds: float, seed: int
) -> ScriptRun:
    report = finished.report
    devices = device_runs(finished, gpu)
    return ScriptRun(
        gpu=gpu,
        devices=devices,
        ending=finished.ending,
        script_exit_code=report.get("exit_code", finished.exit_code),
        error=_error(finished, devices),
        optimizer_steps=len(report.get("rounds", ())),
        torch_version=report.get("torch") or "",
        cudnn_version=report.get("cudnn"),
        settings=_settings(program, devices),
        libraries=tuple(report.get("libraries", {}).items()),
        reads=tuple(Read(**row) for row in report.get("reads", ())),
        not_modelled=_not_modelled(finished, passes),
        host_peak_bytes=report.get("host_peak_bytes", 0),
        host_model_bytes=host_model_bytes(report, devices),
        wall_seconds=seconds,
        passes=passes,
        used_gpu=bool(devices) or finished.used_gpu(),
        seed=seed,
        unrecorded=_unrecorded(finished),
    )


def _settings(program: Program, devices: tuple[DeviceRun, ...]) -> str:
    """As torch reports them; where it has no history, as the environment asks for them."""
    for device in devices:
        if device.trace is not None:
            return device.trace.settings
    environment = {**os.environ, **dict(program.environment)}
    return environment.get("PYTORCH_CUDA_ALLOC_CONF") or environment.get("PYTORCH_ALLOC_CONF") or ""


def _error(finished: Finished, devices: tuple[DeviceRun, ...]) -> ScriptError | None:
    found = finished.report.get("error")
    if found is None:
        return None
    requested = None
    if finished.ending == "out_of_memory":
        refused = [time_and_size for device in devices for time_and_size in _refused(device)]
        requested = max(refused)[1] if refused else None
    return ScriptError(found["type"], found["message"], found["traceback"], requested)


def _refused(device: DeviceRun) -> list[tuple[int, int]]:
    """(time in microseconds, bytes) of the requests that failed."""
    if device.trace is None:
        return []
    events = device.trace.events
    found = events.action == Action.OOM
    return list(zip(events.time_us[found].tolist(), events.size[found].tolist(), strict=True))


def _not_modelled(finished: Finished, passes: tuple[str, ...]) -> tuple[str, ...]:
    report = finished.report
    sentences = list(report.get("remarks", ()))
    names = report.get("unmodelled")
    if names:
        sentences.append("the program called what the phantom does not model: " + ", ".join(names))
    failure = _learning_failure(finished) if "learn" in passes else None
    if failure is not None:
        sentences.append(f"the learning pass failed: {failure}; values are told by policy")
    elif "policy" in passes:
        sentences.append("the values that the program reads could not be learnt: it was told zeros")
    return tuple(sentences)


def _learning_failure(finished: Finished) -> str | None:
    """How the learning pass failed, in its last words; None if it did not, or ended as `finished`, the pass after it."""
    folder = finished.folder.parent / "learn"
    if finished.folder == folder:
        return None
    if not (folder / REPORT).exists():
        lines = (folder / "stderr").read_text(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "it was ended without a word")
    report = json.loads((folder / REPORT).read_text())
    if report["ending"] in ("end", "steps", "until", finished.ending):
        return None
    error = report["error"]
    return f"{error['type']}: {error['message']}".split("\n")[0] if error else f"ended by {report['ending']}"


def _unrecorded(finished: Finished) -> str | None:
    if finished.report:
        used = "a process that the program started used the GPU and is not recorded"
        return used if finished.children_used_gpu() else None
    if finished.ending == "killed":
        return "the program was killed by a signal before anything could be written down"
    if finished.ending == "time":
        return "the program did not react at its time limit and was killed"
    if finished.ending == "interrupted":
        return "the program was interrupted before anything could be written down"
    return f"the program's process became another one, or left Python (exit status {finished.exit_code})"
