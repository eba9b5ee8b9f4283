"""Puts an Overview into words, for people at a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotbed.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotbed.trace.overview import Overview, Peak


def rows(found: Overview) -> Iterator[tuple[str, str]]:
    """(name, value) of each line that describes `found`."""
    others = ", ".join(map(str, found.other_devices))
    yield "device", f"{found.device} (the file also has {others})" if others else f"{found.device}"
    yield (
        "events",
        ", ".join([f"{found.events}", *(f"{name} {count}" for name, count in found.actions.items())]),
    )
    yield "time span", "unknown" if found.span_us is None else f"{found.span_us / 1e6:.3f} s"
    for name, peak in (
        ("peak requested", found.peak_requested),
        ("peak allocated", found.peak_allocated),
        ("peak reserved", found.peak_reserved),
    ):
        yield name, "unknown" if peak is None else _moment(peak)
    kept = f"{format_size(found.final_reserved_bytes)}, {format_size(found.final_active_bytes)} of it in use"
    yield "at the end", f"{found.segments} segments, {kept}"
    yield "streams", str(len(found.streams))
    yield "private pools", str(len(found.pools) - 1)
    yield "call stacks", str(found.stacks)
    yield "out of memory", str(found.out_of_memory)
    yield "settings", found.settings or "default or unknown"
    yield "torch", found.torch_version or "unknown"


def _moment(peak: Peak) -> str:
    when = "" if peak.time_us is None else f", {peak.time_us / 1e6:.3f} s in"
    return f"{format_size(peak.size_bytes)} ({peak.size_bytes}) at event {peak.event}{when}"
