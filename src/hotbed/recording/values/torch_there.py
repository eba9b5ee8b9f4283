"""The torch that the program has imported. Nothing here imports it, and its names may be used once it is there."""

from __future__ import annotations

import sys
from typing import Any, TypeAlias


class _Torch:
    def __getattr__(self, name: str) -> Any:
        value = getattr(sys.modules["torch"], name)
        setattr(self, name, value)  # the next time no call comes here
        return value


torch: Any = _Torch()
Tensor: TypeAlias = Any
