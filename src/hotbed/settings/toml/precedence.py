"""Which source of a value wins: command line, then environment, then hotbed.toml."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from hotbed.settings.allocator import AllocatorSettings
from hotbed.settings.environment import from_environment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hotbed.settings.toml.model import HotbedToml
    from hotbed.settings.torch_version import TorchVersion

T = TypeVar("T")
Origin = Literal["command line", "environment", "file", "default"]


@dataclass(frozen=True, slots=True)
class Chosen(Generic[T]):
    """A value and the source that won."""

    value: T
    origin: Origin


def choose(
    default: T, *, command_line: T | None = None, environment: T | None = None, file: T | None = None
) -> Chosen[T]:
    """The first value that is not None, in the order of the arguments' names."""
    sources: tuple[tuple[T | None, Origin], ...] = (
        (command_line, "command line"),
        (environment, "environment"),
        (file, "file"),
    )
    return next(
        (Chosen(value, origin) for value, origin in sources if value is not None), Chosen(default, "default")
    )


def settings_in_force(
    option: str | None,
    environ: Mapping[str, str],
    file: HotbedToml | None,
    version: TorchVersion,
    gpu_name: str | None = None,
) -> Chosen[AllocatorSettings]:
    """Allocator settings for a run on `gpu_name`: from `option`, else the variable that torch `version` reads, else
    `file`, else torch's defaults. A variable that is set counts even when it is empty. Raises SettingsError."""
    found = from_environment(environ, version)
    section = file.memory_for(gpu_name) if file else None
    in_file = section and (section.settings is not None or section.backend is not None)
    return choose(
        AllocatorSettings(),
        command_line=None if option is None else AllocatorSettings.parse(option),
        environment=None if found.name is None else AllocatorSettings.parse(found.text),
        file=section.allocator_settings() if section and in_file else None,
    )
