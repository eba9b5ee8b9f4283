"""When a call in a loop is of no use: the rules of docs/verbs/guard.md, each with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from hotbed.recording.guard.levels import Room
    from hotbed.recording.guard.sites import Site

Judgement = Literal["new", "rare", "torch", "limit", "parks", "useful", "cheap", "useless"]
"""too few calls to tell; not in a hot loop; torch's own call; memory is at its limit; the program rests after it; memory
is better for it; it costs next to nothing; it costs time for nothing"""

HOT_CALLS: Final = 6
"""A model is loaded, warmed up and parked with fewer."""
HOT_GAP_S: Final = 10.0
"""Between calls farther apart than this, no call that returns even all of the memory matters."""
HEAVY: Final = 0.01
"""share of the time: what hotbed.tune lets `balanced` spend"""
LOWERED: Final = 0.02
"""Share of reserved memory that the call keeps from growing: replays agree with the card to less than this."""
LEAST_BYTES: Final = 20 << 20
"""one segment of torch's. Source: kLargeBuffer, allocator-semantics 1.2"""
EXAMINED: Final = 2
"""looks into what was returned and taken again, before a call is called useless"""
NEAR_LIMIT: Final = 0.10
"""of the memory that the process may use: with less left, torch would empty its cache by itself soon"""
FREED: Final = 1 << 20
"""bytes of tensors that a collection must free to have been of use"""


def judge(site: Site, automatic_gc: bool = True) -> Judgement:
    """What the last calls of `site` were good for. `automatic_gc`: Python collects by itself."""
    if site.caller.by_torch:
        return "torch"
    gap = site.median_gap
    if site.calls < HOT_CALLS or gap is None:
        return "new"
    if gap > HOT_GAP_S:
        return "rare"
    special = _collection(site, automatic_gc) if site.kind == "gc.collect" else _emptying(site)
    if special is not None:
        return special
    return "useless" if site.share >= HEAVY else "cheap"


def _collection(site: Site, automatic: bool) -> Judgement | None:
    """A program that has turned collection off collects when it suits it."""
    return "useful" if site.freed_bytes >= FREED or not automatic else None


def _emptying(site: Site) -> Judgement | None:
    if any(interval.near_limit for interval in site.recent):
        return "limit"
    if site.parks:
        return "parks"
    if any(missing > max(LOWERED * reserved, LEAST_BYTES) for missing, reserved in site.missing):
        return "useful"
    returns = any(interval.returned for interval in site.recent)
    if returns and site.stayed_low:
        return "useful"
    return "new" if returns and len(site.missing) < EXAMINED else None


def is_near(room: Room, crowded: bool) -> bool:
    """Whether memory is near its limit. Where other processes are on the device, what is cached here is what they lack."""
    share = 2.5 * NEAR_LIMIT if crowded else NEAR_LIMIT
    return room.free_bytes < share * room.limit_bytes
