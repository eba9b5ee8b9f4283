"""Shared fixtures: where the shipped data lives, and which tests this machine can run."""

from __future__ import annotations

import importlib.util
import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from hotbed import phantom
from tests.forking import PYTHONS, TORCH, Forks, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    """Folder of the shipped traces; each is described in tests/data/README.md."""
    return DATA


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """Processes with torch to fork from; see tests/forking.py."""
    folder = tmp_path_factory.mktemp("forks")
    env = phantom.environment(base={**os.environ, "PYTHONHASHSEED": "0"})
    with ExitStack() as stack:
        servers = [serving(folder / str(number), python, TORCH, env) for number, python in enumerate(PYTHONS)]
        yield Forks(dict(zip(PYTHONS, map(stack.enter_context, servers), strict=True)))


@pytest.fixture(scope="module")
def forking(forks: Forks) -> Iterator[None]:
    """What hotbed starts in this process is forked. With HOTBED_TEST_FRESH set all runs in new interpreters."""
    with pytest.MonkeyPatch.context() as patch:
        if not os.environ.get("HOTBED_TEST_FRESH"):
            patch.setattr(phantom, "start", forks.start)
        yield


# How long an example takes says how busy the machine is.
settings.register_profile("hotbed", deadline=None)
settings.load_profile("hotbed")


def pytest_configure() -> None:
    """A shell that runs the tests in the background has SIGINT ignored, and the programs under test would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked `torch` are skipped, in words, where no torch is installed."""
    if importlib.util.find_spec("torch") is not None:
        return
    skip = pytest.mark.skip(reason="torch is not installed: run `make setup`")
    for item in items:
        if "torch" in item.keywords:
            item.add_marker(skip)
