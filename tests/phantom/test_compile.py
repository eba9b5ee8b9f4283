"""torch.compile on the phantom: the real Inductor, Triton and ptxas compile, and the code is loaded and launched."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from tests.phantom.conftest import PYTHONS

from hotbed.phantom import environment

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import json, sys, torch
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.LayerNorm(128)).cuda()
compiled = torch.compile(model, mode=sys.argv[1])
for _ in range(3):
    model.zero_grad()
    x = torch.randn(32, 64, device="cuda")
    compiled(x).pow(2).mean().backward()
pools = {tuple(segment["segment_pool_id"]) for segment in torch.cuda.memory_snapshot()}
print(json.dumps({"grad": list(model[0].weight.grad.shape), "pools": len(pools)}))
"""


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(("mode", "private_pools"), [("default", False), ("reduce-overhead", True)])
def test_a_compiled_model_trains(tmp_path: Path, python: str, mode: str, private_pools: bool) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("Triton needs a C compiler")
    base = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    ran = subprocess.run(
        [python, "-c", PROGRAM, mode],
        env=environment(base=base),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["grad"] == [128, 64]
    # CUDA graphs keep their memory in pools of their own.
    assert (found["pools"] > 1) == private_pools
