"""Shared fixtures: where the shipped data lives, and which tests this machine can run."""

from __future__ import annotations

import importlib.util
import signal
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def data() -> Path:
    """Folder of the shipped traces; each is described in tests/data/README.md."""
    return DATA


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
