""".hbt files that end too early or were damaged: what stands before is read, and what is lost is said."""

from __future__ import annotations

import signal
import subprocess
import sys
import tracemalloc
from typing import TYPE_CHECKING

import pytest
import zstandard

from hotbed.errors import TraceError
from hotbed.trace import layout, load_trace
from hotbed.trace.checking import check
from hotbed.trace.compaction import write_compact
from hotbed.trace.loading import file_defects
from hotbed.trace.reader import read_hbt
from hotbed.trace.writer import TraceWriter

if TYPE_CHECKING:
    from pathlib import Path

    from hotbed.trace import Trace


@pytest.fixture
def recording(tmp_path: Path) -> bytes:
    """60 allocations in six chunks."""
    path = tmp_path / "recording.hbt"
    with TraceWriter(path, chunk_events=10) as writer:
        for i in range(60):
            stack = writer.stack([("a.py", i // 7, "f")])
            writer.event(0, address=0x7F0000000000 + 512 * i, size=512, time_us=1000 + i, stack=stack)
    return path.read_bytes()


def test_truncation_at_every_byte_gives_a_shorter_trace_or_an_error(recording: bytes) -> None:
    whole = read_hbt(recording, "x")[0]
    lengths = set()
    for length in range(len(recording)):
        try:
            (trace,) = read_hbt(recording[:length], "x")
        except TraceError:
            continue
        lengths.add(len(trace.events))
        assert trace.missing
        assert trace.events.time_us.tolist() == whole.events.time_us[: len(trace.events)].tolist()
        assert [trace.stacks[i] for i in trace.events.stack] == [
            whole.stacks[i] for i in whole.events.stack[: len(trace.events)]
        ]
    assert lengths == {10, 20, 30, 40, 50, 60}


def test_a_changed_bit_anywhere_is_noticed(recording: bytes) -> None:
    for at in range(16, len(recording)):
        changed = bytearray(recording)
        changed[at] ^= 0x10
        try:
            (trace,) = read_hbt(bytes(changed), "x")
        except TraceError:
            continue
        # The four bytes that end a chunk's head mean nothing yet and are covered by nothing.
        assert trace.missing or len(trace.events) == 60


def test_compact_files_are_as_robust(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.hbt"
    write_compact(path, [load_trace(data / "made" / "every_kind.pickle")])
    whole = path.read_bytes()
    for length in range(len(whole)):
        try:
            traces: list[Trace] = read_hbt(whole[:length], "x")
        except TraceError:
            continue
        assert all(trace.missing for trace in traces)


KILLED = """
import os, signal, sys
from hotbed.trace.writer import TraceWriter
writer = TraceWriter(sys.argv[1], chunk_events=100)
for i in range(250):
    writer.event(0, address=512 * (i + 1), size=512)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_everything_that_was_flushed(tmp_path: Path) -> None:
    path = tmp_path / "killed.hbt"
    result = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False, timeout=60)
    assert result.returncode == -signal.SIGKILL
    trace = load_trace(path)
    assert len(trace.events) == 200
    assert trace.missing[0].startswith("the recording was not closed")
    assert file_defects(path) == [trace.missing[0]]
    assert check([trace], file_defects(path)).counts["file"] == 1


def test_a_whole_file_has_no_defects(recording: bytes, tmp_path: Path) -> None:
    assert file_defects(tmp_path / "recording.hbt") == []


def test_a_chunk_is_never_unpacked_beyond_the_size_that_it_states(recording: bytes) -> None:
    """2 KiB that say 10 bytes and hold 64 MiB; with a MiB it would be 32 GiB."""
    packed = zstandard.ZstdCompressor().compress(bytes(64 << 20))
    bomb = layout.chunk(layout.STRINGS, packed, layout.Encoding.ZSTD, 10)
    tracemalloc.start()
    found = read_hbt(recording + bomb, "x")[0]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "cannot be unpacked" in found.missing[0]
    assert peak < 8 << 20
