"""Which card a prediction is for."""

from __future__ import annotations

from pathlib import Path

from hotbed.gpu import find_gpu
from hotbed.predicting.predictor import gpu_of

FITTED = Path(__file__).parents[3] / "benchmarks" / "layouts" / "h200-18x5-16-16-10.toml"


def test_a_name_a_gpu_and_the_file_of_a_card_are_all_understood() -> None:
    h200 = find_gpu("h200")
    assert gpu_of("NVIDIA H200") == h200
    assert gpu_of(h200) is h200
    assert gpu_of(str(FITTED)).layouts[0].sms_per_gpc == (18, 18, 18, 18, 18, 16, 16, 10)
