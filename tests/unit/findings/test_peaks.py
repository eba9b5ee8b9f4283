"""Which stretch decides the peak."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hotbed.findings.case import Case
from hotbed.findings.peaks import find
from hotbed.trace import Frame
from tests.unit.findings.traces import Program
from tests.unit.invented import ALLOC, DONE, MIB, REQUEST

if TYPE_CHECKING:
    from collections.abc import Sequence


def use(program: Program, blocks: Sequence[tuple[int, int]], *, at: int = 1 << 40) -> None:
    """Allocates (MiB, line) blocks side by side, then frees them all."""
    held = []
    for index, (size, line) in enumerate(blocks):
        held.append((at + (index << 34), size * MIB))
        program.add(ALLOC, *held[-1], line=line)
    for block in held:
        program.add(REQUEST, *block)
        program.add(DONE, *block)


def job(first: Sequence[tuple[int, int]], phase: Any, usual: Sequence[tuple[int, int]] = ((100, 2),)) -> Case:
    """100 MiB that stay, one stretch that uses `first`, and eight training steps that use `usual`."""
    program = Program()
    program.add(ALLOC, 0, 100 * MIB, line=1)
    for number in range(9):
        begun = len(program.events)
        use(program, usual if number else first)
        program.step(begun, phase if number == 0 else "train")
    return Case(program.trace())


@pytest.mark.parametrize(
    ("phase", "code"), [("setup", "peak/setup"), ("train", "peak/first-step"), ("eval", "peak/eval")]
)
def test_the_stretch_with_more_than_the_settled_steps(phase: str, code: str) -> None:
    (found,) = find(job([(400, 7)], phase))
    assert (found.code, found.severity, found.bytes) == (code, "notice", 300 * MIB)
    assert found.where == Frame("main.py", 7, "main")
    assert "500.0 MiB allocated" in found.evidence[0]
    assert "200.0 MiB, 60 % less" in found.evidence[0]


@pytest.mark.parametrize("size", [80, 115])
def test_a_little_more_decides_nothing(size: int) -> None:
    assert list(find(job([(size, 7)], "train"))) == []


def test_too_few_steps_tell_nothing() -> None:
    program = Program()
    for size in (400, 100):
        begun = len(program.events)
        use(program, [(size, 1)])
        program.step(begun)
    assert list(find(Case(program.trace()))) == []


def test_two_peaks_of_one_step() -> None:
    program = Program()
    program.add(ALLOC, 0, 100 * MIB, line=1)
    for _ in range(8):
        begun = len(program.events)
        use(program, [(400, 2)])
        use(program, [(390, 3)])
        program.step(begun)
    (found,) = find(Case(program.trace()))
    assert (found.code, found.bytes) == ("peak/two-peaks", 10 * MIB)
    assert (found.where, found.others) == (Frame("main.py", 2, "main"), (Frame("main.py", 3, "main"),))


def validation(*, with_backward: bool) -> Case:
    """Training steps of 10 blocks of 10 MiB, one of them followed by a forward that keeps 10 blocks of 50 MiB."""
    program = Program()
    program.add(ALLOC, 0, 100 * MIB, line=1)
    for number in range(8):
        begun = len(program.events)
        use(program, [(10, 2)] * 10)
        if number == 4:
            for index in range(10):
                program.add(ALLOC, (1 << 44) + (index << 34), 50 * MIB, line=7)
            if with_backward:
                use(program, [(1, 0)])
            for index in range(10):
                program.add(REQUEST, (1 << 44) + (index << 34), 50 * MIB)
                program.add(DONE, (1 << 44) + (index << 34), 50 * MIB)
        program.step(begun)
    trace = program.trace()
    call = Frame("/env/lib/python3.12/site-packages/torch/nn/modules/module.py", 1790, "_call_impl")
    stacks = tuple((call, *stack) for stack in trace.stacks)
    return Case(program.trace(stacks=stacks))


def test_a_validation_with_gradients_on_is_told_from_a_large_training_step() -> None:
    (found,) = find(validation(with_backward=False))
    assert (found.code, found.severity, found.bytes) == ("peak/eval", "problem", 400 * MIB)
    assert found.where == Frame("main.py", 7, "main")
    assert "torch.no_grad()" in str(found.fix)
    assert list(find(validation(with_backward=True))) == []
