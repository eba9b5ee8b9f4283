"""Calls back right before torch initialises CUDA, and keeps torch from touching the driver before that."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def at_first_use(torch: Any, callback: Callable[[], None]) -> None:
    """Calls `callback` once, on the thread whose operation is the first to need CUDA, before CUDA is initialised.

    `torch._C._cuda_init` is wrapped: `torch.cuda._lazy_init` is also reached under names that were imported before.
    Until then torch counts devices through NVML, as it does itself with PYTORCH_NVML_BASED_CUDA_CHECK: a process
    that has asked the runtime can never fork children that use CUDA.
    """
    initialise, count = torch._C._cuda_init, torch._C._cuda_getDeviceCount
    asked = False

    def first_init() -> Any:
        torch._C._cuda_init = initialise
        callback()
        torch._C._cuda_getDeviceCount = count
        return initialise()

    def count_devices() -> int:
        nonlocal asked
        asked = True
        found: int = torch.cuda._device_count_nvml()
        return count() if found < 0 else found

    def poisoned() -> None:
        # A child that the program forks after it asked is refused CUDA, as it would be without us.
        if asked and torch._C._cuda_init is first_init:
            torch.cuda._is_in_bad_fork = lambda: True

    torch._C._cuda_init, torch._C._cuda_getDeviceCount = first_init, count_devices
    os.register_at_fork(after_in_child=poisoned)
