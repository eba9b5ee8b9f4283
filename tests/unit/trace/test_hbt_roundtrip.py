"""Nothing is lost on the way through .hbt: snapshots, made traces, and what the writer records."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from snapshots_made import same

from hotbed.trace import Action, Block, Events, Frame, Segment, Trace, load_devices, load_trace
from hotbed.trace.compaction import write_compact
from hotbed.trace.model import DeviceInfo, NvmlSample
from hotbed.trace.numbering import canonical
from hotbed.trace.recorded import CacheCall, Gap, Holding, Recorded, Sample, Step
from hotbed.trace.writer import TraceWriter

if TYPE_CHECKING:
    from pathlib import Path

REAL = [
    "bert_large.record", "bert_varlen.record", "detection.record", "empty_cache_loop.record", "graphs.record",
    "kv_serving.record", "leak.frames", "leak.record", "llama_ckpt.record", "resnet50.frames", "resnet50.record",
    "streams.record", "token_budget.record", "unet_mixed.record",
]  # fmt: skip


def moved(trace: Trace, source: str) -> Trace:
    """`trace` as if it had been read from `source`."""
    return dataclasses.replace(trace, source=source)


@pytest.mark.parametrize("name", REAL)
def test_real_snapshots_survive(name: str, data: Path, tmp_path: Path) -> None:
    before = load_trace(data / "h200" / f"{name}.pickle.xz")
    write_compact(tmp_path / "x.hbt", [before])
    assert same(load_trace(tmp_path / "x.hbt"), moved(before, str(tmp_path / "x.hbt")))


def test_all_devices_survive(data: Path, tmp_path: Path) -> None:
    before = load_devices(data / "made" / "every_kind.pickle")
    write_compact(tmp_path / "x.hbt", before)
    after = load_devices(tmp_path / "x.hbt")
    assert [trace.device for trace in after] == [0, 1]
    assert same(after, [moved(trace, str(tmp_path / "x.hbt")) for trace in before])


U64, I64, I32 = (
    st.integers(0, (1 << 64) - 1),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.integers(-(1 << 31), (1 << 31) - 1),
)
TEXT = st.text(max_size=5) | st.just("\ud800")
BLOCKS = st.builds(
    Block, U64, I64, I64, st.sampled_from(["inactive", "active_allocated"]), st.integers(-1, 1)
)
POOL = st.tuples(U64, U64)
SEGMENTS = st.lists(
    st.builds(
        Segment, U64, I64, U64, st.booleans(), st.booleans(), POOL, st.lists(BLOCKS, max_size=3).map(tuple)
    ),
    max_size=3,
).map(tuple)
SAMPLE = st.builds(NvmlSample, I64, I64, st.none() | st.integers(0, 1 << 60))
ROW = st.tuples(
    st.integers(0, 10), U64, I64, U64, st.integers(-1, 2), I64, st.integers(-1, 1), *[st.integers(-1, 2)] * 1, I32,
    *[st.integers(-1, 2)] * 2,
)  # fmt: skip
COLUMNS = (
    ("action", np.uint8), ("address", np.uint64), ("size", np.int64), ("stream", np.uint64), ("pool", np.int32),
    ("time_us", np.int64), ("stack", np.int32), ("metadata", np.int32), ("step", np.int32), ("category", np.int32),
    ("compile_context", np.int32),
)  # fmt: skip


@st.composite
def made_traces(draw: Any) -> Trace:
    rows = draw(st.lists(ROW, max_size=20))
    columns = list(zip(*rows, strict=True)) or [()] * len(COLUMNS)
    arrays: dict[str, Any] = {
        name: np.array(column, dtype) for (name, dtype), column in zip(COLUMNS, columns, strict=True)
    }
    frame = st.builds(Frame, TEXT, I64, TEXT)
    return Trace(
        source="made",
        device=draw(st.integers(0, 7)),
        events=Events(**arrays),
        segments=draw(SEGMENTS),
        initial_segments=draw(SEGMENTS),
        pools=tuple(draw(st.lists(POOL, min_size=3, max_size=3, unique=True))),
        stacks=tuple(
            draw(
                st.lists(
                    st.lists(frame, min_size=1, max_size=3).map(tuple), min_size=2, max_size=2, unique=True
                )
            )
        ),
        strings=tuple(draw(st.lists(TEXT, min_size=3, max_size=3, unique=True))),
        settings=draw(TEXT.filter(lambda text: "\ud800" not in text)),
        torch_version=draw(st.none() | st.just("2.14.1+cu130")),
        device_info=draw(st.builds(DeviceInfo, st.none() | st.just("H200"), st.none() | U64)),
        rank=draw(st.none() | st.integers(0, 1000)),
        nvml=tuple(draw(st.lists(SAMPLE, max_size=3))),
        missing=tuple(draw(st.lists(st.text(max_size=5), max_size=2, unique=True))),
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made_traces())
def test_any_trace_survives_in_canonical_form(tmp_path: Path, made: Trace) -> None:
    path = tmp_path / "x.hbt"
    write_compact(path, [made])
    expected = canonical(moved(made, str(path)))
    if len(made.events) and not made.events.address.any():
        expected = dataclasses.replace(expected, missing=(*made.missing, "addresses were not recorded"))
    assert same(load_trace(path), expected)


def record(writer: TraceWriter, trace: Trace) -> None:
    """Writes `trace` event by event, as a recorder does."""
    stacks = [
        writer.stack([(frame.filename, frame.line, frame.name) for frame in stack]) for stack in trace.stacks
    ]
    strings = [writer.string(text) for text in trace.strings]
    pools = [writer.pool(*pool) for pool in trace.pools]
    stacks.append(-1), strings.append(-1), pools.append(-1)
    writer.meta(trace.device, settings=trace.settings)
    events = trace.events
    for i in range(len(events)):
        writer.event(
            Action(events.action[i]),
            device=trace.device,
            address=int(events.address[i]),
            size=int(events.size[i]),
            stream=int(events.stream[i]),
            pool=pools[events.pool[i]],
            time_us=int(events.time_us[i]),
            stack=stacks[events.stack[i]],
            metadata=strings[events.metadata[i]],
        )
    writer.final_map(trace.device, trace.segments, stacks)
    writer.initial_map(trace.device, trace.initial_segments, stacks)


@pytest.mark.parametrize("name", ["graphs.record", "leak.frames", "streams.record"])
def test_what_a_recorder_writes_event_by_event_is_the_same_trace(
    name: str, data: Path, tmp_path: Path
) -> None:
    before = load_trace(data / "h200" / f"{name}.pickle.xz")
    with TraceWriter(tmp_path / "x.hbt", chunk_events=100) as writer:
        record(writer, before)
    assert same(load_trace(tmp_path / "x.hbt"), moved(before, str(tmp_path / "x.hbt")))


def test_a_failed_conversion_leaves_the_old_file(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = load_trace(data / "made" / "every_kind.pickle")
    path = tmp_path / "x.hbt"
    write_compact(path, [trace])
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_compact(path, [trace])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_what_the_recorder_saw_survives(data: Path, tmp_path: Path) -> None:
    where = Frame("train.py", 7, "main")
    recorded = Recorded(
        steps=(Step("train", 0, None, 7, 10, 20, allocated_bytes=5), Step("eval", 1, 7, 9, 20, 30)),
        calls=(CacheCall("empty_cache", where, 5, 0.25, 3, None, 9, 8, 7, 6),),
        samples=(Sample(5, 1, None, (Holding("container", "list `a`", "a", where, 1, 2, 0, (1 << 63,)),)),),
        gaps=(Gap(3, 1, 12, 4, 5),),
        overhead_seconds=0.5,
        complete=False,
    )
    before = dataclasses.replace(load_trace(data / "h200" / "leak.record.pickle.xz"), recorded=recorded)
    write_compact(tmp_path / "x.hbt", [before])
    assert load_trace(tmp_path / "x.hbt").recorded == recorded
