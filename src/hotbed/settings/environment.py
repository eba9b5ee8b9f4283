"""The environment variables that torch reads allocator settings from: which one wins, and what defeats them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotbed.settings.finding import Finding
from hotbed.settings.torch_version import TorchVersion
from hotbed.settings.versions import CUDA_NAME, GENERIC_NAME, environment_names

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_CACHING_NAME = "PYTORCH_NO_CUDA_MEMORY_CACHING"
_TRUE_NEEDED = TorchVersion(2, 7)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentSettings:
    """Settings found in an environment: the variable that torch reads (None: none is set), its text, remarks."""

    name: str | None
    text: str
    findings: tuple[Finding, ...]


def from_environment(environ: Mapping[str, str], version: TorchVersion) -> EnvironmentSettings:
    """What torch `version` reads from `environ`. Source: allocator-semantics sections 1.1 and 7, measured."""
    read = [name for name in environment_names(version) if name in environ]
    name = read[0] if read else None
    findings = [*_unread(environ, version), *_outvoted(environ, version), *_uncached(environ, version)]
    return EnvironmentSettings(name=name, text=environ[name] if name else "", findings=tuple(findings))


def _unread(environ: Mapping[str, str], version: TorchVersion) -> list[Finding]:
    if GENERIC_NAME not in environ or GENERIC_NAME in environment_names(version):
        return []
    deprecation = "; its own warning to use that name is wrong for CUDA" if version.release == "2.9" else ""
    return [
        Finding(
            severity="error",
            rule="name-not-read",
            message=f"torch {version.release} does not read {GENERIC_NAME}{deprecation}",
            hint=f"export {CUDA_NAME}={environ[GENERIC_NAME]!r}",
            until="2.10",
        )
    ]


def _outvoted(environ: Mapping[str, str], version: TorchVersion) -> list[Finding]:
    if not {CUDA_NAME, GENERIC_NAME} <= set(environ) or environ[CUDA_NAME] == environ[GENERIC_NAME]:
        return []
    if GENERIC_NAME not in environment_names(version):
        return []
    empty = ", although it is empty" if not environ[CUDA_NAME] else ""
    return [
        Finding(
            severity="warning",
            rule="name-outvoted",
            message=f"both names are set: torch reads {CUDA_NAME}{empty}, and ignores {GENERIC_NAME}",
            hint=f"unset {GENERIC_NAME}, or unset {CUDA_NAME}",
            since="2.10",
        )
    ]


def _uncached(environ: Mapping[str, str], version: TorchVersion) -> list[Finding]:
    value = environ.get(NO_CACHING_NAME)
    if value is None:
        return []
    any_value = version < _TRUE_NEEDED
    if any_value or value == "1":
        note = (
            f" (before torch 2.7 any value does that, also {value!r})" if any_value and value != "1" else ""
        )
        return [
            Finding(
                severity="warning",
                rule="caching-off",
                message=f"{NO_CACHING_NAME} is set{note}: every request is a cudaMalloc and no setting has any effect",
                hint=f"unset {NO_CACHING_NAME}",
            )
        ]
    message = f"{NO_CACHING_NAME}={value} does not switch caching off from torch 2.7 on"
    return [
        Finding(severity="info", rule="caching-on", message=message, hint=f"{NO_CACHING_NAME}=1", since="2.7")
    ]
