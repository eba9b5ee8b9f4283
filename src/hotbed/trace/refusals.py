"""Words for files that are no snapshot: hostile, damaged or foreign pickles. Shared by both readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hotbed.errors import TraceError

SNAPSHOT_HINT: Final = (
    'a memory snapshot is what torch.cuda.memory._dump_snapshot("snapshot.pickle") writes after '
    "torch.cuda.memory._record_memory_history()"
)

# Instructions that import, call or build objects, or leave the pickle: byte → the name pickletools gives it.
UNWANTED: Final = {
    ord("c"): "GLOBAL",
    0x93: "STACK_GLOBAL",
    ord("R"): "REDUCE",
    ord("b"): "BUILD",
    ord("i"): "INST",
    ord("o"): "OBJ",
    0x81: "NEWOBJ",
    0x92: "NEWOBJ_EX",
    0x82: "EXT1",
    0x83: "EXT2",
    0x84: "EXT4",
    ord("P"): "PERSID",
    ord("Q"): "BINPERSID",
    0x97: "NEXT_BUFFER",
    0x98: "READONLY_BUFFER",
    0x8F: "EMPTY_SET",
    0x90: "ADDITEMS",
    0x91: "FROZENSET",
}


@dataclass(frozen=True)
class Refusal:
    """Makes the error for reading that ended at byte `position` of `size_bytes`."""

    position: int
    size_bytes: int

    def _error(self, what: str) -> TraceError:
        return TraceError(f"{what} (at byte {self.position} of {self.size_bytes})", hint=SNAPSHOT_HINT)

    def unwanted(self, instruction: int, wanted: str) -> TraceError:
        """The pickle wants to import `wanted` ("os.system"), or, where that is empty, to run `instruction`."""
        what = f"import {wanted}" if wanted else f"run {UNWANTED[instruction]}"
        return TraceError(
            f"refused: the pickle wants to {what}; a memory snapshot holds only containers, numbers and strings",
            hint=f"do not open this file with pickle.load or torch.load unless you trust it; {SNAPSHOT_HINT}",
        )

    def not_pickle(self, instruction: int) -> TraceError:
        return self._error(f"not a pickle: byte 0x{instruction:02x} is no instruction that snapshots use")

    def cut_short(self) -> TraceError:
        return self._error("the pickle is cut short")

    def damaged(self) -> TraceError:
        return self._error("the pickle is damaged")

    def protocol(self) -> TraceError:
        return self._error("the pickle protocol is newer than any that torch writes (5)")

    def no_snapshot(self, kind: str) -> TraceError:
        """The pickle is fine, but holds a `kind` that is no snapshot."""
        return TraceError(
            f"the pickle holds a {kind} without 'segments' or 'device_traces': it is not a torch memory snapshot",
            hint=SNAPSHOT_HINT,
        )
