"""Which line of a stack to show: the program's own, not that of a library it called."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotbed.trace import Frame

# Installed packages, the standard library, torch from a source tree, generated code, and hotbed's own recorder.
_LIBRARY: Final = re.compile(
    r"/(site|dist)-packages/|/lib(64)?/python3[.\d]*/|(^|/)torch/(_\w+|amp|ao|autograd|cuda|distributed|export|"
    r"functional|fx|jit|library|multiprocessing|nn|optim|overrides|serialization|storage|utils)(/|\.py)|"
    r"^(torch|torchvision|transformers|timm)/|^<(?!stdin|ipython)|/hotbed/(recording|predicting|phantom)/"
)
_PYTHON: Final = re.compile(r"\.(py|ipynb|pyx)$|^<")


def own_frame(stack: Sequence[Frame]) -> Frame | None:
    """The innermost frame outside of torch, installed packages and the standard library; without one the innermost
    Python frame, else the innermost of all. None for an empty stack."""
    python = [frame for frame in stack if _is_python(frame.filename)]
    own = next((frame for frame in python if not is_library(frame.filename)), None)
    return own or (python[0] if python else stack[0] if stack else None)


@lru_cache(maxsize=4096)
def is_library(filename: str) -> bool:
    """Whether `filename` belongs to an installed package or the interpreter rather than to the program."""
    return bool(_LIBRARY.search(filename.replace("\\", "/")))


@lru_cache(maxsize=4096)
def _is_python(filename: str) -> bool:
    return bool(_PYTHON.search(filename))
