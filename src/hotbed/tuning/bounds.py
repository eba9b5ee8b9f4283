"""How little memory any allocator could do with: the highest sum of live bytes."""

from __future__ import annotations

from hotbed.replaying.program import Op, Program

_ALIGNMENT_BYTES = 512
"""torch hands out multiples of this. Source: kMinBlockSize, allocator-semantics 1.2"""


def lower_bound(program: Program) -> int:
    """Peak of live bytes, each allocation rounded up to 512, freed when the program asks for it.

    No settings can reserve less: the blocks are all alive at once. What rebuilds the state before the recording
    counts only as far as it is alive when the recording begins.
    """
    sizes: dict[int, int] = {}
    live = peak = 0
    for op, allocation, size in zip(program.op, program.allocation, program.size, strict=True):
        if op in (Op.ALLOC, Op.TRACKED_ALLOC):
            sizes[allocation] = -(-size // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
            live += sizes[allocation]
            peak = max(peak, live)
        elif op in (Op.FREE, Op.PENDING_FREE):
            live -= sizes.pop(allocation, 0)
        elif op == Op.BEGIN:
            peak = live
    return peak
