"""Makes traces of a recording that was never rewritten compactly: windows of history and rows of what was seen."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec

from hotbed.errors import TraceError
from hotbed.trace import layout
from hotbed.trace.columns import DamagedError
from hotbed.trace.entries import raw_from_value
from hotbed.trace.marking.blocks import Blocks
from hotbed.trace.marking.categories import categories_of, moments_of
from hotbed.trace.marking.likeness import not_noted
from hotbed.trace.marking.marked import marked
from hotbed.trace.marking.rows import Rows
from hotbed.trace.native import read_native
from hotbed.trace.opcodes import read_plain_pickle
from hotbed.trace.snapshot import devices_in, trace_of
from hotbed.trace.windows import Joined, Window, join
from hotbed.units import format_size

if TYPE_CHECKING:
    from hotbed.trace.model import Trace


class _Facts(msgspec.Struct):
    """What stands before the snapshot of a window."""

    time_us: int
    ends: dict[str, tuple[int, int]]
    late: bool = False


@dataclass
class RawRecording:
    """The chunks SNAP and SEEN of a file so far."""

    windows: dict[int, list[Window]] = field(default_factory=dict)
    rows: Rows = field(default_factory=Rows)
    late: bool = False

    def __bool__(self) -> bool:
        return bool(self.windows)

    def window(self, payload: bytes, source: str) -> None:
        """Adds the payload of a SNAP chunk. Raises DamagedError."""
        try:
            size = layout.PREFIX.unpack_from(payload)[0]
            facts = msgspec.json.decode(payload[layout.PREFIX.size : layout.PREFIX.size + size], type=_Facts)
            pickle = payload[layout.PREFIX.size + size :]
            raw = read_native(pickle) or raw_from_value(read_plain_pickle(pickle))
            known = devices_in(raw) if raw.segments or any(map(len, raw.devices)) else {}
            for device in known:
                end = facts.ends.get(str(device))
                if end is not None:
                    window = Window(trace_of(raw, device, source), end, facts.time_us)
                    self.windows.setdefault(device, []).append(window)
        except (TraceError, msgspec.MsgspecError, ValueError) as error:
            raise DamagedError(str(error)) from None
        self.late |= facts.late

    def seen(self, payload: bytes) -> None:
        """Adds the payload of a SEEN chunk. Raises DamagedError."""
        self.rows.add(payload)

    def trace(self, device: int, complete: bool) -> Trace:
        """The history of `device`, with steps, categories and all that was seen. Raises TraceError for damaged rows."""
        try:
            return self._trace(device, complete)
        except (OverflowError, IndexError, ValueError) as error:
            raise TraceError(f"the recorder's rows are damaged: {error}", hint="record again") from error

    def _trace(self, device: int, complete: bool) -> Trace:
        windows = self.windows[device]
        report = self.rows.report()
        joined = join(windows, self.rows.begun(device))
        blocks = Blocks(joined.trace, joined.counted)
        stretches, category = categories_of(report, blocks, ())
        seen = self.rows.recorded(device, blocks, stretches)
        found = marked(
            joined.trace, blocks, stretches, category, replace(seen, gaps=joined.gaps, complete=complete)
        )
        unseen = len(not_noted(moments_of(report, blocks), stretches))
        return replace(found, missing=tuple(self._sentences(joined, unseen)))

    def _sentences(self, joined: Joined, unseen: int) -> list[str]:
        sentences = [self.rows.last.trouble] if self.rows.last.trouble else []
        if self.late:
            sentences.append(_late(joined.trace))
        if unseen:
            sentences.append(
                f"in {unseen} of the recorded steps no addresses were noted, so as not to slow the program down; what lived "
                "on there has the category of blocks of its line and size in other steps, or is other"
            )
        if joined.gaps:
            allocations = sum(gap.allocations for gap in joined.gaps)
            sentences.append(
                f"{allocations} allocations in {len(joined.gaps)} stretches were not recorded, so as not to slow the "
                "program down; the events that bridge them are made up from the memory maps around them"
            )
        return sentences


def _late(trace: Trace) -> str:
    live = [
        block for segment in trace.initial_segments for block in segment.blocks if block.state != "inactive"
    ]
    held = format_size(sum(block.size_bytes for block in live))
    return f"recording began when {len(live)} blocks ({held}) were in use already; they have no stacks"
