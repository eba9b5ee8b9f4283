"""torch.ctc_loss during the learn pass: under a dispatch mode it would take another way, with other reads."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def lengths_on_host() -> Iterator[None]:
    """Until the block ends, `ctc_loss` reads what it reads without a mode: its targets and both lengths, if tensors."""
    torch: Any = sys.modules["torch"]
    original = torch.ctc_loss

    def ctc_loss(log_probs: Any, targets: Any, *args: Any, **kwargs: Any) -> Any:
        # Of flat targets of 32 bits cuDNN may take the lengths where they are.
        if log_probs.is_cuda and not (targets.dim() == 1 and targets.dtype == torch.int32):
            if any(isinstance(value, torch.Tensor) for value in (*args, *kwargs.values())):
                targets.cpu()
            args = tuple(map(read, args))
            kwargs = {name: read(value) for name, value in kwargs.items()}
        return original(log_probs, targets, *args, **kwargs)

    def read(lengths: Any) -> Any:
        return lengths.to("cpu", torch.int64).tolist() if isinstance(lengths, torch.Tensor) else lengths

    torch.ctc_loss = ctc_loss
    try:
        yield
    finally:
        torch.ctc_loss = original
