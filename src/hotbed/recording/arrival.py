"""Calls back once the program has imported torch: importing it first would read the environment too early."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class TorchArrival:
    """A finder that stands first on sys.meta_path until torch has been imported."""

    def __init__(self, callback: Callable[[Any], None]) -> None:
        self._callback = callback

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the other finders give for torch, with a loader that calls back; None for other names."""
        if name != "torch" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("torch")
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._callback)  # type: ignore[assignment]
        return spec


class _Loader:
    """torch's own loader, once more."""

    def __init__(self, loader: Any, callback: Callable[[Any], None]) -> None:
        self._loader, self._callback = loader, callback

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self._loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._callback(module)


def when_torch_arrives(callback: Callable[[Any], None]) -> None:
    """Calls `callback` with the module torch, right after its first import in this process."""
    if "torch" in sys.modules:
        callback(sys.modules["torch"])
    else:
        sys.meta_path.insert(0, TorchArrival(callback))
