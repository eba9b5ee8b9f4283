"""Lets a recorder begin when torch is there and CUDA is about to be initialised, or at once where it is already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hotbed.recording.arrival import when_torch_arrives

if TYPE_CHECKING:
    from collections.abc import Callable

    from hotbed.recording.recorder import Recorder


def attach(recorder: Recorder) -> None:
    """Has `recorder` follow torch and begin in time."""

    def follow(torch: Any) -> None:
        if torch.version.cuda is not None and recorder.follow(torch):
            when_cuda_begins(torch, recorder.begin)

    when_torch_arrives(follow)


def when_cuda_begins(torch: Any, callback: Callable[[], None]) -> None:
    """Calls `callback` on the thread whose operation is the first to need CUDA, before CUDA is initialised.

    `torch._C._cuda_init` is wrapped: `torch.cuda._lazy_init` is also reached under names that were imported before.
    """
    if torch.cuda.is_initialized():
        callback()
        return
    initialise = torch._C._cuda_init

    def first_init() -> Any:
        torch._C._cuda_init = initialise
        callback()
        return initialise()

    torch._C._cuda_init = first_init
