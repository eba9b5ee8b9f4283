"""The catalogue: figures that public sources and the H200 ground truth give, and how a GPU is found."""

from __future__ import annotations

import pytest

from hotbed.errors import UsageError
from hotbed.gpu import DEFAULT_GPU, catalogue, find_gpu
from hotbed.gpu.model import FIGURES
from hotbed.units import GIB, MIB


def test_h200_has_the_figures_measured_on_the_card() -> None:
    """Source: shared ground truth, torch 2.11 on driver 580.159.04, and cuDNN's own description of the device."""
    gpu = find_gpu("h200")
    assert gpu.name == "NVIDIA H200"
    assert gpu.total_bytes == 150109880320
    assert gpu.nvml_total_bytes == 143771 * MIB
    assert gpu.context_bytes == 518 * MIB
    assert (gpu.sm_count, gpu.l2_bytes, gpu.shared_memory_optin_bytes) == (132, 62914560, 232448)
    assert gpu.source_of("total_bytes").kind == "measured"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("slug", "total_gib", "capability"),
    [
        # As "GPU 0 has a total capacity of ... GiB" reads in published out-of-memory messages.
        ("v100-16", 15.77, (7, 0)),
        ("v100-32", 31.73, (7, 0)),
        ("t4", 14.74, (7, 5)),
        ("a10", 22.07, (8, 6)),
        ("l4", 21.99, (8, 9)),
        ("l40s", 44.31, (8, 9)),
        ("a100-40", 39.39, (8, 0)),
        ("a100-80", 79.26, (8, 0)),
        ("h100-80", 79.18, (9, 0)),
        ("b200", 178.35, (10, 0)),
        ("rtx-3090", 23.70, (8, 6)),
        ("rtx-4090", 23.52, (8, 9)),
        ("rtx-5090", 31.35, (12, 0)),
    ],
)
def test_memory_is_what_cuda_reports_not_what_the_box_says(
    slug: str, total_gib: float, capability: tuple[int, int]
) -> None:
    gpu = find_gpu(slug)
    assert round(gpu.total_bytes / GIB, 2) == total_gib
    assert gpu.compute_capability == capability


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("H200", "h200"),
        ("NVIDIA H200", "h200"),
        ("h100-80g", "h100-80"),
        ("h100-80GB", "h100-80"),
        ("NVIDIA H100 80GB HBM3", "h100-80"),
        ("nvidia a100-sxm4-40gb", "a100-40"),
        ("RTX 4090", "rtx-4090"),
        ("3090", "rtx-3090"),
    ],
)
def test_find_gpu_accepts_slug_product_and_cuda_name(name: str, slug: str) -> None:
    assert find_gpu(name).slug == slug


@pytest.mark.parametrize(("name", "suggested"), [("a100", "a100-40"), ("v100", "v100-32"), ("h20", "h200")])
def test_find_gpu_suggests_when_the_name_is_ambiguous_or_wrong(name: str, suggested: str) -> None:
    with pytest.raises(UsageError) as refusal:
        find_gpu(name)
    assert name in refusal.value.message
    question = (refusal.value.hint or "").partition("?")[0]
    assert question.startswith("did you mean ")
    assert suggested in question


def test_a_name_like_no_other_lists_what_is_known() -> None:
    with pytest.raises(UsageError) as refusal:
        find_gpu("abacus")
    assert all(gpu.slug in (refusal.value.hint or "") for gpu in catalogue())


def test_every_known_figure_has_a_source_and_every_unknown_one_has_none() -> None:
    for gpu in catalogue():
        for figure in FIGURES:
            known = getattr(gpu, figure) is not None
            source = gpu.source_of(figure)
            assert known == (source is not None), (gpu.slug, figure)
            assert source is None or source.text, (gpu.slug, figure)


def test_figures_are_plausible_and_names_unique() -> None:
    """NVML counts memory that CUDA does not offer; no figure is 0 or -1 for "unknown"."""
    gpus = catalogue()
    assert len({gpu.slug for gpu in gpus}) == len({gpu.name for gpu in gpus}) == len(gpus)
    for gpu in gpus:
        values = [getattr(gpu, figure) for figure in FIGURES if figure != "compute_capability"]
        assert all(value is None or value > 0 for value in values), gpu.slug
        assert gpu.nvml_total_bytes is None or gpu.total_bytes < gpu.nvml_total_bytes


def test_the_default_gpu_is_in_the_catalogue() -> None:
    assert find_gpu(DEFAULT_GPU).slug == DEFAULT_GPU
