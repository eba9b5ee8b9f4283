"""Which card a prediction is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotbed.errors import UsageError
from hotbed.gpu import find_gpu
from hotbed.predicting.predictor import gpu_of

FITTED = Path(__file__).parents[3] / "benchmarks" / "layouts" / "h200-18x5-16-16-10.toml"


def test_a_name_a_gpu_and_the_file_of_a_card_are_all_understood() -> None:
    h200 = find_gpu("h200")
    assert gpu_of("NVIDIA H200") == h200
    assert gpu_of(h200) is h200
    assert gpu_of(str(FITTED)).layouts[0].sms_per_gpc == (18, 18, 18, 18, 18, 16, 16, 10)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe", "not UTF-8"),
        (b"schema =", "not valid TOML"),
        (b"schema = 99", "schema 99"),
        (b'schema = 1\ngpu = "NVIDIA H200"\ndevice = 3', "does not describe a GPU"),
    ],
)
def test_a_file_that_describes_no_card_is_wrong_usage(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "card.toml").write_bytes(content)
    with pytest.raises(UsageError, match=words):
        gpu_of(str(tmp_path / "card.toml"))
