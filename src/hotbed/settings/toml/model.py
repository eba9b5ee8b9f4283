"""hotbed.toml as values: one frozen dataclass for each section, each key with its form and one line on what it means."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from hotbed.settings.allocator import AllocatorSettings
from hotbed.settings.toml import forms

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from hotbed.settings.toml.forms import Form

FILE_NAME = "hotbed.toml"
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class TomlKey:
    """A key of a section: its name in the file, the dataclass field it fills, its form and what it means."""

    name: str
    field: str
    form: Form
    meaning: str


def _key(form: Form, meaning: str, *, name: str | None = None, default: Any = None) -> Any:
    return field(default=default, metadata={"form": form, "meaning": meaning, "name": name})


def keys_of(section: type) -> tuple[TomlKey, ...]:
    """Keys of a section class, in order."""
    return tuple(
        TomlKey(
            item.metadata["name"] or item.name, item.name, item.metadata["form"], item.metadata["meaning"]
        )
        for item in fields(section)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySection:
    """[memory], or [memory."GPU NAME"]."""

    TITLE: ClassVar = "Allocator settings and memory limit. Written by `hotbed tune --write`."

    settings: str | None = _key(forms.SETTINGS, "allocator settings, as in PYTORCH_CUDA_ALLOC_CONF")
    cap_bytes: int | None = _key(forms.SIZE, "memory that torch may reserve in one process, in bytes")
    backend: Literal["native", "cudaMallocAsync"] | None = _key(
        forms.choice("native", "cudaMallocAsync"), "allocator backend, if `settings` does not name it"
    )

    def allocator_settings(self) -> AllocatorSettings:
        """`settings` and `backend` together; torch's defaults where neither is given."""
        settings = AllocatorSettings.parse(self.settings or "")
        return settings if self.backend is None else settings.replace(backend=self.backend)


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedsSection:
    """[needs]."""

    TITLE: ClassVar = (
        "What the job needs. Written by `hotbed fit --write` and `hotbed plan --write`, read by `launch`."
    )

    gpu: str | None = _key(forms.TEXT, "GPU the figures hold for")
    nproc: int | None = _key(forms.POSITIVE, "processes, one GPU each, on a node")
    nnodes: int | None = _key(forms.POSITIVE, "nodes")
    device_used_bytes: int | None = _key(forms.SIZE, "GPU memory in use at the peak, all included, in bytes")
    host_bytes: int | None = _key(forms.SIZE, "host memory of one node, in bytes")
    made_by: str | None = _key(forms.TEXT, "command and version that wrote the section")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSection:
    """[run]."""

    TITLE: ClassVar = "What `hotbed run` applies besides [memory]. A key left out changes nothing."

    tf32: bool | None = _key(forms.FLAG, "allow TF32 in matrix products and convolutions; changes numerics")
    cudnn_benchmark: bool | None = _key(
        forms.FLAG, "let cuDNN time its algorithms; changes numerics slightly"
    )
    omp: int | str | None = _key(forms.THREADS, 'OMP_NUM_THREADS; "auto" takes it from the CPU quota')
    nccl: tuple[tuple[str, str], ...] | None = _key(forms.NCCL, "environment variables for NCCL")
    grow_bytes: int | None = _key(forms.SIZE, "memory to reserve at the start, in bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSection:
    """[pool]."""

    TITLE: ClassVar = "Warm processes: `hotbed pool`."

    preload: tuple[str, ...] | None = _key(forms.TEXTS, "modules to import in advance")
    recipe: str | None = _key(forms.TEXT, "Python file that warms a process further")
    exit: Literal["strict", "early"] | None = _key(
        forms.choice("strict", "early"), "when the exit status is reported: after teardown, or before it"
    )
    autostart: bool = _key(
        forms.FLAG, "start the pool at the first `hotbed run`; off by default", default=False
    )
    idle_s: float | None = _key(
        forms.DURATION, "time without use after which warm processes end", name="idle"
    )
    budget_bytes: int | None = _key(
        forms.SIZE, "GPU memory that warm processes may hold on a GPU", name="budget"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HotbedToml:
    """A whole file. A section that is absent has all its keys None; `image` and `tenants` are kept as they stand.

    `memory_by_gpu` is sorted by name.
    """

    memory: MemorySection = MemorySection()
    memory_by_gpu: tuple[tuple[str, MemorySection], ...] = ()
    needs: NeedsSection = NeedsSection()
    run: RunSection = RunSection()
    pool: PoolSection = PoolSection()
    image: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    tenants: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    path: Path | None = None

    def memory_for(self, gpu_name: str | None = None) -> MemorySection:
        """The section for a GPU: its own table if it has one, used whole, otherwise [memory].

        Names are compared without regard to case and to a leading "NVIDIA".
        """
        own = [section for name, section in self.memory_by_gpu if gpu_name and same_gpu(name, gpu_name)]
        return own[0] if own else self.memory


def same_gpu(one: str, other: str) -> bool:
    """Whether two GPU names mean the same model."""
    return _plain_name(one) == _plain_name(other)


def _plain_name(name: str) -> str:
    return " ".join(name.casefold().split()).removeprefix("nvidia ")


SECTIONS: dict[str, Any] = {
    "memory": MemorySection,
    "needs": NeedsSection,
    "run": RunSection,
    "pool": PoolSection,
}
"""Sections with known keys, by their name in the file."""

FREE_SECTIONS = {
    "image": "What `hotbed image` builds; kept as it stands.",
    "tenants": "Shares of a server; kept as it stands.",
}
"""Sections whose tables are read elsewhere."""
