"""Writes whole traces as compact .hbt files: delta-coded columns under zstd, at once and atomically."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import zstandard

from hotbed.files import replacing
from hotbed.trace import layout
from hotbed.trace.columns import packed_table
from hotbed.trace.model import NONE
from hotbed.trace.recorded_json import recorded_json
from hotbed.trace.tables import Tables

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence
    from typing import IO

    import numpy.typing as npt

    from hotbed.trace.model import Trace

_CHUNK_EVENTS: Final = 1 << 20
_DELTA: Final = frozenset({"time_us"})
_LEVEL: Final = 9


def write_compact(path: str | os.PathLike[str], traces: Sequence[Trace]) -> None:
    """Writes `traces`, the devices of one recording, to `path`; load_trace and load_devices give them back.

    A file at `path` is replaced only once the new one is whole. Trace.source is not kept. Raises as files.replacing.
    """
    with replacing(path) as out:
        _write(out, traces)


def _write(out: IO[bytes], traces: Sequence[Trace]) -> None:
    compressor = zstandard.ZstdCompressor(level=_LEVEL)
    out.write(layout.header())
    tables = Tables()
    for kind, payload in _chunks(tables, traces):
        for table_kind, entries in tables.new():
            out.write(_packed(compressor, table_kind, entries))
        out.write(_packed(compressor, kind, payload))


def _packed(compressor: zstandard.ZstdCompressor, kind: bytes, payload: bytes) -> bytes:
    stored = compressor.compress(payload)
    if len(stored) >= len(payload):
        return layout.chunk(kind, payload)
    return layout.chunk(kind, stored, layout.Encoding.ZSTD, len(payload))


def _chunks(tables: Tables, traces: Sequence[Trace]) -> Iterator[tuple[bytes, bytes]]:
    """Chunk after chunk; what a chunk refers to is in `tables` when it is handed out."""
    for trace in traces:
        yield layout.META, json.dumps(_facts(trace)).encode()
        stacks = [tables.stack([(f.filename, f.line, f.name) for f in stack]) for stack in trace.stacks]
        strings = [tables.string(text) for text in trace.strings]
        pools = [tables.pool(*pool) for pool in trace.pools]
        prefix = layout.PREFIX.pack(trace.device)
        yield layout.INITIAL_MAP, prefix + tables.memory_map(trace.initial_segments, stacks)
        yield from _events(trace, stacks, strings, pools)
        yield layout.FINAL_MAP, prefix + tables.memory_map(trace.segments, stacks)
        if trace.nvml:
            yield layout.NVML, prefix + _nvml(trace)
        if trace.recorded is not None:
            yield layout.RECORDED, prefix + recorded_json(trace.recorded)
    yield layout.DONE, json.dumps({"events": sum(len(trace.events) for trace in traces)}).encode()


def _facts(trace: Trace) -> dict[str, Any]:
    return {
        "device": trace.device,
        "torch_version": trace.torch_version,
        "settings": trace.settings,
        "rank": trace.rank,
        "device_name": trace.device_info.name,
        "total_bytes": trace.device_info.total_bytes,
        "missing": list(trace.missing),
    }


def _events(
    trace: Trace, stacks: list[int], strings: list[int], pools: list[int]
) -> Iterator[tuple[bytes, bytes]]:
    events = trace.events
    tables = {
        "stack": stacks,
        "metadata": strings,
        "category": strings,
        "compile_context": strings,
        "pool": pools,
    }
    renumber = {name: np.array([*table, NONE], np.int32) for name, table in tables.items()}
    for start in range(0, len(events), _CHUNK_EVENTS):
        columns: list[npt.NDArray[Any]] = []
        for name, _, absent in layout.EVENT_COLUMNS:
            column = getattr(events, name)
            part = np.full(1, absent) if column is None else column[start : start + _CHUNK_EVENTS]
            columns.append(renumber[name][part] if name in renumber else part)
        prefix = layout.PREFIX.pack(trace.device)
        yield layout.EVENTS, prefix + packed_table(layout.EVENT_COLUMNS, columns, _DELTA)


def _nvml(trace: Trace) -> bytes:
    samples = trace.nvml
    columns = [
        np.array([sample.time_us for sample in samples], np.int64),
        np.array([sample.used_bytes for sample in samples], np.int64),
        np.array([NONE if s.process_bytes is None else s.process_bytes for s in samples], np.int64),
    ]
    return packed_table(layout.NVML_COLUMNS, columns, _DELTA)
