"""What is to be predicted: a script, a module, a text from stdin or a Python callable, with its arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["script", "module", "stdin", "callable"]


@dataclass(frozen=True)
class Program:
    """A program as its user would start it.

    `target` is a file for "script", a dotted name for "module", Python source for "stdin", and "module:qualname" for
    "callable" (for a function of a notebook: "source:NAME", with `source` holding its text). `arguments` become
    sys.argv[1:]. `python` is the interpreter that runs it; its torch must be a CUDA build.
    """

    kind: Kind
    target: str
    arguments: tuple[str, ...] = ()
    python: str | None = None
    folder: str | None = None
    """working directory; None is the caller's"""
    source: str | None = None
    environment: tuple[tuple[str, str], ...] = ()
    """variables set for the program alone, e.g. PYTORCH_CUDA_ALLOC_CONF"""
