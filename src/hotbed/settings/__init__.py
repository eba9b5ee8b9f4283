"""Allocator settings of torch as a value: read, checked against a torch version, explained, translated; hotbed.toml."""

from __future__ import annotations

from hotbed.settings.allocator import AllocatorSettings
from hotbed.settings.checking import check
from hotbed.settings.environment import EnvironmentSettings, from_environment
from hotbed.settings.explaining import Explanation, explain
from hotbed.settings.finding import Finding, Severity
from hotbed.settings.judging import Judgement, judge
from hotbed.settings.keys import known_keys
from hotbed.settings.rules import USES
from hotbed.settings.torch_version import NEWEST, OLDEST, TorchVersion, installed_torch
from hotbed.settings.versions import environment_names, translate, validate

__all__ = [
    "NEWEST",
    "OLDEST",
    "USES",
    "AllocatorSettings",
    "EnvironmentSettings",
    "Explanation",
    "Finding",
    "Judgement",
    "Severity",
    "TorchVersion",
    "check",
    "environment_names",
    "explain",
    "from_environment",
    "installed_torch",
    "judge",
    "known_keys",
    "translate",
    "validate",
]
