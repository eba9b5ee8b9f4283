"""The steps by which growth is measured, with the real torch. A phantom process is not seen by another one, so no bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from hotbed.gpu import find_gpu
from hotbed.phantom import environment

MEASURE = """
import dataclasses, json
from hotbed.gpu.growth import measure_growth
from hotbed.gpu.live import live_gpus
print(json.dumps(dataclasses.asdict(measure_growth(live_gpus()[0].uuid, 0))))
"""


def on_phantom(program: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **environment(find_gpu("h200"), context=True)}
    return subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False
    )


@pytest.mark.torch
def test_each_step_runs_and_is_told_apart() -> None:
    ran = on_phantom(MEASURE)
    assert ran.returncode == 0, ran.stderr
    growth = json.loads(ran.stdout)
    added = {use for use, _ in growth["added_bytes"]}
    assert {"kernels", "cublas", "cublas handle", "cudnn", "cudnn handle", "streams"} <= added
    assert growth["torch_version"][0].isdigit()
    assert growth["cudnn"].keys() & {"sms_per_gpc", "failed"}


def test_an_interpreter_without_torch_is_named_as_the_reason() -> None:
    ran = on_phantom(MEASURE.replace("0)))", "0, '/usr/bin/python3')))"))
    assert "has no torch" in ran.stderr
