"""What a trace turns into: ops by hand-made events. Rules: allocator-semantics 8.4."""

from __future__ import annotations

from hotbed.replaying.program import Op, compile_trace, runs_of
from hotbed.trace import Block, Segment
from tests.unit.invented import ALLOC, DONE, GROW, MIB, OOM, REQUEST, SHRINK, freed, trace_of


def ops(trace: object) -> list[Op]:
    return [Op(value) for value in compile_trace(trace).op]  # type: ignore[arg-type]


def test_a_free_that_completes_at_once_is_one_op() -> None:
    program = compile_trace(trace_of([(ALLOC, 1, 700), *freed(1, 700), (ALLOC, 1, 300)]))
    assert [Op(value) for value in program.op] == [Op.ALLOC, Op.FREE, Op.ALLOC]
    assert list(program.allocation) == [0, 0, 1]
    assert list(program.size) == [700, 0, 300]
    assert list(program.event) == [0, 1, 3]


def test_a_free_that_completes_later_waits_for_its_stream() -> None:
    trace = trace_of([(ALLOC, 1, 700), (REQUEST, 1, 700), (ALLOC, 2, 9), (DONE, 1, 700)])
    assert ops(trace) == [Op.TRACKED_ALLOC, Op.PENDING_FREE, Op.ALLOC, Op.COMPLETE]


def test_a_request_that_ended_the_program_is_tried_again() -> None:
    trace = trace_of([(ALLOC, 1, 700), (OOM, 12345, 4 * MIB, 7), *freed(1, 700)])
    program = compile_trace(trace)
    assert [Op(value) for value in program.op] == [Op.ALLOC, Op.ALLOC, Op.FREE]
    assert (program.size[1], program.stream[1], program.event[1]) == (4 * MIB, 7, 1)


def test_a_request_that_the_program_survived_not_getting_is_tried_and_given_back() -> None:
    trace = trace_of([(OOM, 12345, 4 * MIB), (ALLOC, 1, 700)])
    assert ops(trace) == [Op.TRIED_ALLOC, Op.ALLOC]


def test_releases_below_the_peak_are_empty_cache_calls() -> None:
    trace = trace_of(
        [
            (GROW, 1, 20 * MIB),
            (ALLOC, 1, 9 * MIB),
            *freed(1, 9 * MIB),
            (SHRINK, 1, 20 * MIB),
            (GROW, 2, 20 * MIB),
            (ALLOC, 2, 9 * MIB),
            (GROW, 3, 40 * MIB),
            (ALLOC, 3, 40 * MIB),
        ]
    )
    program = compile_trace(trace)
    assert [Op(value) for value in program.op] == [Op.ALLOC, Op.FREE, Op.EMPTY_CACHE, Op.ALLOC, Op.ALLOC]
    assert "empty_cache()" in program.notes[0]


def test_what_the_small_pool_cached_before_recording_takes_requests_that_it_serves() -> None:
    segment = Segment(0x1000, 2 * MIB, 0, False, False, (0, 0), (Block(0x1000, 2 * MIB, 0, "inactive"),))
    program = compile_trace(trace_of([(ALLOC, 0x1000, 700)], initial_segments=(segment,)))
    assert [size for size in program.size if size] == [MIB, MIB, 700]


def test_a_block_that_waited_for_its_stream_when_recording_began_goes_on_waiting() -> None:
    segment = Segment(
        1, 40 * MIB, 0, True, False, (0, 0), (Block(1, 40 * MIB, 40 * MIB, "active_pending_free"),)
    )
    program = compile_trace(trace_of([(ALLOC, 2, 700), (DONE, 1, 9)], initial_segments=(segment,)))
    kinds = [Op(value) for value in program.op[2:]]
    assert kinds == [Op.TRACKED_ALLOC, Op.EMPTY_CACHE, Op.PENDING_FREE, Op.BEGIN, Op.ALLOC, Op.COMPLETE]


def test_the_state_before_recording_is_rebuilt_block_by_block() -> None:
    blocks = (
        Block(0x1000, 8 * MIB, 8 * MIB, "active_allocated"),
        Block(0x1000 + 8 * MIB, 4 * MIB, 0, "inactive"),
        Block(0x1000 + 12 * MIB, 8 * MIB, 8 * MIB - 5, "active_allocated"),
    )
    segment = Segment(0x1000, 20 * MIB, 0, True, False, (0, 0), blocks)
    program = compile_trace(trace_of(freed(0x1000, 8 * MIB), initial_segments=(segment,)))
    kinds = [Op(value) for value in program.op]
    # The whole segment is taken and given back and carved into its blocks; the last is asked for anew, since its
    # request was smaller than it is; then the free one is freed.
    carved = [Op.ALLOC, Op.FREE, Op.ALLOC, Op.ALLOC, Op.ALLOC]
    assert kinds == [*carved, Op.FREE, Op.ALLOC, Op.EMPTY_CACHE, Op.FREE, Op.BEGIN, Op.FREE]
    assert [size for size in program.size if size] == [20 * MIB, 8 * MIB, 4 * MIB, 8 * MIB, 8 * MIB - 5]
    assert list(program.allocation[-3:]) == [2, 0, 1]
    assert "rebuilt" in program.notes[-1]


def test_runs_break_where_the_stream_changes() -> None:
    events = [(ALLOC, 1, 700), (ALLOC, 2, 700, 5), *freed(1, 700), (ALLOC, 3, 700, 5)]
    columns = runs_of(compile_trace(trace_of(events)))
    assert list(columns["run_begin"]) == [0, 1]
    assert list(columns["run_stream"]) == [0, 5]
