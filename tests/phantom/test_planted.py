"""A part of the planted programs: the class and the line that findings name. All of them: benchmarks/planted_suite.py."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from tests.phantom.planted import independent_programs, look

if TYPE_CHECKING:
    from pathlib import Path

    from tests.forking import Forks

PROGRAMS = {program.name: program for program in independent_programs()}
GUILTY = (
    "augment_prefetch",
    "oom_fraction",
    "oom_gather_pending",
    "oom_graph_pools",
    "oom_shared_gpu",
)
INNOCENT = ("bucketed_cache", "flush_before_student", "prefetch_synced")

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("name", GUILTY)
def test_what_was_planted_is_found(name: str, forks: Forks, tmp_path: Path) -> None:
    fresh = os.environ.get("HOTBED_TEST_FRESH")
    verdict = look(PROGRAMS[name], tmp_path, None if fresh else forks.servers[sys.executable])
    assert (verdict.class_right, verdict.line_right) == (True, True), verdict.all_found
    assert verdict.bytes_right is not False


@pytest.mark.parametrize("name", INNOCENT)
def test_the_innocent_are_not_accused(name: str, forks: Forks, tmp_path: Path) -> None:
    fresh = os.environ.get("HOTBED_TEST_FRESH")
    verdict = look(PROGRAMS[name], tmp_path, None if fresh else forks.servers[sys.executable])
    assert verdict.class_right, verdict.all_found
    assert verdict.false_alarms == ()
