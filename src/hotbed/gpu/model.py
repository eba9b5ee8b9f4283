"""What is known of one GPU model: figures that may be unknown, each with where it comes from."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

SCHEMA = 1

Kind = Literal["measured", "reported", "documented", "derived"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Source:
    """Where one figure comes from.

    `kind`: "measured" by this project on such a card, "reported" in somebody's published program output,
    "documented" by the vendor, or "derived" from other figures.
    """

    kind: Kind
    text: str


@dataclass(frozen=True)
class LibraryGrowth:
    """Device memory that a process takes beside its allocators, as measured on one card.

    `context_bytes` is the CUDA context alone; `added_bytes` are (first use of what, bytes that it added), under the names
    of hotbed.gpu.growth_steps; "cublas handle" and "cudnn handle" are for each one after the first. `card` and `source` say
    whose figures.
    """

    context_bytes: int
    added_bytes: tuple[tuple[str, int], ...]
    card: str
    source: str

    def added_by(self, use: str) -> int:
        """Bytes that the first use of `use` added; 0 where nothing is known of it."""
        return dict(self.added_bytes).get(use, 0)


@dataclass(frozen=True)
class Layout:
    """How the multiprocessors of one chip are spread over GPCs: chips of one model have different ones switched off.

    `active_clusters` are the most thread-block clusters of 1, 2, ... 16 blocks that can run at once, as
    cudaOccupancyMaxActiveClusters says; None: a cluster fits wherever its size fits into one GPC.
    """

    sms_per_gpc: tuple[int, ...]
    active_clusters: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Gpu:
    """One GPU model. A figure that nobody has seen is None, never a guess.

    `name` and `total_bytes` are what CUDA reports (`cudaDeviceProp.name` and `.totalGlobalMem`, which torch
    prints as total capacity); `nvml_total_bytes` is what NVML and nvidia-smi report, which includes memory that
    no program can have. Both vary by some MiB between drivers. `context_bytes` is what one process holds once
    its CUDA context exists, before any kernel runs. `layouts` are GPC layouts that cards of this model may have, the
    likely one first; cuDNN ranks convolutions by them from Hopper on, so older models have none.
    """

    slug: str
    name: str
    total_bytes: int
    nvml_total_bytes: int | None = None
    sm_count: int | None = None
    compute_capability: tuple[int, int] | None = None
    shared_memory_per_sm_bytes: int | None = None
    shared_memory_optin_bytes: int | None = None
    l2_bytes: int | None = None
    memory_bus_bits: int | None = None
    context_bytes: int | None = None
    growth: LibraryGrowth | None = field(default=None, repr=False, compare=False)
    """of this very card, where a calibration file gave it"""
    layouts: tuple[Layout, ...] = ()
    aliases: tuple[str, ...] = field(default=(), compare=False)
    sources: tuple[tuple[str, Source], ...] = field(default=(), repr=False, compare=False)

    def source_of(self, figure: str) -> Source | None:
        """Where the figure called `figure` (a field name) comes from; None when the figure is unknown."""
        return dict(self.sources).get(figure)

    def to_json(self) -> dict[str, Any]:
        """Plain containers, with `schema`; `figures` maps each name to value, kind and source, or to null if unknown."""
        figures: dict[str, Any] = {}
        for figure in FIGURES:
            source = self.source_of(figure)
            known = source and {"value": getattr(self, figure), "kind": source.kind, "source": source.text}
            figures[figure] = known
        layouts = [asdict(layout) for layout in self.layouts]
        return {
            "schema": SCHEMA,
            "slug": self.slug,
            "name": self.name,
            "figures": figures,
            "layouts": layouts,
        }


_NO_FIGURES = ("slug", "name", "layouts", "aliases", "sources", "growth")
FIGURES = tuple(item.name for item in fields(Gpu) if item.name not in _NO_FIGURES)
