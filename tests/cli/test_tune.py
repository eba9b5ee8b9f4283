"""`hotbed tune`, as typed, and what its answer must hold."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import hotbed
from hotbed.gpu import find_gpu
from hotbed.replaying import compile_trace
from hotbed.settings.toml import load
from hotbed.tuning.bounds import lower_bound

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Hotbed

    from hotbed.tuning.evaluator import Evaluator

    Tune = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("forking")]


@pytest.fixture(scope="module")
def tune(hotbed_cli: Hotbed) -> Tune:
    def run(*args: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        result = hotbed_cli("tune", *args, code=code, columns=80)
        assert "Traceback" not in result.stderr
        return result

    return run


@pytest.fixture(scope="module")
def streams(tune: Tune, data: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(tune(data / "h200/streams.record.pickle.xz", "--json").stdout)
    return found


def test_the_recommendation_beats_the_default(streams: dict[str, Any]) -> None:
    chosen = streams["recommended"]
    assert (
        streams["lower_bound_bytes"]
        <= chosen["peak_reserved_bytes"]
        < streams["default"]["peak_reserved_bytes"]
    )
    assert chosen["cap_bytes"] < streams["default"]["peak_reserved_bytes"]


def test_balanced_keeps_to_one_percent_of_a_step(streams: dict[str, Any]) -> None:
    assert streams["recommended"]["cost_ms_per_step"] <= 0.01 * streams["step_ms"]


def test_the_cap_covers_what_was_held_out(streams: dict[str, Any]) -> None:
    assert streams["held_out"]["runs"] > 0
    assert streams["recommended"]["cap_bytes"] == streams["margin"]["needed_bytes"] + streams["margin_bytes"]


def test_the_front_never_gets_worse_in_both(streams: dict[str, Any]) -> None:
    front = streams["front"]
    assert [choice["peak_reserved_bytes"] for choice in front] == sorted(
        choice["peak_reserved_bytes"] for choice in front
    )
    assert [choice["cost_ms_total"] for choice in front] == sorted(
        (choice["cost_ms_total"] for choice in front), reverse=True
    )


def test_common_advice_is_judged_on_this_trace(streams: dict[str, Any]) -> None:
    advice = {item["advice"]: item for item in streams["advice"]}
    assert advice["expandable_segments:True"]["verdict"] == "better"
    assert advice["backend:cudaMallocAsync"]["verdict"] == "estimate"
    # The H200 itself reserved 4164 MiB both with the default and with a split limit of 128 MB.
    assert advice["max_split_size_mb:128"]["verdict"] == "same"


def test_a_replay_confirms_the_recommendation(data: Path, streams: dict[str, Any]) -> None:
    chosen = streams["recommended"]
    outcome = hotbed.replay(data / "h200/streams.record.pickle.xz", chosen["settings"], chosen["cap_bytes"])
    assert not outcome.out_of_memory
    assert outcome.peak_reserved_bytes == chosen["peak_reserved_bytes"]


def test_text_says_what_to_paste_and_writes_the_file(tune: Tune, data: Path, tmp_path: Path) -> None:
    file = tmp_path / "hotbed.toml"
    file.write_text("schema = 1  # ours\n")
    text = tune(data / "h200/leak.record.pickle.xz", "--write", file).stdout
    written = load(file).memory_for("any card, since none was named")
    assert written.settings
    # Whole, on a terminal of any width.
    assert f'export PYTORCH_CUDA_ALLOC_CONF="{written.settings}"' in text
    assert "# ours" in file.read_text()


def test_expandable_segments_are_withheld_for_ipc(tune: Tune, data: Path) -> None:
    found = json.loads(tune(data / "h200/leak.record.pickle.xz", "--uses", "ipc", "--json").stdout)
    # Without --uses it is on the front of this trace.
    assert "expandable" not in found["recommended"]["settings"]
    assert not any("expandable" in choice["settings"] for choice in found["front"])


def test_several_traces_share_one_answer(data: Path) -> None:
    """Two recordings: the answer must fit both, so its bound is the larger one."""
    traces = [data / "h200" / f"{name}.record.pickle.xz" for name in ("leak", "graphs")]
    both = hotbed.tune(traces, goal="memory")
    bounds = [lower_bound(compile_trace(hotbed.load_trace(trace))) for trace in traces]
    assert both.lower_bound_bytes == max(bounds)
    chosen = both.recommended
    for trace in traces:
        assert not hotbed.replay(trace, chosen.settings, chosen.cap_bytes, detail=False).out_of_memory


def test_a_card_that_only_tuned_settings_fit(data: Path) -> None:
    """detection holds 15508 MiB at once; with the default it reserves 29400 where there is room."""
    card = replace(find_gpu("rtx-4090"), total_bytes=17 << 30)
    found = hotbed.tune(data / "h200/detection.record.pickle.xz", gpu=card)
    assert not found.default.fits
    assert found.recommended.fits
    assert found.recommended.footprint_bytes < found.total_bytes


def test_a_card_that_nothing_fits(tune: Tune, data: Path) -> None:
    result = tune(data / "h200/detection.record.pickle.xz", "--gpu", "t4", code=1)
    assert "nothing that was tried fits" in result.stderr
    assert "15.1 GiB are alive at once" in result.stderr


def test_ctrl_c_gives_the_best_so_far(data: Path) -> None:
    def interrupt(evaluator: Evaluator) -> None:
        if len(evaluator.known) > 10:
            raise KeyboardInterrupt

    found = hotbed.tune(data / "h200/streams.record.pickle.xz", on_progress=interrupt)
    assert found.interrupted
    assert found.recommended.peak_reserved_bytes < found.default.peak_reserved_bytes


def test_a_broken_hotbed_toml_is_named_before_the_search(tune: Tune, data: Path, tmp_path: Path) -> None:
    path = tmp_path / "hotbed.toml"
    path.write_text("schema = 1\n[memroy]\n")
    result = tune(data / "h200/graphs.record.pickle.xz", "--write", path, code=1)
    assert result.stdout == ""
    assert f"{path}:2: 'memroy' is no section" in result.stderr


def test_where_to_write_is_checked_before_the_search(tune: Tune, data: Path, tmp_path: Path) -> None:
    path = tmp_path / "no" / "hotbed.toml"
    result = tune(data / "h200/graphs.record.pickle.xz", "--json", "--write", path, code=2)
    assert f"there is no folder {path.parent}" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["missing.pickle"], 1, "missing.pickle"),
        ([], 2, "TRACES"),
        (["{leak}", "--goal", "small"], 2, "balanced"),
        (["{leak}", "--gpu", "h300"], 2, "h300"),
        (["{leak}", "--uses", "telepathy"], 2, "telepathy"),
    ],
)
def test_bad_input_is_named(tune: Tune, data: Path, args: list[str], code: int, words: str) -> None:
    leak = str(data / "h200/leak.record.pickle.xz")
    assert words in tune(*(arg.replace("{leak}", leak) for arg in args), code=code).stderr
