"""Which runs a prediction takes: once, or again with enough memory. The runs are made by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hotbed.errors import SettingsError
from hotbed.gpu import find_gpu
from hotbed.predicting import Predictor, Program, RunOptions, predictor
from hotbed.predicting.script_run import ScriptError
from tests.unit.invented import MIB, training
from tests.unit.predicting.runs import device_of, run_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hotbed.gpu import Gpu
    from hotbed.predicting.script_run import ScriptRun

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("forking")]

PROGRAM = Program("script", "train.py")
T4 = find_gpu("t4")


@pytest.fixture(scope="module")
def t4() -> Iterator[Predictor]:
    with Predictor(T4, RunOptions(), cards=False) as one:
        yield one


def runs(monkeypatch: pytest.MonkeyPatch, make: Callable[[RunOptions], ScriptRun]) -> list[Any]:
    """Lets `make` stand for running a program; the list fills with (program, options) of each run."""
    seen: list[Any] = []

    def run(program: Program, _: Gpu, options: RunOptions) -> ScriptRun:
        seen.append((program, options))
        return make(options)

    monkeypatch.setattr(predictor, "run", run)
    return seen


def sized(size: int, **changes: Any) -> ScriptRun:
    """A run whose trace reserves little more than twice `size`."""
    device = device_of(training([size] * 4, lasting=size), peak_reserved_bytes=3 * size)
    return run_of(device, gpu=T4, **changes)


def test_a_program_that_runs_out_is_run_again_with_enough(
    monkeypatch: pytest.MonkeyPatch, t4: Predictor
) -> None:
    error = ScriptError("OutOfMemoryError", "CUDA out of memory.", "Traceback ...")
    failed = sized(MIB, ending="out_of_memory", error=error)

    def make(options: RunOptions) -> ScriptRun:
        return sized(10 << 30) if options.total_bytes else failed

    seen = runs(monkeypatch, make)
    found = t4.predict(PROGRAM)
    assert [bool(options.total_bytes) for _, options in seen] == [False, True]
    assert not found.fits_asked
    assert found.fits[0].smallest_bytes > 20 << 30
    assert found.error == error


def test_settings_reach_the_program_alone(monkeypatch: pytest.MonkeyPatch, t4: Predictor) -> None:
    seen = runs(monkeypatch, lambda _: sized(MIB))
    t4.predict(PROGRAM, "expandable_segments:True")
    assert ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True") in seen[0][0].environment
    with pytest.raises(SettingsError):
        t4.predict(PROGRAM, "no_such_key:1")
