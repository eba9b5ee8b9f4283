"""Runs programs and predicts from what they did: one model of GPU, one interpreter, as many programs as wanted."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hotbed.errors import HotbedError, UsageError
from hotbed.gpu import Gpu, find_gpu
from hotbed.gpu.calibration import load_gpu
from hotbed.predicting.answering import Question, predict
from hotbed.predicting.capacity import ROOMY_BYTES, roomy
from hotbed.predicting.running import RunOptions, run, write_trace
from hotbed.replaying import Replayer
from hotbed.settings import AllocatorSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from hotbed.predicting.prediction import Prediction
    from hotbed.predicting.program import Program

_SETTINGS_NAME = "PYTORCH_CUDA_ALLOC_CONF"
"""every torch reads this name, and none prefers another to it"""
_NO_FILE = "`hotbed calibrate` writes such a file; `hotbed gpus` lists the names"


def gpu_of(name: str | Gpu) -> Gpu:
    """The GPU called `name` in the catalogue, or the card that the calibration file `name` describes.

    Raises UsageError where there is none of that name, or the file describes no card.
    """
    if isinstance(name, Gpu):
        return name
    if not name.endswith(".toml"):
        return find_gpu(name)
    try:
        return load_gpu(Path(name))
    except HotbedError as error:
        raise UsageError(error.message, hint=error.hint) from None
    except OSError as error:
        raise UsageError(f"{name}: {error.strerror or error}", hint=_NO_FILE) from None


class Predictor:
    """Predicts for programs on `gpu`. A context manager: it keeps a process that replays.

    `python` is the interpreter that runs them (None: this one). `cards`: also judge every GPU of the catalogue; `goal`:
    search settings by it, as in hotbed.tune. `on_phase` is told in words what begins.
    """

    def __init__(
        self,
        gpu: Gpu,
        options: RunOptions,
        *,
        python: str | None = None,
        cards: bool = True,
        goal: str | None = None,
        on_phase: Callable[[str], None] | None = None,
    ) -> None:
        self.gpu, self.options, self.python = gpu, options, python
        self._tell = on_phase or (lambda _: None)
        self._question = Question(gpu, cards, goal, python, self._tell)
        # It imports torch, as the program does: side by side, not one after the other.
        self._pool = ThreadPoolExecutor(1)
        self._replayer: Future[Replayer] = self._pool.submit(Replayer, roomy(gpu), python=python)

    def __enter__(self) -> Predictor:
        return self

    def __exit__(self, *_: object) -> None:
        if self._replayer.exception() is None:
            self._replayer.result().engine.close()
        self._pool.shutdown()

    def predict(
        self,
        program: Program,
        settings: str | None = None,
        *,
        trace_out: Path | None = None,
        what_it_would_need: bool = True,
    ) -> Prediction:
        """Runs `program` once and predicts; a second time with enough memory if it ran out and `what_it_would_need`.

        `settings` None leaves those of the environment. The trace is written to `trace_out`, which must not exist.
        Raises SettingsError, UsageError, TorchError, PlatformError.
        """
        begun = time.monotonic()
        program = _with_settings(replace(program, python=self.python), settings)
        failed, found = None, run(program, self.gpu, self.options)
        if found.ending == "out_of_memory" and what_it_would_need:
            failed = found
            self._tell("out of memory: running again to see what it would need")
            found = run(program, self.gpu, replace(self.options, total_bytes=ROOMY_BYTES, echo="none"))
        self._tell("replaying under the limits of other cards")
        prediction = predict(program, found, self._question, self._replayer.result, failed)
        prediction = replace(prediction, wall_seconds=time.monotonic() - begun)
        if trace_out is not None and write_trace(found, trace_out):
            prediction = replace(prediction, trace=str(trace_out))
        return prediction


def _with_settings(program: Program, settings: str | None) -> Program:
    if settings is None:
        return program
    AllocatorSettings.parse(settings)
    return replace(program, environment=(*program.environment, (_SETTINGS_NAME, settings)))


def refuse_overwrite(path: Path) -> None:
    """Raises UsageError if a trace cannot be written to `path`, before a program runs for it."""
    if path.exists():
        raise UsageError(f"{path} exists", hint="choose another name, or remove it first")
    if not path.parent.is_dir():
        raise HotbedError(f"there is no folder {path.parent}", hint=f"mkdir -p {path.parent}")
