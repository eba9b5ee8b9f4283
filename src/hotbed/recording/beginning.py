"""Calls back when CUDA is about to be initialised, or at once where it is already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


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
