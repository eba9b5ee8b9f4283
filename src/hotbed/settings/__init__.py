"""Allocator settings of torch as a value: read, checked against a torch version, explained, translated; hotbed.toml."""

from __future__ import annotations

from hotbed.settings.allocator import AllocatorSettings
from hotbed.settings.finding import Finding, Severity
from hotbed.settings.keys import known_keys
from hotbed.settings.torch_version import NEWEST, OLDEST, TorchVersion, installed_torch
from hotbed.settings.versions import environment_names, translate, validate

__all__ = [
    "NEWEST",
    "OLDEST",
    "AllocatorSettings",
    "Finding",
    "Severity",
    "TorchVersion",
    "environment_names",
    "installed_torch",
    "known_keys",
    "translate",
    "validate",
]
