"""Puts a document, the scripts and the style into one HTML text that loads nothing and may load nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hotbed import __version__
from hotbed.reporting.html.packing import packed
from hotbed.units import format_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hotbed.reporting.html.document import Document

HERE: Final = Path(__file__).parent
MADE_BY: Final = '<meta name="generator" content="hotbed report">'
"""What a page of ours has near its beginning: a file without it is never overwritten."""
# In the order in which they need each other: a module imports only what stands before it.
MODULES: Final = (
    "format", "unpack", "trace", "envelope", "groups", "stacks", "canvas", "view", "timeline", "flame", "memorymap",
    "tables", "difference", "page",
)  # fmt: skip
_IMPORT: Final = re.compile(r"^import (\{[^}]*\}) from \"\./(\w+)\.js\";$", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


def page(document: Document) -> str:
    """The whole page."""
    script, style = _script(), (HERE / "page.css").read_text()
    environment = Environment(loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined)
    environment.filters["bytes"] = format_size
    return environment.get_template("page.html").render(
        document=document.header,
        facts=_facts(document.header),
        notices=_notices(document.header),
        version=__version__,
        script=script,
        script_hash=_hash(script),
        style=style,
        style_hash=_hash(style),
        data=packed(document.header, document.columns),
    )


def _facts(header: Mapping[str, Any]) -> list[str]:
    """The line below the title."""
    facts = header["facts"]
    found = [f"device {facts['device']}"]
    if facts["rank"] is not None:
        found.append(f"rank {facts['rank']}")
    if facts["torch"]:
        found.append(f"torch {facts['torch']}")
    found.append(facts["settings"] or "default settings, as far as known")
    found.append(f"{header['events']:,} events")
    if header["steps"]:
        found.append(_steps(header))
    return found


def _steps(header: Mapping[str, Any]) -> str:
    count = sum(step["phase"] == "train" for step in header["steps"])
    derived = "" if header["stepsRecorded"] else " (read off the rise and fall of memory)"
    return f"{count} step{'s' * (count != 1)}{derived}"


def _notices(header: Mapping[str, Any]) -> list[str]:
    """What the reader should know before believing a curve."""
    facts = header["facts"]
    found = [f"Missing: {sentence}" for sentence in facts["missing"]]
    if header["thinned"]:
        found.append(f"Thinned: {header['thinned']}")
    if facts["otherDevices"]:
        others = ", ".join(map(str, facts["otherDevices"]))
        found.append(f"The file also has devices {others}: hotbed report --device N shows them.")
    found += header["notes"]
    if not facts["complete"]:
        found.append("The recording was cut off: the process ended before it was closed.")
    return found


@cache
def _script() -> str:
    """The modules as one script, each in a function of its own: a page that is a file may not import others."""
    return '"use strict";\n' + "\n".join(
        _scoped(name, (HERE / "js" / f"{name}.js").read_text()) for name in MODULES
    )


def _scoped(name: str, source: str) -> str:
    exported = ", ".join(found for _, found in _EXPORT.findall(source))
    body = _EXPORT.sub(r"\1", _IMPORT.sub(r"const \1 = $\2;", source))
    return f"const ${name} = (() => {{\n{body}return {{ {exported} }};\n}})();"


def _hash(text: str) -> str:
    """What the page's content security policy calls `text`."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
