"""The part of the phantom's control interface that this package uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence


class Phantom(Protocol):
    """As hotbed.phantom.control.Control, which says what each of these does."""

    def stop_at_uncertain_read(self, note: str | None) -> None: ...

    def log_reads(self, on: bool) -> None: ...

    def read_log(self) -> bytes: ...

    def answer_reads(self, log: bytes) -> None: ...

    def hand_answers(self, answers: Sequence[bytes | int]) -> object: ...

    def reads_so_far(self) -> tuple[int, int]: ...

    def certain_bytes(self, address: int, size: int) -> bytes | None: ...
