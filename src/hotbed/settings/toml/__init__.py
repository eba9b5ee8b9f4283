"""hotbed.toml: its model, where it is found, how it is read and edited."""

from __future__ import annotations

from hotbed.settings.toml.editing import write_memory, write_needs
from hotbed.settings.toml.model import (
    FILE_NAME,
    HotbedToml,
    MemorySection,
    NeedsSection,
    PoolSection,
    RunSection,
    same_gpu,
)
from hotbed.settings.toml.precedence import Chosen, choose, settings_in_force
from hotbed.settings.toml.reading import Problem, TomlError, find_file, load

__all__ = [
    "FILE_NAME",
    "Chosen",
    "HotbedToml",
    "MemorySection",
    "NeedsSection",
    "PoolSection",
    "Problem",
    "RunSection",
    "TomlError",
    "choose",
    "find_file",
    "load",
    "same_gpu",
    "settings_in_force",
    "write_memory",
    "write_needs",
]
