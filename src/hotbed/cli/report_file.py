"""Makes and writes the page of `hotbed report`, and never over a file of someone else."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

from hotbed.errors import UsageError
from hotbed.files import replacing
from hotbed.findings.case import Case
from hotbed.findings.difference import between_runs, between_settings
from hotbed.findings.looking import examine, groups
from hotbed.reporting.html.document import MOST_EVENTS, document
from hotbed.reporting.html.page import MADE_BY, page
from hotbed.trace import load_trace

if TYPE_CHECKING:
    from pathlib import Path

    from hotbed.findings.finding import Finding

_REPLAYED_EVENTS: Final = 4_000_000
"""of a longer trace the findings that need a replay are left to `hotbed findings`"""

_MOST_BYTES: Final = 3_000_000
"""a page that is larger holds fewer events one by one, at least _FEWEST_EVENTS"""
_FEWEST_EVENTS: Final = 1 << 16


def write_report(
    file: Path, target: Path, against: Path | None, settings: tuple[str, ...], device: int | None
) -> tuple[dict[str, Any], list[Finding]]:
    """Writes the page on `file` to `target`; gives what it is about and what was found. Raises as load_trace and replay."""
    case = Case(load_trace(file, device))
    difference = None
    if against is not None:
        difference = between_runs((against.name, file.name), (Case(load_trace(against, device)), case))
    elif settings:
        difference = between_settings(case, (settings[0], settings[1]))
    long = len(case.trace.events) > _REPLAYED_EVENTS
    found = examine([case], [group for group in groups() if group != "cache"] if long else ())
    notes = [f"Too long to replay here: hotbed findings --only cache {file.name}"] if long else []
    most = MOST_EVENTS
    made = document(case, found, file.name, difference=difference, notes=notes)
    text = page(made)
    while len(text) > _MOST_BYTES and most > _FEWEST_EVENTS:
        most //= 2
        made = document(case, found, file.name, difference=difference, notes=notes, most_events=most)
        text = page(made)
    with replacing(target) as stream:
        stream.write(text.encode("utf-8", "backslashreplace"))
    return made.header, found


def refuse_overwrite(target: Path, file: Path) -> None:
    """Raises UsageError where something is at `target` that is no report of ours."""
    if not target.exists():
        return
    if target.is_file():
        with target.open("rb") as stream:
            if MADE_BY.encode() in stream.read(400):
                return
    raise UsageError(
        f"{target} exists, and hotbed did not write it",
        hint=shlex.join(["hotbed", "report", "--force", str(file), "-o", str(target)]),
    )
