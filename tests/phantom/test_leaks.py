"""Leaks and innocent programs, run for real: the class and the line that findings name, and that the innocent get none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.phantom.leak_programs import BEGIN, INNOCENT, LEAKS

import hotbed
from hotbed.findings.looking import examine
from hotbed.trace import load_trace

if TYPE_CHECKING:
    from pathlib import Path

    from tests.phantom.conftest import Server

    from hotbed.findings.finding import Finding

RUN = """
import sys, types
sys.path.insert(0, {source!r})
import hotbed
main = sys.modules["__main__"] = types.ModuleType("__main__")
main.__file__ = {path!r}
with hotbed.record({out!r}, everything=True):
    exec(compile(open({path!r}).read(), {path!r}, "exec"), main.__dict__)
answer()
"""


def found(on_phantom: Server, folder: Path, program: str) -> list[Finding]:
    path, out = folder / "program.py", folder / "run.hbt"
    path.write_text(BEGIN + program)
    source = hotbed.__file__.rpartition("/hotbed/")[0]
    on_phantom(RUN.format(source=source, path=str(path), out=str(out)))
    return examine([load_trace(out)], ["leak", "memory"])


@pytest.mark.torch
@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_is_told_by_its_class_and_line(on_phantom: Server, tmp_path: Path, name: str) -> None:
    code, program = LEAKS[name]
    leaks = [finding for finding in found(on_phantom, tmp_path, program) if finding.code.startswith("leak/")]
    assert [leak.code for leak in leaks] == [code]
    lines = (BEGIN + program).splitlines()
    here = [number for number, line in enumerate(lines, 1) if line.endswith("# here")]
    assert not here or (leaks[0].where and leaks[0].where.line in here)


@pytest.mark.torch
@pytest.mark.parametrize("name", INNOCENT)
def test_innocent_programs_are_accused_of_nothing(on_phantom: Server, tmp_path: Path, name: str) -> None:
    findings = found(on_phantom, tmp_path, INNOCENT[name])
    assert [finding.code for finding in findings if finding.code.startswith("leak/")] == []
    assert findings
