"""Text of findings: what, how much, which line, the evidence and what to do."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from hotbed.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from hotbed.findings.finding import Finding
    from hotbed.trace import Frame

_STYLE = {"problem": "bold red", "notice": "bold yellow", "fine": "bold green"}


def findings_text(findings: Sequence[Finding]) -> RenderableType:
    """All of `findings`, in their order, and a line that counts them."""
    if not findings:
        return Text("nothing found")
    ranks = len({(finding.rank, finding.device) for finding in findings}) > 1
    return Group(*(part for finding in findings for part in _parts(finding, ranks)), Text(_count(findings)))


def _parts(finding: Finding, name_rank: bool) -> Iterator[RenderableType]:
    head = Text(f"{finding.severity.upper():8} {finding.code}", style=_STYLE[finding.severity])
    if finding.bytes is not None:
        head.append(f"   {format_size(finding.bytes)}", style="bold")
    if finding.per_step_bytes is not None:
        head.append(f", {format_size(finding.per_step_bytes)} a step")
    if name_rank:
        head.append(
            "   " + ("" if finding.rank is None else f"rank {finding.rank}, ") + f"device {finding.device}"
        )
    yield head
    yield _indented(finding.title)
    if finding.where is not None:
        yield _indented(_line(finding.where, with_source=True), style="cyan")
    for sentence in finding.evidence:
        yield _indented(f"- {sentence}")
    if finding.others:
        yield _indented("see also " + ", ".join(_line(frame) for frame in finding.others))
    if finding.fix is not None:
        yield _indented(f"fix: {finding.fix}")
    yield Text("")


def _indented(words: str, style: str = "") -> Padding:
    return Padding(Text(words, style=style), (0, 0, 0, 2))


def _line(frame: Frame, *, with_source: bool = False) -> str:
    """A line of code as editors and terminals understand it; its text where the file is here."""
    words = f"{_short(frame.filename)}:{frame.line}"
    if not with_source:
        return words
    text = linecache.getline(frame.filename, frame.line).strip()
    return f"{words} in {frame.name}" + (f":  {text}" if text else "")


def _short(filename: str) -> str:
    """`filename` from the current folder on, where it lies in it."""
    path = Path(filename)
    return (
        str(path.relative_to(Path.cwd()))
        if path.is_absolute() and path.is_relative_to(Path.cwd())
        else filename
    )


def _count(findings: Sequence[Finding]) -> str:
    problems = sum(finding.severity == "problem" for finding in findings)
    notices = sum(finding.severity == "notice" for finding in findings)
    if not problems:
        return f"nothing to act on; {notices} worth knowing" if notices else "nothing to act on"
    return f"{problems} to act on, {notices} worth knowing"
