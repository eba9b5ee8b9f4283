"""Reading and comparing torch versions."""

from __future__ import annotations

from importlib import metadata

import pytest

from hotbed.errors import UsageError
from hotbed.settings import TorchVersion, installed_torch


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("2.9", (2, 9, 0)),
        ("2.14.1+cu130", (2, 14, 1)),
        ("v2.6.0", (2, 6, 0)),
        ("2.15.0a0+gitd0f2af8", (2, 15, 0)),
        (" 2.11.0.dev20260101 ", (2, 11, 0)),
    ],
)
def test_reads_what_torch_calls_itself(text: str, numbers: tuple[int, int, int]) -> None:
    version = TorchVersion.parse(text)
    assert (version.major, version.minor, version.patch) == numbers


def test_order_is_by_number_not_by_text() -> None:
    versions = [TorchVersion.parse(text) for text in ("2.10", "2.9.1", "2.14.1+cu130", "2.2")]
    assert [str(version) for version in sorted(versions)] == ["2.2.0", "2.9.1", "2.10.0", "2.14.1+cu130"]


def test_builds_of_one_release_are_equal() -> None:
    assert TorchVersion.parse("2.9.1+cu128") == TorchVersion.parse("2.9.1+cpu")


@pytest.mark.parametrize("text", ["", "two", "2", "latest", "cu130"])
def test_refuses_what_is_no_version(text: str) -> None:
    with pytest.raises(UsageError, match="is not a torch version"):
        TorchVersion.parse(text)


def test_installed_version_comes_from_the_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: {"torch": "2.11.0+cu130"}[name])
    assert installed_torch() == TorchVersion(2, 11, 0)


def test_without_torch_the_version_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert installed_torch() is None
