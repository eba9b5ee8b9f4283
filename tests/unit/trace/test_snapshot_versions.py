"""Snapshots as the releases of torch write them, in every container and under any name."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zstandard
from snapshots_made import BASE, MIB, TIME, block, entry, loaded, same, segment, snapshot, timed

from hotbed.errors import TraceError
from hotbed.trace import Action, Block, Frame, load_devices, load_trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ALLOCATION = [
    entry("segment_alloc", BASE, 2 * MIB),
    entry("alloc", BASE, 1000),
    entry("alloc", BASE + 1024, 512),
    entry("free_requested", BASE, 1000),
    entry("free_completed", BASE, 1000),
]
BLOCKS = [
    block(BASE, 1024, 1000),
    block(BASE + 1024, 512, 512, "active_allocated"),
    block(BASE + 1536, 2 * MIB - 1536),
]


def test_torch_2_1_without_times_addresses_and_settings(tmp_path: Path) -> None:
    bare = [{key: value for key, value in one.items() if key != "address"} for one in BLOCKS]
    trace = loaded(snapshot(ALLOCATION, [segment(BASE, bare)]), tmp_path)
    assert trace.events.time_us.tolist() == [0] * 5
    assert [one.address for one in trace.segments[0].blocks] == [BASE, BASE + 1024, BASE + 1536]
    assert trace.settings == ""
    assert trace.missing == ("the entries have no times (torch before 2.2)",)


def test_torch_2_12_names_the_pool_of_each_entry(tmp_path: Path) -> None:
    entries = timed([{**one, "pool_id": (3, 1)} for one in ALLOCATION])
    trace = loaded(snapshot(entries, [segment(BASE, BLOCKS, segment_pool_id=(3, 1))]), tmp_path)
    assert [trace.pools[index] for index in trace.events.pool] == [(3, 1)] * 5
    assert trace.segments[0].pool == (3, 1)


def test_a_pool_that_only_the_final_map_names_holds_since_its_memory_was_taken(tmp_path: Path) -> None:
    entries = timed([*ALLOCATION[:2], entry("segment_free", BASE, 2 * MIB), *ALLOCATION])
    trace = loaded(snapshot(entries, [segment(BASE, BLOCKS, segment_pool_id=(3, 1))]), tmp_path)
    assert [-1 if i < 0 else trace.pools[i] for i in trace.events.pool] == [-1, -1, -1, *[(3, 1)] * 5]


def test_metadata_compile_context_and_unknown_keys(tmp_path: Path) -> None:
    entries = timed(ALLOCATION)
    entries[1] |= {
        "user_metadata": "step 3",
        "compile_context": "[1/0]",
        "internal_metadata": "x",
        "forward_frames": [],
    }
    entries[2] |= {"user_metadata": "", "compile_context": "N/A"}
    trace = loaded(snapshot(entries, [segment(BASE, BLOCKS)], host_traces=[[]], host_segments=[]), tmp_path)
    assert trace.events.compile_context is not None
    assert trace.strings == ("step 3", "[1/0]")
    assert trace.events.metadata.tolist() == [-1, 0, -1, -1, -1]
    assert trace.events.compile_context.tolist() == [-1, 1, -1, -1, -1]


def test_out_of_memory_keeps_the_free_bytes_and_unknown_actions_are_other(tmp_path: Path) -> None:
    oom = {"action": "oom", "device_free": 12345, "size": 1 << 40, "stream": 0}
    trace = loaded(snapshot(timed([oom, entry("user_defined", 0, 0)]), []), tmp_path)
    assert trace.events.action.tolist() == [Action.OOM, Action.OTHER]
    assert trace.events.address.tolist() == [12345, 0]


def test_addresses_and_streams_use_all_64_bits(tmp_path: Path) -> None:
    high = (1 << 64) - 512
    # torch's C++ pickler writes addresses as signed numbers.
    entries = timed([entry("alloc", high, 1) | {"stream": (1 << 63) + 8}, entry("alloc", -512, 1)])
    trace = loaded(snapshot(entries, []), tmp_path)
    assert trace.events.address.tolist() == [high, high]
    assert trace.events.stream.tolist() == [(1 << 63) + 8, 0]


def test_several_devices(tmp_path: Path) -> None:
    value = snapshot(
        timed(ALLOCATION[:1]), [segment(BASE, BLOCKS, device=2), segment(BASE, BLOCKS, device=1)]
    )
    value["device_traces"] += [timed(ALLOCATION), []]
    trace = loaded(value, tmp_path)
    assert (trace.device, trace.other_devices, len(trace.events)) == (1, (0,), 5)
    assert len(loaded(value, tmp_path, device=0).events) == 1
    only_memory = loaded(value, tmp_path, device=2)
    assert "no event history" in only_memory.missing[0]
    assert same(only_memory.initial_segments, only_memory.segments)
    assert [one.device for one in load_devices(tmp_path / "snapshot.pickle")] == [1, 0, 2]
    with pytest.raises(TraceError, match="nothing of device 7") as caught:
        loaded(value, tmp_path, device=7)
    assert caught.value.hint == "devices in this file: 0, 1, 2"


def test_segments_alone_as_memory_snapshot_returns_them(tmp_path: Path) -> None:
    trace = loaded([segment(BASE, BLOCKS)], tmp_path)
    assert len(trace.events) == 0
    assert trace.segments[0].blocks[1] == Block(BASE + 1024, 512, 512, "active_allocated")
    assert "no event history" in trace.missing[0]


@pytest.mark.parametrize("protocol", range(6))
def test_every_pickle_protocol(protocol: int, tmp_path: Path) -> None:
    value = snapshot(timed(ALLOCATION), [segment(BASE, BLOCKS)])
    expected = loaded(value, tmp_path)
    (tmp_path / "snapshot.pickle").write_bytes(pickle.dumps(value, protocol=protocol))
    assert same(load_trace(tmp_path / "snapshot.pickle"), expected)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress, zstandard.compress])
def test_compression_is_told_by_content_not_by_name(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    content = pickle.dumps(snapshot(timed(ALLOCATION), [segment(BASE, BLOCKS)]), protocol=4)
    path = tmp_path / "misleading.zip"
    path.write_bytes(pack(content))
    assert load_trace(path).events.size.tolist() == [2 * MIB, 1000, 512, 1000, 1000]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (gzip.compress(b"", mtime=0), "empty once unpacked"),
        (b'{"segments": []}', "JSON"),
        (b"<!DOCTYPE html><html>", "HTML"),
        (b"PK\x03\x04" + bytes(60), "zip archive"),
        (bz2.compress(b"x"), "bzip2"),
        (b"SQLite format 3\x00", "SQLite"),
        (b"\x7fELF" + bytes(60), "neither a torch memory snapshot"),
        (b"\x80\x09K\x01.", "protocol is newer"),
        (gzip.compress(b"x" * 100, mtime=0), "neither"),
        (gzip.compress(b"\x80\x04" * 100, mtime=0)[:-9], "damaged or cut short"),
        (lzma.compress(b"\x80\x04" + bytes(100000))[:-30], "damaged or cut short"),
        (zstandard.compress(b"\x80\x04" + bytes(range(256)) * 9)[:-9], "cut short"),
    ],
)
def test_foreign_files_are_refused_in_words(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=message) as caught:
        load_trace(path)
    assert caught.value.message.startswith(str(path))
    assert caught.value.hint


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (7, "holds a"),
        ({}, "without 'segments'"),
        ({"segments": 7}, "'segments' is a int"),
        ({"device_traces": 7}, "'device_traces' is a int"),
        ({"device_traces": [7]}, "trace of device 0 is a int"),
        ({"device_traces": [[7]]}, "entry 0 of device 0 is a int"),
        ({"device_traces": [[{}]]}, "does not say its action"),
        ({"device_traces": [[entry("alloc", 0, 0) | {"size": "big"}]]}, "'size' is a str"),
        ({"device_traces": [[entry("alloc", 0, 1 << 63)]]}, "out of range"),
        ({"segments": [7]}, "a segment is a int"),
        ({"segments": [{"device": 0}]}, "no address"),
        ({"segments": [segment(BASE, BLOCKS) | {"blocks": [7]}]}, "not a list of dictionaries"),
        ({"segments": [], "device_traces": [[]]}, "the snapshot is empty"),
    ],
)
def test_values_that_are_no_snapshot(value: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=message):
        loaded(value, tmp_path)


def test_times_stay_exact(tmp_path: Path) -> None:
    trace = loaded(snapshot(timed(ALLOCATION), [segment(BASE, BLOCKS)]), tmp_path)
    assert trace.events.time_us.dtype == np.int64
    assert trace.events.time_us[-1] == TIME + 40


def test_the_pickle_of_torchs_cpp_writer(data: Path) -> None:
    trace = load_trace(data / "made" / "torch_2_14_cpp.pickle")
    sizes = trace.events.size[trace.events.action == Action.ALLOC]
    assert sizes.tolist() == [4 * (1000 * i + 1) for i in range(50)]
    assert [frame.filename for frame in trace.stacks[0]] == ["program.py", "program.py", "<string>"]
    assert sum(one.state == "active_allocated" for held in trace.segments for one in held.blocks) == 40
    assert trace.missing == ()


def test_a_frame_without_a_line_has_line_0(tmp_path: Path) -> None:
    frame = {"filename": "made by torch.compile", "line": (1 << 64) - 1, "name": "call"}
    made = {"action": "alloc", "addr": 512, "size": 4, "stream": 0, "frames": [frame]}
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [[made]]}))
    assert load_trace(path).stacks == ((Frame("made by torch.compile", 0, "call"),),)
