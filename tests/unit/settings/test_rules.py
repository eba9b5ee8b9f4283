"""Each rule of the advice: when it speaks and when it is silent. The docstrings name the source of the right value."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotbed.errors import UsageError
from hotbed.settings import USES, Finding, TorchVersion, check
from hotbed.settings.rules import RULES

EXP = "expandable_segments:True"
ASYNC = "backend:cudaMallocAsync"
LIST = "roundup_power2_divisions:"


def found(text: str, version: str = "2.14", uses: str = "") -> dict[str, Finding]:
    """Findings by rule."""
    words = frozenset(uses.split(",")) - {""}
    return {finding.rule: finding for finding in check(text, TorchVersion.parse(version), words)}


SPEAKS = [
    # p#130330: no IPC for expandable segments; PR 130890 brought it after 2.4.
    ("expandable-ipc-missing", "error", EXP, "2.4", "ipc", "before torch 2.5"),
    # p#186213, p#198305: handles need pidfd, every import reserves address space.
    ("expandable-ipc", "warning", EXP, "2.14", "ipc", "9/8 of the GPU"),
    # PR 148378: any MemPool raises in 2.7 and 2.8.
    ("expandable-mempool", "error", EXP, "2.8", "mempool", "MemPool raises"),
    # p#147851: the pool's allocator was bypassed in 2.5 and 2.6, then an error, then left apart.
    ("expandable-pluggable-bypassed", "warning", EXP, "2.6", "pluggable", "never called"),
    ("expandable-pluggable", "error", EXP, "2.9.1", "pluggable", "raises"),
    ("expandable-pluggable-apart", "info", EXP, "2.11", "pluggable", "outside expandable"),
    # vllm#14189, vllm#40812: memory-anchors row 13.
    ("expandable-sleep-mode", "warning", EXP, "2.14", "sleep-mode", "assertion"),
    # ai-dynamo/nixl#1754: memory-anchors row 12, 0.3 against 200 GB/s.
    ("expandable-nixl", "warning", EXP, "2.14", "nixl", "0.3 instead of 200 GB/s"),
    # p#122057: memory-anchors row 11.
    ("expandable-windows", "warning", EXP, "2.14", "windows", "goes on without"),
    ("expandable-wsl", "warning", EXP, "2.14", "wsl", "driver error"),
    # Section 10: private pools use expandable memory from 2.5.
    ("expandable-graphs", "info", EXP, "2.4", "graphs", "before torch 2.5"),
    # p#119452, PR 134338: memory-anchors row 3.
    ("expandable-assert", "error", f"{EXP},max_split_size_mb:128", "2.4", "", "internal assert"),
    ("expandable-assert", "error", f"{EXP},garbage_collection_threshold:0.8", "2.4", "", "internal assert"),
    # p#193400, p#123548: memory-anchors row 2.
    ("expandable-with-split", "warning", f"max_split_size_mb:128,{EXP}", "2.9.1", "", "without end"),
    ("expandable-with-split", "warning", f"max_split_size_mb:128,{EXP}", "2.15", "", "without end"),
    # Section 4: GC never releases expandable memory.
    (
        "expandable-with-gc",
        "warning",
        f"{EXP},garbage_collection_threshold:0.8",
        "2.14",
        "fraction",
        "does nothing",
    ),
    # Section 4, last point: granularity of 2 MiB.
    ("expandable-odd-page", "warning", f"{EXP},large_segment_size_mb:25", "2.14", "", "25 MiB"),
    # p#106660: memory-anchors row 9.
    ("gc-without-limit", "warning", "garbage_collection_threshold:0.6", "2.9", "", "without a memory limit"),
    ("gc-without-limit", "warning", "garbage_collection_threshold:0.6", "2.10", "", "without a memory limit"),
    # Section 6: parsed but ignored.
    (
        "async-ignores",
        "warning",
        f"{ASYNC},max_split_size_mb:64,{LIST}4",
        "2.14",
        "",
        "max_split_size_mb, roundup",
    ),
    ("async-mempool", "error", ASYNC, "2.14", "mempool", "raises"),
    ("async-ipc", "error", ASYNC, "2.14", "ipc", "other processes"),
    ("async-graphs", "warning", ASYNC, "2.14", "graphs", "too low"),
    # p#110194, rmm#1245: memory-anchors row 14.
    ("async-unseen", "info", ASYNC, "2.14", "", "fragments as well"),
    ("async-fraction", "warning", f"{ASYNC},per_process_memory_fraction:0.5", "2.14", "", "does not read"),
    # Section 7: "cannot change at run time".
    ("backend-at-runtime", "error", ASYNC, "2.14", "runtime", "when torch is imported"),
    ("backend-at-runtime", "error", ASYNC, "2.9", "late-env", "when torch is imported"),
    # axolotl#2183: memory-anchors section 5.
    ("late-env", "warning", EXP, "2.14", "late-env", "read once"),
    # unsloth-zoo#933: memory-anchors row 8; a partial runtime set resets max_split and gc.
    ("runtime-reset", "warning", EXP, "2.9", "runtime", "max_split_size_mb, garbage_collection_threshold"),
    ("runtime-reset", "warning", "max_split_size_mb:64", "2.11", "runtime", "max_non_split_rounding_mb"),
    # Section 3.3: read when the allocator is created.
    (
        "fraction-at-runtime",
        "warning",
        "per_process_memory_fraction:0.5",
        "2.14",
        "runtime",
        "only when CUDA starts",
    ),
    ("runtime-spawn", "warning", EXP, "2.14", "runtime,spawn", "do not inherit"),
    ("fraction-zero", "error", "per_process_memory_fraction:0", "2.14", "", "0 bytes"),
    ("fraction-one", "info", "per_process_memory_fraction:1.0", "2.10", "", "no limit"),
    ("oom-rejection", "warning", "throw_on_cudamalloc_oom:True", "2.12", "", "would have succeeded"),
    # Mission A3: 14 of 18 workloads worse, none better.
    ("split-without-limit", "warning", "max_split_size_mb:128", "2.14", "", "14 reserve more"),
    # p#113481: memory-anchors row 10.
    ("split-cost", "info", "max_split_size_mb:256", "2.14", "fraction", "cudaFree"),
    # Section 9.3: 31 MiB under 32.
    ("split-boundary", "info", "max_split_size_mb:32", "2.14", "", "more than 30 and less than 32 MiB"),
    ("split-boundary", "info", "max_split_size_mb:33", "2.14", "", "more than 32 and less than 33 MiB"),
    # Section 1.6, step 5.
    (
        "rounding-without-split",
        "info",
        "max_non_split_rounding_mb:64",
        "2.14",
        "",
        "without max_split_size_mb",
    ),
    # p#161139: memory-anchors row 6.
    ("roundup-one", "info", f"{LIST}1", "2.4", "", "512 bytes"),
    ("roundup-one-unaligned", "warning", f"{LIST}1", "2.3", "", "alignment"),
    # p#87290, p#93942: memory-anchors row 7.
    ("roundup-key-range", "info", f"{LIST}[256:1,512:2,>:4]", "2.14", "", "256 up to 512 MiB"),
    # Section 1.4: [256:4,512:2,>:8] at 700 MiB: 8 divisions until 2.9, 2 from 2.10.
    (
        "roundup-greater-changed",
        "warning",
        f"{LIST}[256:4,512:2,>:8]",
        "2.14",
        "",
        "8 divisions until 2.9 and 2 from",
    ),
    ("roundup-greater-changed", "warning", f"{LIST}[>:4]", "2.14", "", "from 1 MiB"),
    # Section 1.4: [64:0,128:2] leaves >= 256 MiB unrounded.
    ("roundup-open-end", "info", f"{LIST}[64:0,128:2]", "2.14", "", "of 256 MiB and more"),
    ("roundup-last-interval", "info", f"{LIST}[65536:2]", "2.14", "", "last interval"),
]

SILENT = [
    ("expandable-ipc-missing", EXP, "2.5", "ipc"),
    ("expandable-ipc", EXP, "2.14", ""),
    ("expandable-mempool", EXP, "2.9.1", "mempool"),
    ("expandable-pluggable", EXP, "2.11", "pluggable"),
    ("expandable-wsl", "max_split_size_mb:64", "2.14", "wsl"),
    ("expandable-assert", EXP, "2.4", ""),
    ("expandable-with-split", EXP, "2.14", ""),
    ("expandable-with-split", f"{ASYNC},{EXP},max_split_size_mb:64", "2.14", ""),
    ("expandable-odd-page", f"{EXP},large_segment_size_mb:64", "2.14", ""),
    ("expandable-odd-page", "large_segment_size_mb:25", "2.14", ""),
    ("gc-without-limit", "garbage_collection_threshold:0.6", "2.9", "fraction"),
    ("gc-without-limit", "garbage_collection_threshold:0.6,per_process_memory_fraction:0.5", "2.14", ""),
    ("async-ignores", ASYNC, "2.14", ""),
    ("backend-at-runtime", "backend:native", "2.14", "runtime"),
    (
        "runtime-reset",
        f"max_split_size_mb:64,garbage_collection_threshold:0.8,{LIST}[]",
        "2.9",
        "runtime",
    ),
    ("runtime-reset", EXP, "2.14", ""),
    ("runtime-spawn", EXP, "2.14", "spawn"),
    ("fraction-one", "per_process_memory_fraction:0.5", "2.14", ""),
    ("oom-rejection", "throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.5", "2.14", ""),
    ("split-without-limit", "max_split_size_mb:128", "2.14", "fraction"),
    ("split-boundary", f"max_split_size_mb:32,{EXP}", "2.14", ""),
    ("rounding-without-split", "max_non_split_rounding_mb:64,max_split_size_mb:64", "2.14", ""),
    ("roundup-one", f"{LIST}2", "2.14", ""),
    ("roundup-greater-changed", f"{LIST}[256:4,512:8,>:8]", "2.14", ""),
    ("roundup-open-end", f"{LIST}[64:0,128:2,>:2]", "2.14", ""),
    ("roundup-open-end", f"{LIST}[64:2,32768:2]", "2.14", ""),
]


@pytest.mark.parametrize(("rule", "severity", "text", "version", "uses", "part"), SPEAKS)
def test_rule_speaks(rule: str, severity: str, text: str, version: str, uses: str, part: str) -> None:
    finding = found(text, version, uses)[rule]
    assert finding.severity == severity
    assert part in finding.message


@pytest.mark.parametrize(("rule", "text", "version", "uses"), SILENT)
def test_rule_is_silent(rule: str, text: str, version: str, uses: str) -> None:
    assert rule not in found(text, version, uses)


def test_every_rule_is_tested_and_names_its_source() -> None:
    assert {rule.name for rule in RULES} == {case[0] for case in SPEAKS}
    assert all(rule.source for rule in RULES)
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_good_settings_raise_no_objection() -> None:
    assert check(EXP, TorchVersion(2, 14)) == ()
    assert check("", TorchVersion(2, 9)) == ()


def test_the_hint_for_gc_follows_the_version() -> None:
    """Section 3.3: fraction 1.0 counts as a limit up to 2.9, not from 2.10."""
    old = found("garbage_collection_threshold:0.6", "2.9")["gc-without-limit"]
    new = found("garbage_collection_threshold:0.6", "2.10")["gc-without-limit"]
    assert "1.0 is enough" in (old.hint or "")
    assert "per_process_memory_fraction below 1" in (new.hint or "")


def test_findings_tell_the_releases_they_hold_for() -> None:
    finding = found(EXP, "2.8", "mempool")["expandable-mempool"]
    assert (finding.since, finding.until) == ("2.7", "2.9")


def test_errors_come_first_and_every_mistake_is_reported() -> None:
    findings = check("max_split:1,max_split_size_mb:5,garbage_collection_threshold:0.5", TorchVersion(2, 14))
    severities = [finding.severity for finding in findings]
    assert severities == sorted(severities, key=["error", "warning", "info"].index)
    assert {"unknown-key", "value-out-of-range", "gc-without-limit"} <= {finding.rule for finding in findings}


def test_a_default_is_refused_where_its_key_is_unknown() -> None:
    """Section 7: torch 2.0 does not know expandable_segments, not even as False."""
    assert found("expandable_segments:False", "2.0")["key-too-new"].until == "2.1"


def test_a_repeated_key_is_pointed_out() -> None:
    assert found("max_split_size_mb:64,max_split_size_mb:128")["repeated-key"].severity == "warning"


@pytest.mark.parametrize(
    ("text", "reads"), [("max_split_size_mb:64.5", "as 64"), ("max_split_size_mb:-1", "no limit")]
)
def test_odd_numbers_are_explained(text: str, reads: str) -> None:
    """Section 7: "20.5" reads as 20; -1 becomes unlimited."""
    assert reads in found(text)["number-form"].message


def test_an_unknown_use_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="unknown use 'mempol'") as caught:
        check(EXP, uses=frozenset({"mempol"}))
    assert caught.value.hint == "did you mean mempool?"


@pytest.mark.parametrize(("version", "like"), [("2.16", "2.15"), ("1.13", "2.0")])
def test_an_untested_release_is_said_to_be_so(version: str, like: str) -> None:
    assert f"like {like}" in found(EXP, version)["untested-version"].message


def test_every_finding_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "concepts" / "settings.md").read_text()
    assert [rule.name for rule in RULES if f"`{rule.name}`" not in page] == []


def test_every_word_of_uses_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "verbs" / "settings.md").read_text()
    assert [word for word in USES if f"`{word}`" not in page] == []
