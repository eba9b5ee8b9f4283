"""Why a trace ran out of memory: one hand-made case for each cause, the sums worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hotbed.findings.case import Case
from hotbed.findings.oom import find
from hotbed.trace import Frame
from hotbed.trace.model import DeviceInfo
from hotbed.trace.recorded import Failure
from tests.unit.findings.traces import Program
from tests.unit.invented import ALLOC, DONE, GROW, MIB, OOM, REQUEST

GIB = 1 << 30
FAILED = Frame("main.py", 9, "main")


def case(
    program: Program, wanted: int, free: int, failure: dict[str, Any] | None = None, **changes: Any
) -> Case:
    """`program` on a device of 10 GiB, then a request at line 9 that fails with `free` bytes left on the device."""
    program.add(OOM, free, wanted, line=9)
    event = len(program.events) - 1
    nothing = dict.fromkeys(
        ("step", "where", "requested_bytes", "allocated_bytes", "reserved_bytes", "free_bytes", "total_bytes",
         "process_bytes", "others_bytes", "limit_bytes")
    )  # fmt: skip
    known: dict[str, Any] = nothing | (failure or {})
    failures = (Failure(time_us=event, event=event, message="", **known),)
    recorded = {"failures": failures} if failure is not None else None
    return Case(program.trace(recorded, device_info=DeviceInfo("NVIDIA H200", 10 * GIB), **changes))


def holding(size: int, *, line: int = 1) -> Program:
    program = Program()
    program.add(GROW, 0, size)
    program.add(ALLOC, 0, size, line=line)
    return program


def test_capacity() -> None:
    (found,) = find(case(holding(8 * GIB), 3 * GIB, 1 * GIB, {"others_bytes": 0}))
    assert (found.code, found.bytes, found.where) == ("oom/capacity", 3 * GIB, FAILED)
    assert found.others == (Frame("main.py", 1, "main"),)
    assert "wanted 3.0 GiB; 1.0 GiB were free on the device; 0 B were reserved but free" in found.evidence[0]
    assert "no allocator setting can help" in str(found.fix)


def test_another_process() -> None:
    (found,) = find(
        case(holding(3 * GIB), 2 * GIB, 1 * GIB, {"process_bytes": 4 * GIB, "others_bytes": 5 * GIB})
    )
    assert (found.code, found.bytes) == ("oom/other-process", 5 * GIB)
    assert "other processes hold 5.0 GiB" in found.title


def test_a_cap_below_the_need() -> None:
    (found,) = find(case(holding(3 * GIB), 2 * GIB, 6 * GIB, {"limit_bytes": 4 * GIB}))
    assert (found.code, found.bytes) == ("oom/cap-too-low", 4 * GIB)


def test_room_on_the_device_tells_of_a_cap_that_nobody_recorded() -> None:
    (found,) = find(case(holding(3 * GIB), 2 * GIB, 6 * GIB))
    assert found.code == "oom/cap-too-low"


def test_fragmentation_names_the_block_in_the_way() -> None:
    program = holding(2 * GIB)
    program.add(GROW, 4 * GIB, 6 * GIB)
    program.add(ALLOC, 7 * GIB, 20 * MIB, line=5)
    (found,) = find(case(program, 4 * GIB, 1 * GIB))
    # The request needs 4 GiB; 6 GiB less 20 MiB are free, 3 GiB of it in one piece.
    assert (found.code, found.bytes) == ("oom/fragmentation", 4 * GIB)
    assert found.others == (Frame("main.py", 5, "main"),)
    assert "largest usable piece 3.0 GiB" in found.title
    assert "expandable_segments:True" in str(found.fix)


def test_with_expandable_segments_on_they_are_not_advised() -> None:
    program = holding(2 * GIB)
    program.add(GROW, 4 * GIB, 6 * GIB)
    program.add(ALLOC, 7 * GIB, 20 * MIB, line=5)
    (found,) = find(case(program, 4 * GIB, 1 * GIB, settings="expandable_segments:True"))
    assert "on already" in str(found.fix)


def test_memory_that_waits_for_a_stream() -> None:
    program = holding(2 * GIB)
    program.add(GROW, 4 * GIB, 6 * GIB)
    program.add(ALLOC, 4 * GIB, 6 * GIB, line=6)
    program.add(REQUEST, 4 * GIB, 6 * GIB)
    (found,) = find(case(program, 4 * GIB, 1 * GIB))
    assert (found.code, found.bytes) == ("oom/pending-free", 6 * GIB)
    assert found.others == (Frame("main.py", 6, "main"),)


def test_free_memory_in_a_private_pool() -> None:
    program = holding(2 * GIB)
    program.add(GROW, 4 * GIB, 6 * GIB)
    program.add(ALLOC, 4 * GIB, 6 * GIB, line=6)
    program.add(REQUEST, 4 * GIB, 6 * GIB)
    program.add(DONE, 4 * GIB, 6 * GIB)
    made = case(program, 4 * GIB, 1 * GIB, pools=((0, 0), (1, 0)))
    events = made.trace.events
    events.pool[2:6] = 1
    (found,) = find(Case(replace(made.trace, events=events)))
    assert (found.code, found.bytes) == ("oom/private-pool", 6 * GIB)


def test_a_failure_in_a_gap_is_judged_by_what_the_recorder_saw() -> None:
    made = case(holding(1 * GIB), 1, 1, {"others_bytes": 0})
    failure = Failure(0, None, 7, FAILED, "CUDA out of memory. Tried to allocate 4.00 GiB.", 4 * GIB, 8 * GIB, 8 * GIB, GIB,
                      10 * GIB, 9 * GIB, 0, None)  # fmt: skip
    trace = made.trace
    assert trace.recorded is not None
    quiet = replace(trace, recorded=replace(trace.recorded, failures=(failure,)))
    quiet.events.action[-1] = ALLOC
    (found,) = find(Case(quiet))
    assert (found.code, found.bytes, found.where) == ("oom/capacity", 4 * GIB, FAILED)


def test_many_failures_of_one_line_are_one_finding() -> None:
    program = holding(8 * GIB)
    for _ in range(3):
        program.add(OOM, GIB, 3 * GIB, line=9)
    (found,) = find(case(program, 3 * GIB, GIB))
    assert found.evidence[-1] == "the trace has 4 failures in all"


@pytest.mark.parametrize("settings", ["per_process_memory_fraction:0.4"])
def test_a_cap_in_the_settings_counts(settings: str) -> None:
    (found,) = find(case(holding(3 * GIB), 2 * GIB, 6 * GIB, settings=settings))
    assert (found.code, found.bytes) == ("oom/cap-too-low", 4 * GIB)


def test_frees_that_torch_waited_for_before_it_gave_up() -> None:
    program = holding(2 * GIB)
    program.add(GROW, 4 * GIB, 6 * GIB)
    program.add(ALLOC, 4 * GIB, 6 * GIB, line=6)
    program.add(REQUEST, 4 * GIB, 6 * GIB)
    program.add(DONE, 4 * GIB, 6 * GIB)
    (found,) = find(case(program, 4 * GIB, 1 * GIB))
    assert (found.code, found.bytes) == ("oom/pending-free", 6 * GIB)
    assert found.others == (Frame("main.py", 6, "main"),)


def test_frees_before_a_request_that_nothing_free_would_have_served_are_not_to_blame() -> None:
    program = holding(2 * GIB)
    program.add(GROW, 4 * GIB, 6 * GIB)
    program.add(ALLOC, 7 * GIB, 20 * MIB, line=5)
    program.add(ALLOC, 4 * GIB, 2 * GIB, line=6)
    program.add(REQUEST, 4 * GIB, 2 * GIB)
    program.add(DONE, 4 * GIB, 2 * GIB)
    (found,) = find(case(program, 4 * GIB, 1 * GIB))
    assert found.code == "oom/fragmentation"


def test_plans_that_a_library_tries_are_no_failures() -> None:
    program = holding(8 * GIB)
    for wanted in (6 * GIB, 4 * GIB, 3 * GIB):
        program.add(OOM, GIB, wanted, line=4)
    program.add(ALLOC, 8 * GIB, MIB, line=4)
    assert list(find(Case(program.trace(device_info=DeviceInfo("NVIDIA H200", 10 * GIB))))) == []
