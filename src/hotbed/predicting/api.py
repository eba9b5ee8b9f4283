"""hotbed.fit: what memory a program needs, and which GPUs have it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hotbed.predicting.predictor import Predictor, gpu_of, refuse_overwrite
from hotbed.predicting.running import RunOptions
from hotbed.predicting.targets import program_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike

    from hotbed.gpu import Gpu
    from hotbed.predicting.prediction import Prediction
    from hotbed.predicting.running import Echo

DEFAULT_GPU = "h100-80"


def fit(
    target: str | PathLike[str] | Callable[[], object],
    gpu: str | Gpu = DEFAULT_GPU,
    *,
    args: Sequence[str] = (),
    steps: int | None = 3,
    settings: str | None = None,
    python: str | None = None,
    tune: bool = False,
    trace_out: str | PathLike[str] | None = None,
    until: str | None = None,
    gpus: int = 1,
    time_limit_s: float = 600.0,
    host_limit_bytes: int | None = None,
    seed: int = 0,
    seeds: int | None = None,
    echo: Echo = "stderr",
) -> Prediction:
    """What memory `target` needs on `gpu`: a script, or a function without arguments, run on a phantom GPU.

    It runs in a fresh process, never in this one, until `steps` optimizer steps, the text `until` in its output, a
    limit or its own end. `gpu` is a catalogue name, a Gpu, or a file of `hotbed calibrate`; `settings` an env string as
    in PYTORCH_CUDA_ALLOC_CONF (None: what the environment says); `python` another interpreter. `tune` searches settings.
    Guesses are drawn with `seeds` seeds from `seed` upwards (None: 3 where sizes follow from them).
    The trace is written to `trace_out`, a new .hbt file. What the program prints goes to stderr, see `echo`.

    That it runs out of memory or fails is a result: see Prediction.ending. Raises UsageError for a target that no fresh
    process can get at, TorchError, SettingsError, PlatformError.
    """
    program = program_of(target, args, python=python)
    out = None if trace_out is None else Path(trace_out)
    if out is not None:
        refuse_overwrite(out)
    options = RunOptions(
        steps=steps,
        until=until,
        gpus=gpus,
        time_limit_s=time_limit_s,
        host_limit_bytes=host_limit_bytes,
        seed=seed,
        seeds=seeds,
        echo=echo,
    )
    with Predictor(gpu_of(gpu), options, python=python, goal="balanced" if tune else None) as predictor:
        return predictor.predict(program, settings, trace_out=out)
