"""What a Case works out of a trace, against torch's own final map and figures worked out by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from hotbed.findings.case import Case
from hotbed.findings.lines import own_frame
from hotbed.trace import Frame, load_trace
from hotbed.trace.model import Block, Segment
from tests.unit.invented import ALLOC, DONE, GROW, MIB, REQUEST, freed, trace_of, training

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", ["detection", "streams", "kv_serving", "graphs", "leak"])
def test_the_map_at_the_end_is_the_one_that_torch_wrote(data: Path, name: str) -> None:
    trace = load_trace(data / "h200" / f"{name}.record.pickle.xz")
    ours = Case(trace).map_at(len(trace.events))
    assert [_shape(segment) for segment in ours] == [_shape(segment) for segment in trace.segments]


def _shape(segment: Segment) -> tuple[object, ...]:
    blocks = [(block.address, block.size_bytes, block.state) for block in segment.blocks]
    return segment.address, segment.size_bytes, segment.stream, segment.is_large, blocks


def test_a_block_that_waits_for_a_stream_is_active_but_not_live() -> None:
    events = [(GROW, 0, 20 * MIB), (ALLOC, 0, 3 * MIB), (REQUEST, 0, 3 * MIB), (DONE, 0, 3 * MIB)]
    case = Case(trace_of(events))
    assert [case.allocations.live_at(place).tolist() for place in range(5)] == [
        [False],
        [False],
        [True],
        [False],
        [False],
    ]
    assert [case.allocations.active_at(place).tolist() for place in (3, 4)] == [[True], [False]]
    (segment,) = case.map_at(3)
    assert [(block.state, block.size_bytes) for block in segment.blocks] == [
        ("active_pending_free", 3 * MIB),
        ("inactive", 17 * MIB),
    ]


def test_blocks_older_than_the_trace_count_until_they_are_freed() -> None:
    old = Segment(0, 20 * MIB, 0, True, False, (0, 0), (Block(0, 8 * MIB, 8 * MIB, "active_allocated"),))
    case = Case(trace_of([(ALLOC, 8 * MIB, 4 * MIB), *freed(0, 8 * MIB)], initial_segments=(old,)))
    assert case.allocations.made.tolist() == [-1, 0]
    assert case.allocations.freed.tolist() == [1, 3]
    assert (case.peak, case.allocated_at(case.peak), case.allocated_at(0)) == (1, 12 * MIB, 8 * MIB)


def test_an_address_used_twice_pairs_each_allocation_with_its_own_free() -> None:
    case = Case(trace_of([(ALLOC, 0, 512), *freed(0, 512), (ALLOC, 0, 1024), *freed(0, 1024)]))
    assert case.allocations.freed.tolist() == [1, 4]
    assert case.allocations.completed.tolist() == [2, 5]


def test_steps_come_from_the_rise_and_fall_of_memory_where_nobody_recorded_them() -> None:
    case = Case(training([100 * MIB] * 12))
    assert not case.steps_are_recorded
    assert len(case.settled_steps) == len(case.train_steps) - 3
    assert {step.allocations for step in case.settled_steps[:-1]} == {2}


def test_a_line_holds_what_its_stacks_allocated() -> None:
    stacks = ((Frame("/env/lib/python3.12/site-packages/torch/nn/modules/conv.py", 5, "forward"), Frame("/me/a.py", 3, "f")),
              (Frame("/me/a.py", 3, "f"),), (Frame("/me/b.py", 9, "g"),))  # fmt: skip
    trace = trace_of(
        [(ALLOC, 0, 1024), (ALLOC, 4096, 512), (ALLOC, 8192, 4096), (ALLOC, 16384, 1)], stacks=stacks
    )
    trace.events.stack[:] = np.array([0, 1, 2, -1])
    case = Case(trace)
    held = case.by_line(case.allocations.live_at(4))
    assert [(share.of, share.bytes, share.allocations) for share in held] == [
        (Frame("/me/b.py", 9, "g"), 4096, 1),
        (Frame("/me/a.py", 3, "f"), 1536, 2),
        (None, 512, 1),
    ]


@pytest.mark.parametrize(
    ("filename", "own"),
    [
        ("/work/torch/train.py", True),
        ("train.py", True),
        ("/tmp/ipykernel_12/345.py", True),
        ("<stdin>", True),
        ("/usr/lib/python3.11/contextlib.py", False),
        ("/opt/pytorch/torch/nn/modules/module.py", False),
        ("/x/torch/_tensor.py", False),
        ("/env/lib/python3.12/site-packages/transformers/trainer.py", False),
        ("<eval_with_key>.7", False),
        ("<frozen runpy>", False),
    ],
)
def test_which_files_are_the_programs_own(filename: str, own: bool) -> None:
    inner, outer = Frame(filename, 1, "inner"), Frame("/me/main.py", 2, "outer")
    assert own_frame((inner, outer)) == (inner if own else outer)


def test_without_a_line_of_its_own_the_innermost_python_frame_is_shown() -> None:
    native = Frame("??", 0, "at::empty")
    library = Frame("/env/lib/python3.12/site-packages/torch/x.py", 4, "f")
    assert own_frame((native, library)) == library
    assert own_frame((native,)) == native
    assert own_frame(()) is None
