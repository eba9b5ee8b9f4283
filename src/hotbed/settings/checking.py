"""Judges a settings string: what torch would refuse, and what the rules say about the rest."""

from __future__ import annotations

from hotbed.errors import UsageError
from hotbed.settings.allocator import read_settings
from hotbed.settings.finding import Finding
from hotbed.settings.grammar import did_you_mean
from hotbed.settings.rule import Case
from hotbed.settings.rules import RULES, USES
from hotbed.settings.torch_version import NEWEST, OLDEST, TorchVersion
from hotbed.settings.versions import validate

_RANK = {"error": 0, "warning": 1, "info": 2}


def check(
    text: str, torch_version: TorchVersion | None = None, uses: frozenset[str] = frozenset()
) -> tuple[Finding, ...]:
    """Findings on the settings string `text` for `torch_version` (None: the newest known), errors first.

    `uses` are words of hotbed.settings.USES that say what the program does. An invalid text gives findings, never an
    exception; an unknown word in `uses` raises UsageError.
    """
    version = torch_version or NEWEST
    for word in sorted(uses - set(USES)):
        raise UsageError(f"unknown use {word!r}", hint=did_you_mean(word, USES) or "uses: " + ", ".join(USES))
    reading = read_settings(text)
    case = Case(reading.settings, reading.named, version, uses)
    found = [
        *_untested(version),
        *reading.findings,
        *validate(reading.settings, version, named=reading.named),
    ]
    found += [finding for rule in RULES if (finding := rule.apply(case)) is not None]
    return tuple(sorted(found, key=lambda finding: _RANK[finding.severity]))


def _untested(version: TorchVersion) -> list[Finding]:
    if version >= OLDEST and (version.major, version.minor) <= (NEWEST.major, NEWEST.minor):
        return []
    nearest = OLDEST if version < OLDEST else NEWEST
    message = (
        f"torch {version.release} is outside the releases known here; taken to behave like {nearest.release}"
    )
    return [Finding(severity="info", rule="untested-version", message=message)]
