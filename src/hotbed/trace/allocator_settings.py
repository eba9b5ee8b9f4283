"""The env string that stands for the allocator settings which a snapshot reports."""

from __future__ import annotations

from typing import Any, Final

from hotbed.units import MIB

_UNLIMITED: Final = (1 << 63) - 1
# More divisions than bytes in a MiB would be units of nothing: such a table is no torch's.
_MAX_DIVISIONS: Final = 1 << 20
_SWITCHES: Final = (
    "expandable_segments",
    "release_lock_on_cudamalloc",
    "pinned_use_cuda_host_register",
    "graph_capture_record_stream_reuse",
)


def settings_string(reported: dict[str, Any]) -> str:
    """`reported` (the snapshot's allocator_settings) as PYTORCH_CUDA_ALLOC_CONF would be written; "" for defaults.

    The string torch parsed last is taken where there is one; otherwise each value that differs from its
    default becomes a key. Settings that snapshots do not carry (large_segment_size_mb,
    max_non_split_rounding_mb, memory fraction) are then lost.
    """
    for key in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        parsed = reported.get(key)
        if type(parsed) is str and parsed.strip():
            return parsed.strip()
    return ",".join(_rebuilt(reported))


def _rebuilt(reported: dict[str, Any]) -> list[str]:
    parts = [f"{name}:True" for name in _SWITCHES if reported.get(name) is True]
    split = reported.get("max_split_size")
    # Unlimited is -1 in new releases and the largest size_t or int64 where a build did not translate it.
    if type(split) is int and 0 < split < _UNLIMITED:
        parts.append(f"max_split_size_mb:{split // MIB}")
    threshold = reported.get("garbage_collection_threshold")
    if type(threshold) in (int, float) and threshold:
        parts.append(f"garbage_collection_threshold:{threshold:g}")
    roundup = _roundup(roundup_table(reported))
    if roundup:
        parts.append(f"roundup_power2_divisions:{roundup}")
    threads = reported.get("pinned_num_register_threads")
    if type(threads) is int and threads > 1:
        parts.append(f"pinned_num_register_threads:{threads}")
    return parts


def roundup_table(reported: dict[str, Any]) -> dict[int, int]:
    """{MiB: divisions} of roundup_power2_divisions, for requests from that size up to the next; empty where unknown."""
    table = reported.get("roundup_power2_divisions")
    if type(table) is not dict:
        return {}
    return {
        int(key): value
        for key, value in table.items()
        if str(key).isdecimal() and type(value) is int and 0 <= value <= _MAX_DIVISIONS
    }


def _roundup(table: dict[int, int]) -> str:
    """The table as a scalar or a list; "" where nothing is rounded."""
    rows = sorted(table.items())
    if not any(value for _, value in rows):
        return ""
    if len({value for _, value in rows}) == 1:
        return str(rows[0][1])
    # The first key of a list also sets every smaller entry, so the smallest is always spelled out.
    named = [f"{mib}:{value}" for index, (mib, value) in enumerate(rows) if value or index == 0]
    return f"[{','.join(named)}]"
