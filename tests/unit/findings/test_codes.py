"""Every code that the source can emit is documented, and the other way round."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
CODE = re.compile(r'"((?:cache|fragmentation|leak|memory|oom|peak|rank|storm)/[a-z][a-z-]*)"')


def test_the_page_lists_every_code_and_no_other() -> None:
    # finding.py names a code as an example.
    sources = [*(ROOT / "src/hotbed/findings").rglob("*.py"), ROOT / "src/hotbed/trace/verdict.py"]
    emitted = {
        code
        for path in sources
        if path.exists() and path.name != "finding.py"
        for code in CODE.findall(path.read_text())
    }
    listed = set(
        re.findall(r"^\| `([a-z]+/[a-z-]+)` \|", (ROOT / "docs/verbs/findings.md").read_text(), re.MULTILINE)
    )
    assert emitted == listed
