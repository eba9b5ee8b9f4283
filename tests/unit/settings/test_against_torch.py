"""Our verdicts against those of torch itself, which reads settings without a GPU."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from typing import NamedTuple

import pytest

from hotbed.settings import TorchVersion, check, known_keys
from hotbed.settings.keys import KEYS, Kind

pytestmark = pytest.mark.torch

# More interpreters with a torch, separated like PATH, widen the comparison to other releases.
PYTHONS = [sys.executable, *filter(None, os.environ.get("HOTBED_TEST_PYTHONS", "").split(os.pathsep))]
REFUSING = {"syntax", "unknown-key", "bad-value", "value-out-of-range", "key-too-new"}

# Reads cases from stdin: lists of strings, set one after the other. A case that leaves something behind runs in a
# process of its own; the others share one, as forking a process with torch in it takes long.
PROGRAM = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
import torch
def outcomes(texts):
    for text in texts:
        try:
            torch.cuda.memory._set_allocator_settings(text)
            yield None
        except Exception as error:
            yield type(error).__name__
def apart(texts):
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, json.dumps(list(outcomes(texts))).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        answer = json.load(stream)
    os.waitpid(child, 0)
    return answer
lasting = ("large_segment", "backend")
cases = json.load(sys.stdin)
results = [apart(c) if any(key in text for key in lasting for text in c) else list(outcomes(c)) for c in cases]
print(json.dumps({"version": torch.__version__, "results": results}))
"""

VALUES = {
    "max_split_size_mb": "0 19 20 21 64.5 64x +64 abc 99999999999",
    "max_non_split_rounding_mb": "1 20 21 200 x",
    "large_segment_size_mb": "10 11 12 64 100000",
    "garbage_collection_threshold": "0 0.0 .5 5e-1 0.999 1 1.5 nan 0.5x half",
    "per_process_memory_fraction": "0 0.5 1 1.0 1.1",
    "expandable_segments": "True False true 1 TRUE",
    "backend": "native Native cudamallocasync async",
    "roundup_power2_divisions": "0 1 2 3 1024 [] [256:1] [256:1,] [256:1,512:2,>:4] [>:4] [>:4,256:2] [300:2] [0:2] "
    "[256:0] [256:3] [65536:2] [256] [<:2] [256:2,512] [>:0]",
    "pinned_num_register_threads": "0 1 3 8 128 256",
    "pinned_reserve_segment_size_mb": "0 64",
    "pinned_max_cached_size_mb": "0 3",
    "pinned_max_round_threshold_mb": "1",
    "expandable_segments_reserve": "0.5 40G",
    "expandable_segments_handle_type": "posix_fd",
    "release_lock_on_cudamalloc": "True yes",
    "pinned_use_hip_host_register": "True yes",
    "throw_on_cudamalloc_oom": "True yes",
    "graph_capture_record_stream_reuse": "True yes",
    "pinned_free_catch_all": "False 0",
    "pinned_use_background_threads": "False 0",
}
SINGLE = [f"{key}:{value}" for key, values in VALUES.items() for value in values.split()]
COMBINED = [
    f"large_segment_size_mb:{segment},{key}:{value}"
    for key, segment, value in itertools.product(
        ("max_split_size_mb", "max_non_split_rounding_mb"), (12, 64), (11, 12, 20, 32, 64)
    )
]
SHAPES = [
    "",
    "  ",
    " max_split_size_mb : 128 ,",
    "max_split_size_mb:6 4",
    "max_split_size_mb:128,,",
    ",max_split_size_mb:128",
    "max_split_size_mb",
    "max_split_size_mb:",
    "max_split_size_mb::128",
    "max_split_size_mb=128",
    "max_split_size_mb:[128]",
    "Max_split_size_mb:128",
    "'max_split_size_mb:128'",
    "max_split_size_mb:128\texpandable_segments:True",
    "expandable_segments:True,]",
    "max_split_size_mb:12,large_segment_size_mb:12",
    "roundup_power2_divisions:[ 256 : 2 , > : 4 ],expandable_segments:True",
    "roundup_power2_divisions:256:2]",
    ":",
]


SAMPLES = {
    Kind.BACKEND: "native",
    Kind.FLAG: "True",
    Kind.MIB: "64",
    Kind.COUNT: "8",
    Kind.FRACTION: "0.5",
    Kind.DIVISIONS: "4",
    Kind.RAW: "0.5",
    Kind.RAW_LIST: "[a:0.5]",
}
ONE_OF_EACH = {f"{name}:{SAMPLES[key.kind]}": name for name, key in KEYS.items()}
KEPT = ("large_segment_size_mb:64", "", "max_split_size_mb:32")
OTHER_BACKEND = ("backend:cudaMallocAsync",)
TEXTS = [*SINGLE, *COMBINED, *SHAPES, *ONE_OF_EACH]
CASES = [*((text,) for text in TEXTS), KEPT, OTHER_BACKEND]


class Verdicts(NamedTuple):
    """What one torch said: for each case the name of the error for each of its texts, None where it took it."""

    version: TorchVersion
    errors: dict[tuple[str, ...], list[str | None]]


@pytest.fixture(scope="module", params=PYTHONS)
def verdicts(request: pytest.FixtureRequest) -> Verdicts:
    """Verdicts of the torch of one interpreter on all cases."""
    environment = {name: value for name, value in os.environ.items() if "ALLOC_CONF" not in name}
    answer = subprocess.run(
        [request.param, "-c", PROGRAM],
        input=json.dumps(CASES),
        capture_output=True,
        text=True,
        check=True,
        env=environment,
        timeout=150,
    )
    report = json.loads(answer.stdout.splitlines()[-1])
    return Verdicts(TorchVersion.parse(report["version"]), dict(zip(CASES, report["results"], strict=True)))


def test_torch_and_hotbed_refuse_the_same_texts(verdicts: Verdicts) -> None:
    """allocator-semantics section 7, limits and grammar, key by key."""
    differences = {}
    for text in TEXTS:
        (error,) = verdicts.errors[(text,)]
        refused = {finding.rule for finding in check(text, verdicts.version)} & REFUSING
        if bool(refused) != (error is not None):
            differences[text] = (refused, error)
    assert differences == {}


def test_torch_knows_exactly_the_keys_we_say(verdicts: Verdicts) -> None:
    """allocator-semantics section 7, column "since"."""
    taken = {key for text, key in ONE_OF_EACH.items() if verdicts.errors[(text,)] == [None]}
    assert taken == known_keys(verdicts.version)


def test_large_segment_size_outlives_later_settings(verdicts: Verdicts) -> None:
    """What the rule runtime-reset says: 2.11 and later keep it, so that a later max_split_size_mb:32 is refused."""
    if verdicts.version < TorchVersion(2, 11):
        pytest.skip("this torch has no large_segment_size_mb")
    assert verdicts.errors[KEPT] == [None, None, "ValueError"]


def test_the_backend_cannot_change_in_a_running_process(verdicts: Verdicts) -> None:
    """allocator-semantics section 7; the rule backend-at-runtime."""
    assert verdicts.errors[OTHER_BACKEND] != [None]
