"""What the guard says on stderr, and how it names lines."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from hotbed.units import format_size

if TYPE_CHECKING:
    from hotbed.recording.guard.calling import Caller
    from hotbed.recording.guard.sites import Site
    from hotbed.trace.model import Frame


def say(text: str) -> None:
    """Writes lines to stderr, each with the guard's name; a closed stderr is none of its business."""
    try:
        sys.stderr.write("".join(f"hotbed guard: {line}\n" for line in text.splitlines()))
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass


def line_words(frame: Frame | None) -> str:
    """ "train.py:42", from the current folder on where the file lies in it."""
    if frame is None:
        return "an unknown line"
    name = frame.filename
    here = os.path.join(os.getcwd(), "")  # noqa: PTH109, PTH118 - runs in the program, as cheap as can be
    return f"{name[len(here) :] if name.startswith(here) else name}:{frame.line}"


def caller_words(by: Caller) -> str:
    """The program's line, and the library's that makes the call for it."""
    return line_words(by.where) + ("" if by.via is None else f" (through {line_words(by.via)})")


def duration(seconds: float) -> str:
    """ "12 ms", "3.4 s" """
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def call_words(kind: str) -> str:
    """ "torch.cuda.empty_cache()" """
    return "torch.cuda.empty_cache()" if kind == "empty_cache" else "gc.collect()"


def useless_words(site: Site, *, will_skip: bool) -> str:
    """The one warning of a site: what, how often, what it cost, what to do."""
    what = f"{caller_words(site.caller)}: {call_words(site.kind)} was called {site.calls} times in a loop, for nothing"
    head = [what, *_cost(site), *_reason(site)]
    if will_skip:
        return "\n  ".join([*head, "from now on it is skipped here (policy skip)"])
    return "\n  ".join([*head, _advice(site)])


def _cost(site: Site) -> list[str]:
    share = f"{100 * site.share:.2g} % of the time"
    if site.kind == "gc.collect":
        return [f"{duration(site.seconds)} in the calls so far, {share}"]
    again = (
        f"; then {site.device_mallocs} cudaMalloc took {format_size(site.again_bytes)} of it again, about "
        f"{duration(site.again_seconds)} more"
        if site.again_bytes
        else ""
    )
    return [
        f"{duration(site.seconds)} in the calls, which returned {format_size(site.returned_bytes)}{again}: {share}"
    ]


def _reason(site: Site) -> list[str]:
    if site.kind == "gc.collect":
        return ["no memory of the GPU was freed by it; Python collects by itself when objects pile up"]
    if not site.returned_bytes:
        return ["nothing was cached that it could have returned"]
    return ["what it returned would have served the requests after it, so that it lowered no peak"]


def _advice(site: Site) -> str:
    if site.kind == "gc.collect":
        return "take it out of the loop, or call it every 100th time"
    return (
        "take it out of the loop: torch empties its cache by itself before it reports out of memory. Where other processes "
        "need the memory now and then, call it before a pause instead"
    )
