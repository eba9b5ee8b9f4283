"""The call stacks of a report as one tree, so that what they share is stored once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hotbed.findings.lines import is_library

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from hotbed.findings.case import Case
    from hotbed.trace import Frame


_OURS: Final = re.compile(r"/hotbed/(recording|predicting|phantom|__main__)[/.]|^<frozen runpy>$")
"""what started the program, and says nothing about it"""


@dataclass
class StackTree:
    """Frames and the tree of stacks, outermost frame first. Node 0 is the root, which has no frame."""

    texts: dict[str, int] = field(default_factory=dict)
    frames: dict[Frame, int] = field(default_factory=dict)
    nodes: dict[tuple[int, int], int] = field(default_factory=dict)
    """(parent, frame) → node"""

    def text(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))

    def frame(self, frame: Frame | None) -> int:
        """Number of `frame`; -1 for None."""
        return -1 if frame is None else self.frames.setdefault(frame, len(self.frames))

    def node(self, stack: Iterable[Frame]) -> int:
        """The node of a stack that is given outermost frame first."""
        at = 0
        for frame in stack:
            at = self.nodes.setdefault((at, self.frame(frame)), len(self.nodes) + 1)
        return at


def stack_columns(case: Case, used: Iterable[int]) -> tuple[list[str], dict[str, npt.NDArray[Any]]]:
    """The texts, and the columns of the tree, for the stacks numbered in `used`; other stacks have node and line -1."""
    tree = StackTree()
    nodes = np.full(len(case.trace.stacks), -1, np.int64)
    lines = np.full(len(case.trace.stacks), -1, np.int64)
    for stack in used:
        nodes[stack] = tree.node(dropwhile(_is_ours, reversed(case.trace.stacks[stack])))
        lines[stack] = tree.frame(case.line_of(stack))
    frames = [(tree.text(f.filename), f.line, tree.text(f.name)) for f in tree.frames]
    file, line, name = np.array(frames, np.int64).reshape(-1, 3).T
    parent, frame = np.array([*tree.nodes], np.int64).reshape(-1, 2).T
    return list(tree.texts), {
        "frameFile": file,
        # Code that torch.compile makes has no line, and what a stranger's file says may be anything.
        "frameLine": line.clip(0, 1 << 31),
        "frameName": name,
        "frameOwn": np.array([not is_library(f.filename) for f in tree.frames], np.int64),
        "nodeParent": parent,
        "nodeFrame": frame,
        "stackNode": nodes,
        "stackLine": lines,
    }


def _is_ours(frame: Frame) -> bool:
    return bool(_OURS.search(frame.filename))
