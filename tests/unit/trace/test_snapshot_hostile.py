"""Pickles that attack: every way to run code is refused by both readers, with the name of what was wanted."""

from __future__ import annotations

import gzip
import os
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from hotbed.errors import TraceError
from hotbed.trace import load_trace, native, source
from hotbed.trace.opcodes import read_plain_pickle

if TYPE_CHECKING:
    from pathlib import Path


class Command:
    """Pickles as a call of os.system."""

    def __reduce__(self) -> Any:
        return os.system, ("exit 7",)


class State:
    """Pickles as an object with state, by NEWOBJ and BUILD."""

    def __init__(self) -> None:
        self.x = 1


SYSTEM = b"cos\nsystem\n"
ATTACKS = {
    **{f"reduce-{protocol}": pickle.dumps(Command(), protocol=protocol) for protocol in range(6)},
    "inside": pickle.dumps({"segments": [], "device_traces": [[Command()]]}, protocol=4),
    "newobj": pickle.dumps(State(), protocol=4),
    "inst": b"(S'id'\nios\nsystem\n.",
    "obj": b"(cos\nsystem\nS'id'\no.",
    "global": SYSTEM + b"(S'id'\ntR.",
    "stack-global": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R.",
    "set": pickle.dumps({"segments": {1}}, protocol=4),
}
NAMED = {
    "reduce-0": "import posix.system",
    "reduce-4": "import posix.system",
    "inside": "import posix.system",
    "newobj": "import test_snapshot_hostile.State",
    "inst": "import os.system",
    "obj": "import os.system",
    "global": "import os.system",
    "stack-global": "import os.system",
    "set": "run EMPTY_SET",
}
# A lone instruction of each family that runs code or leaves the pickle.
INSTRUCTIONS = {
    "REDUCE": b"R", "BUILD": b"b", "OBJ": b"o", "NEWOBJ": b"\x81", "NEWOBJ_EX": b"\x92", "EXT1": b"\x82\x01",
    "EXT2": b"\x83\x01\x00", "EXT4": b"\x84\x01\x00\x00\x00", "PERSID": b"P1\n", "BINPERSID": b"Q",
    "NEXT_BUFFER": b"\x97", "READONLY_BUFFER": b"\x98", "ADDITEMS": b"\x90", "FROZENSET": b"\x91",
}  # fmt: skip


@pytest.fixture(params=["native", "python"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each of the two readers in turn."""
    if request.param == "python":
        monkeypatch.setattr(native, "library", lambda: None)
    elif native.library() is None:
        pytest.skip("the native reader is not built")
    return str(request.param)


def refused(content: bytes, folder: Path) -> str:
    """The message with which load_trace refuses `content`."""
    path = folder / "snapshot.pickle"
    path.write_bytes(content)
    with pytest.raises(TraceError) as caught:
        load_trace(path)
    assert caught.value.hint
    return caught.value.message


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_are_refused_and_nothing_runs(
    attack: str, reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "system", lambda _: pytest.fail("the pickle ran a command"))
    message = refused(ATTACKS[attack], tmp_path)
    assert "refused: the pickle wants to" in message
    assert NAMED.get(attack, "system") in message


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_each_instruction_that_runs_code_is_named(name: str, reader: str, tmp_path: Path) -> None:
    assert f"wants to run {name};" in refused(b"\x80\x04K\x01" + INSTRUCTIONS[name] + b".", tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x04\x8d" + b"\xff" * 8 + b"x.",
        b"\x80\x04B" + b"\xff" * 4 + b"x.",
        b"\x80\x04\x8b" + b"\xff" * 4 + b"x.",
        b"\x80\x04]\x94r\xff\xff\xff\xff0h\x07.",
        b"\x80\x04\x8a\x11" + b"\x01" * 17 + b".",
        b"\x80\x04}(](K\x01u.",
        b"\x80\x04)K\x01a.",
        b"\x80\x04\x8c\x02\xff\xff.",
        b"\x80\x04" + b"(" * 100000 + b".",
        b"\x80\x04" + b"]\x94" + b"(h\x00" * 1000 + b"e.",
        b"(" * 10 + b"t" * 11 + b".",
    ],
)
def test_nonsense_is_an_error_of_ours(content: bytes, reader: str, tmp_path: Path) -> None:
    assert refused(content, tmp_path)


def test_containers_nested_a_million_deep_are_refused(reader: str, tmp_path: Path) -> None:
    nested = b"\x80\x04}\x8c\x08segments" + b"](" * 10**6 + b"e" * 10**6 + b"s."
    assert "a segment is a list" in refused(nested, tmp_path)


def test_shared_containers_do_not_multiply(reader: str, tmp_path: Path) -> None:
    # Nine lists that each hold the one before ten times: 10^9 texts if somebody wrote them out.
    value: Any = "x" * 100
    for _ in range(9):
        value = [value] * 10
    assert "a segment is a list" in refused(pickle.dumps({"segments": value}, protocol=4), tmp_path)


def test_segments_that_share_a_long_list_of_blocks_are_refused(tmp_path: Path) -> None:
    blocks = [{"size": 512}] * 5000
    segments = [{"address": 0, "total_size": 512, "blocks": blocks} for _ in range(5000)]
    assert "more than 4194304 blocks" in refused(pickle.dumps({"segments": segments}, protocol=4), tmp_path)


def test_a_native_reader_that_would_need_much_more_than_the_file_gives_up(tmp_path: Path) -> None:
    if native.library() is None:
        pytest.skip("the native reader is not built")
    content = b"\x80\x04" + b"]" * (8 << 20)
    assert "would take more than" in refused(content, tmp_path)


def test_a_compressed_bomb_is_given_up_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "unpack_limit_bytes", lambda: 1 << 22)
    bomb = gzip.compress(b"\x80\x04" + b"N" * (1 << 24))
    assert "unpacks to more than 4.0 MiB" in refused(bomb, tmp_path)
    # What does not begin like a pickle is not unpacked at all.
    assert "neither" in refused(gzip.compress(bytes(1 << 24)), tmp_path)


def test_truncation_at_every_byte_is_an_error(data: Path) -> None:
    whole = (data / "made" / "every_kind.pickle").read_bytes()
    assert native.library() is None or native.read_native(whole) is not None
    for length in range(len(whole) - 1):
        with pytest.raises(TraceError):
            native.read_native(whole[:length]) or read_plain_pickle(whole[:length])


def test_numbers_up_to_64_bits_with_and_without_sign() -> None:
    for number in (
        -(1 << 63),
        -1,
        0,
        255,
        256,
        65535,
        65536,
        (1 << 31) - 1,
        -(1 << 31),
        (1 << 63),
        (1 << 64) - 1,
    ):
        for protocol in range(6):
            assert read_plain_pickle(pickle.dumps([number], protocol=protocol)) == [number]
    for number in (1 << 64, -(1 << 63) - 1):
        with pytest.raises(TraceError, match="damaged"):
            read_plain_pickle(pickle.dumps(number, protocol=4))


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_the_plain_reader_agrees_with_pickle_on_plain_values(protocol: int) -> None:
    value = {"a": [1, 2.5, None, True, (), (1,), (1, 2, 3, 4)], "ü": {"x": b"raw"}, 3: "é\ud800", 2.5: {}}
    assert read_plain_pickle(pickle.dumps(value, protocol=protocol)) == value


def test_texts_and_numbers_of_old_protocols() -> None:
    assert read_plain_pickle(b"\x80\x02U\x03abc.") == "abc"
    assert read_plain_pickle(b"(lp0\nI01\naI-5\naL12L\naF2.5\naS'it\\'s'\naVx\\u00e9\nag0\n0.")[:6] == [
        True,
        -5,
        12,
        2.5,
        "it's",
        "xé",
    ]
