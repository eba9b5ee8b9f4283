"""The native and the Python reader of snapshots are twins: same traces, and errors for the same files."""

from __future__ import annotations

import lzma
import pickle
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from snapshots_made import same

from hotbed.errors import TraceError
from hotbed.trace import native
from hotbed.trace.entries import raw_from_value
from hotbed.trace.opcodes import read_plain_pickle
from hotbed.trace.snapshot import devices_in, trace_of

if TYPE_CHECKING:
    from pathlib import Path

    from hotbed.trace import Trace
    from hotbed.trace.raw import RawSnapshot

pytestmark = pytest.mark.skipif(
    native.library() is None, reason="the native reader is not built: run `make setup`"
)

REAL = [
    "graphs.record",
    "leak.frames",
    "resnet50.frames",
    "streams.record",
    "empty_cache_loop.record",
    "unet_mixed.record",
]
UNUSUAL = "left to the Python reader"


def traces(raw: RawSnapshot) -> list[Trace]:
    return [trace_of(raw, device, "x") for device in devices_in(raw)]


def through_python(content: bytes) -> list[Trace] | None:
    """The traces, None for an error."""
    try:
        return traces(raw_from_value(read_plain_pickle(content)))
    except TraceError:
        return None


def through_c(content: bytes) -> list[Trace] | str | None:
    try:
        raw = native.read_native(content)
        return UNUSUAL if raw is None else traces(raw)
    except TraceError:
        return None


@pytest.mark.parametrize("name", REAL)
def test_real_snapshots_give_the_same_trace(name: str, data: Path) -> None:
    content = lzma.decompress((data / "h200" / f"{name}.pickle.xz").read_bytes())
    ours = through_c(content)
    assert ours
    assert same(ours, through_python(content))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_kind_of_entry_gives_the_same_trace_in_every_binary_protocol(protocol: int, data: Path) -> None:
    content = (data / "made" / "every_kind.pickle").read_bytes()
    value = read_plain_pickle(content)
    expected = through_python(content)
    assert expected
    assert same(through_c(pickle.dumps(value, protocol=protocol)), expected)


NUMBER = st.one_of(st.integers(0, 300), st.integers(-(1 << 63), (1 << 64) - 1))
WORD = st.sampled_from(["", "N/A", "a.py", "main", "alloc", "é", "\ud800", "step 1"])
ODD = st.one_of(
    st.none(), st.booleans(), st.floats(), WORD, st.binary(max_size=3), st.just([]), st.just({}), NUMBER
)
FRAME = st.fixed_dictionaries(
    {}, optional={"filename": WORD | ODD, "line": NUMBER | ODD, "name": WORD, "fx": ODD}
)
FRAMES = st.lists(FRAME, max_size=3)
POOL = st.tuples(st.integers(0, 2), st.integers(0, 1)) | ODD
ACTION = st.sampled_from(
    [
        "alloc",
        "free_requested",
        "free_completed",
        "segment_alloc",
        "segment_free",
        "segment_map",
        "segment_unmap",
        "oom",
        "snapshot",
        "annotate",
        "new",
    ]
)
ENTRY = st.fixed_dictionaries(
    {"action": ACTION, "size": st.integers(0, 1 << 24)},
    optional={
        "addr": NUMBER,
        "device_free": NUMBER,
        "stream": NUMBER,
        "time_us": st.integers(0, 1 << 52),
        "pool_id": POOL,
        "frames": FRAMES,
        "user_metadata": WORD | ODD,
        "compile_context": WORD,
        "action ": ODD,
    },
)
BLOCK = st.fixed_dictionaries(
    {"size": st.integers(0, 1 << 24)},
    optional={"address": NUMBER, "requested_size": NUMBER, "state": WORD | ODD, "frames": FRAMES | ODD},
)
SEGMENT = st.fixed_dictionaries(
    {"address": st.integers(0, 1 << 40), "total_size": st.integers(1, 1 << 30)},
    optional={
        "device": st.integers(0, 2),
        "stream": NUMBER,
        "segment_type": WORD,
        "segment_pool_id": POOL,
        "is_expandable": ODD,
        "frames": FRAMES,
        "blocks": st.lists(BLOCK, max_size=3),
    },
)
SETTINGS = st.dictionaries(
    st.sampled_from(
        ["PYTORCH_CUDA_ALLOC_CONF", "max_split_size", "expandable_segments", "garbage_collection_threshold"]
    ),
    ODD | st.just(1 << 27),
)
SNAPSHOT = st.fixed_dictionaries(
    {
        "segments": st.lists(SEGMENT, max_size=3),
        "device_traces": st.lists(st.lists(ENTRY, max_size=6), max_size=3),
    },
    optional={
        "allocator_settings": SETTINGS,
        "external_annotations": ODD,
        "host_traces": st.lists(st.lists(ENTRY)),
    },
)


@settings(max_examples=150, deadline=None)
@given(SNAPSHOT, st.sampled_from([2, 3, 4, 5]))
def test_made_snapshots_give_the_same_trace(value: Any, protocol: int) -> None:
    content = pickle.dumps(value, protocol=protocol)
    ours = through_c(content)
    if ours != UNUSUAL:
        assert same(ours, through_python(content))


def mutated(content: bytes, chance: random.Random) -> bytes:
    """`content` with one to three bytes changed, doubled or left out."""
    changed = bytearray(content)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(changed))
        kind = chance.randrange(4)
        if kind == 0:
            changed[at] = chance.randrange(256)
        elif kind == 1:
            changed[at] ^= 1 << chance.randrange(8)
        elif kind == 2:
            del changed[at : at + chance.randint(1, 9)]
        else:
            changed[at:at] = changed[max(0, at - chance.randint(1, 9)) : at]
    return bytes(changed)


def disagreement(content: bytes, seed: int, count: int) -> bytes | None:
    """The first of `count` mutations on which the readers differ."""
    chance = random.Random(seed)
    for _ in range(count):
        changed = mutated(content, chance)
        ours = through_c(changed)
        if ours != UNUSUAL and not same(ours, through_python(changed)):
            return changed
    return None


def test_mutated_snapshots_give_the_same_trace_or_an_error(data: Path) -> None:
    assert disagreement((data / "made" / "every_kind.pickle").read_bytes(), seed=1, count=500) is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_fuzz_mutated_snapshots_give_the_same_trace_or_an_error(seed: int, data: Path) -> None:
    assert disagreement((data / "made" / "every_kind.pickle").read_bytes(), seed, count=5000) is None
