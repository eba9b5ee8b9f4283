"""Binding of the native snapshot reader (native/snapshot): calls it through ctypes and adopts its arrays."""

from __future__ import annotations

import ctypes
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotbed.errors import InternalError, TraceError
from hotbed.trace.model import Frame
from hotbed.trace.raw import COLUMNS, RawSnapshot, columns_of
from hotbed.trace.refusals import SNAPSHOT_HINT, Refusal
from hotbed.units import MIB, format_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotbed.trace.model import PoolId
    from hotbed.trace.raw import RawColumns
    from hotbed.trace.source import Buffer

_LIBRARY: Final = Path(__file__).parent.parent / "_native" / "libhotbed_snapshot.so"
_ABI: Final = 1
# A snapshot needs about once its size; a hostile one could ask for 20 times as much.
_MEMORY_FACTOR: Final = 6

_OK, _CUT_SHORT, _DAMAGED, _NOT_PICKLE, _REFUSED, _PROTOCOL, _UNSUPPORTED, _NO_MEMORY, _NO_SNAPSHOT = range(9)

_U64 = ctypes.c_uint64
_POINTER = ctypes.c_void_p


class _Device(ctypes.Structure):
    _fields_ = (("start", _U64), ("count", _U64), ("rows", _POINTER))


class _Snapshot(ctypes.Structure):
    """struct snapshot of native/snapshot/snapshot.h, member for member."""

    _fields_ = (
        ("status", ctypes.c_uint32),
        ("instruction", ctypes.c_uint32),
        ("position", _U64),
        ("detail", ctypes.c_char * 512),
        ("row_count", _U64),
        *((name, _POINTER) for name, _ in COLUMNS),
        ("device_count", _U64),
        ("devices", ctypes.POINTER(_Device)),
        ("text_count", _U64),
        ("text_end", _POINTER),
        ("text_bytes", _POINTER),
        ("frame_count", _U64),
        ("frame_filename", _POINTER),
        ("frame_line", _POINTER),
        ("frame_name", _POINTER),
        ("stack_count", _U64),
        ("stack_end", _POINTER),
        ("stack_frames", _POINTER),
        ("pool_count", _U64),
        ("pools", _POINTER),
        ("rest", _POINTER),
        ("rest_bytes", _U64),
    )


class _Adopted:
    """An array that the library allocated and that lives as long as somebody looks at it."""

    def __init__(self, library: ctypes.CDLL, address: int) -> None:
        self._library = library
        self._address = address

    def __del__(self) -> None:
        self._library.snapshot_free_array(self._address)


@cache
def library() -> ctypes.CDLL | None:
    """The native reader, or None where it was not built (outside Linux, in a source tree before `make build`)."""
    if not _LIBRARY.exists():
        return None
    found = ctypes.CDLL(str(_LIBRARY))
    if found.snapshot_abi() != _ABI:
        raise InternalError(
            f"{_LIBRARY.name} is of another hotbed version", hint="build or install hotbed again"
        )
    found.snapshot_read.argtypes = (_POINTER, _U64, _U64, ctypes.POINTER(_Snapshot))
    found.snapshot_read.restype = ctypes.c_uint32
    found.snapshot_free.argtypes = (ctypes.POINTER(_Snapshot),)
    found.snapshot_free.restype = None
    found.snapshot_free_array.argtypes = (_POINTER,)
    found.snapshot_free_array.restype = None
    return found


def read_native(data: Buffer) -> RawSnapshot | None:
    """The snapshot in `data`, or None where the file is unusual enough that the Python reader must look at it.

    Raises TraceError as read_plain_pickle does.
    """
    native = library()
    if native is None:
        return None
    view = np.frombuffer(data, np.uint8)
    result = _Snapshot()
    limit = _MEMORY_FACTOR * len(data) + 64 * MIB
    try:
        status = native.snapshot_read(view.ctypes.data, len(data), limit, result)
        if status == _UNSUPPORTED:
            return None
        if status != _OK:
            raise _error(result, status, len(data), limit)
        return _adopt(native, result)
    finally:
        native.snapshot_free(result)
        # A traceback would keep the view, and with it the mapped file, open.
        del view


def _error(result: _Snapshot, status: int, size: int, limit: int) -> TraceError:
    refusal = Refusal(result.position, size)
    detail = result.detail.decode("utf-8", "replace")
    if status == _REFUSED:
        return refusal.unwanted(result.instruction, detail)
    if status == _NOT_PICKLE:
        return refusal.not_pickle(result.instruction)
    if status == _NO_SNAPSHOT:
        return refusal.no_snapshot(detail)
    if status == _NO_MEMORY:
        return TraceError(
            f"reading it would take more than {format_size(limit)}: no real snapshot does", hint=SNAPSHOT_HINT
        )
    return {_CUT_SHORT: refusal.cut_short, _DAMAGED: refusal.damaged, _PROTOCOL: refusal.protocol}[status]()


def _adopt(native: ctypes.CDLL, result: _Snapshot) -> RawSnapshot:
    texts = _texts(result)
    rest: dict[str, Any] = json.loads(ctypes.string_at(result.rest, result.rest_bytes))
    rows = columns_of(_column(native, result, name, dtype) for name, dtype in COLUMNS)
    settings = rest.get("allocator_settings")
    segments = rest.get("segments", [])
    if type(segments) is not list:
        raise TraceError(f"'segments' is a {type(segments).__name__}, not a list", hint=SNAPSHOT_HINT)
    return RawSnapshot(
        devices=tuple(_device(rows, result.devices[i]) for i in range(result.device_count)),
        segments=segments,
        settings=settings if type(settings) is dict else {},
        stacks=_stacks(result, texts),
        strings=texts,
        pools=_pools(result),
    )


def _column(native: ctypes.CDLL, result: _Snapshot, name: str, dtype: Any) -> Any:
    """Takes a column over without copying it; its memory goes when the last view of it does."""
    address = getattr(result, name)
    if not result.row_count or not address:
        return np.empty(0, dtype)
    setattr(result, name, None)
    block = (ctypes.c_uint8 * (result.row_count * np.dtype(dtype).itemsize)).from_address(address)
    block.adopted = _Adopted(native, address)
    return np.frombuffer(block, dtype)


def _device(rows: RawColumns, device: _Device) -> RawColumns:
    chosen: Any = slice(device.start, device.start + device.count)
    if device.rows:
        chosen = _array(device.rows, device.count, np.uint64).astype(np.int64)
    return columns_of(getattr(rows, name)[chosen] for name, _ in COLUMNS)


def _array(address: int | None, count: int, dtype: Any) -> Any:
    """A copy of `count` elements at `address`."""
    if not count or not address:
        return np.empty(0, dtype)
    return np.frombuffer(ctypes.string_at(address, count * np.dtype(dtype).itemsize), dtype)


def _texts(result: _Snapshot) -> list[str]:
    ends = _array(result.text_end, result.text_count, np.uint64).tolist()
    content = ctypes.string_at(result.text_bytes, ends[-1]) if ends and ends[-1] else b""
    return [
        str(content[start:end], "utf-8", "surrogatepass")
        for start, end in zip([0, *ends], ends, strict=False)
    ]


def _stacks(result: _Snapshot, texts: Sequence[str]) -> list[tuple[Frame, ...]]:
    filenames, names = (
        _array(address, result.frame_count, np.int32).tolist()
        for address in (result.frame_filename, result.frame_name)
    )
    lines = _array(result.frame_line, result.frame_count, np.int64).tolist()
    frames = [
        Frame(texts[filename], line, texts[name])
        for filename, line, name in zip(filenames, lines, names, strict=True)
    ]
    ends = _array(result.stack_end, result.stack_count, np.uint64).tolist()
    indices = _array(result.stack_frames, ends[-1] if ends else 0, np.int32).tolist()
    return [
        tuple(frames[index] for index in indices[start:end])
        for start, end in zip([0, *ends], ends, strict=False)
    ]


def _pools(result: _Snapshot) -> list[PoolId]:
    flat = _array(result.pools, 2 * result.pool_count, np.uint64).tolist()
    return list(zip(flat[::2], flat[1::2], strict=True))
