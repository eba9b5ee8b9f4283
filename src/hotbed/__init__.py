"""hotbed: memory-tuned, pre-warmed runtime for PyTorch on CUDA. Public names load on first use (PEP 562)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hotbed.predicting import fit as fit
    from hotbed.recording.api import record as record
    from hotbed.recording.guard.api import guard as guard
    from hotbed.recording.summary import summary as summary
    from hotbed.replaying import replay as replay
    from hotbed.trace import load_trace as load_trace
    from hotbed.tuning import tune as tune

__version__ = "0.1.0"

_PUBLIC = {
    "fit": "hotbed.predicting",
    "guard": "hotbed.recording.guard.api",
    "load_trace": "hotbed.trace",
    "record": "hotbed.recording.api",
    "replay": "hotbed.replaying",
    "summary": "hotbed.recording.summary",
    "tune": "hotbed.tuning",
}
__all__ = ["__version__", *sorted(_PUBLIC)]


def __getattr__(name: str) -> object:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'hotbed' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
