"""torch.isclose during the learn pass: it asserts that two ways agree, so what is not known for certain does."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .torch_there import Tensor


@contextmanager
def agreeing(agree: Callable[[Tensor], None]) -> Iterator[None]:
    """Until the block ends, passes each device result of `isclose` to `agree` before the program sees it.

    The dispatcher sees only its parts, in which the question can no longer be recognised.
    """
    torch: Any = sys.modules["torch"]
    original = torch.isclose

    def isclose(*args: Any, **kwargs: Any) -> Any:
        close = original(*args, **kwargs)
        if isinstance(close, torch.Tensor) and close.is_cuda:
            agree(close)
        return close

    torch.isclose = torch.Tensor.isclose = isclose
    try:
        yield
    finally:
        torch.isclose = original
        del torch.Tensor.isclose  # that of its base class comes to light again
