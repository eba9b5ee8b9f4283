"""Pieces of device memory: when the allocator had which, against the map that is worked out another way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.invented import MIB, trace_of

from hotbed.trace import Action, load_trace
from hotbed.trace.memory_map import segments_at
from hotbed.trace.pieces import BEFORE, pieces

if TYPE_CHECKING:
    from pathlib import Path

MAP, UNMAP = Action.SEGMENT_MAP, Action.SEGMENT_UNMAP


def test_what_goes_back_in_part_is_cut_there() -> None:
    trace = trace_of(
        [(MAP, 0, 20 * MIB), (UNMAP, 4 * MIB, 2 * MIB), (UNMAP, 0, 4 * MIB), (MAP, 4 * MIB, 2 * MIB)]
    )
    found = [
        (piece.address // MIB, piece.size_bytes // MIB, piece.taken, piece.returned)
        for piece in pieces(trace)
    ]
    assert found == [(0, 4, 0, 2), (4, 2, 0, 1), (4, 2, 3, 4), (6, 14, 0, 4)]


@pytest.mark.parametrize(
    "name",
    ["h200/graphs.record.pickle.xz", "h200/empty_cache_loop.record.pickle.xz", "made/every_kind.pickle"],
)
def test_at_any_place_they_are_the_segments_of_the_map(data: Path, name: str) -> None:
    trace = load_trace(data / name)
    every = pieces(trace)
    for place in range(0, len(trace.events) + 1, max(len(trace.events) // 40, 1)):
        there = [piece for piece in every if piece.taken < place and piece.returned >= place]
        segments = segments_at(trace, place)
        assert sum(piece.size_bytes for piece in there) == sum(segment.size_bytes for segment in segments)
        assert {segment.address for segment in segments} <= {piece.address for piece in there}
    before = [piece.address for piece in every if piece.taken == BEFORE]
    assert before == [segment.address for segment in trace.initial_segments]
