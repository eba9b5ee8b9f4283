"""`hotbed guard`: the program's own output and status, and the guard's words on stderr."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import sys, torch
parameter = torch.nn.Parameter(torch.zeros(1024, device="cuda"))
optimizer = torch.optim.SGD([parameter], 0.1)
for _ in range(20):
    (parameter * torch.ones(4 << 20, 1, device="cuda")[:1]).sum().backward()
    optimizer.step(); optimizer.zero_grad()
    torch.cuda.empty_cache()
print("hotbed" in sys.modules)
sys.exit(7)
"""


def test_a_program_runs_as_without_and_is_told_of(tmp_path: Path) -> None:
    script = tmp_path / "loop.py"
    script.write_text(PROGRAM)
    argv = [sys.executable, "-m", "hotbed", "guard", "--phantom", "--policy", "skip", str(script)]
    result = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 7, result.stderr
    assert result.stdout == "False\n"
    assert f"{script}:8 torch.cuda.empty_cache(): 20 calls" in result.stderr


def test_a_child_that_the_program_forks_ends_as_without(tmp_path: Path) -> None:
    script = tmp_path / "forks.py"
    script.write_text("""
import os, sys, torch
torch.zeros(1, device="cuda")
if os.fork() == 0:
    sys.exit(5)
print(os.waitstatus_to_exitcode(os.wait()[1]))
""")
    argv = [sys.executable, "-m", "hotbed", "guard", "--phantom", str(script)]
    result = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert (result.returncode, result.stdout, result.stderr) == (0, "5\n", "")


def test_it_stays_with_a_backend_that_keeps_no_map(tmp_path: Path) -> None:
    script = tmp_path / "loop.py"
    script.write_text(PROGRAM)
    argv = [sys.executable, "-m", "hotbed", "guard", "--phantom", str(script)]
    env = {**os.environ, "PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}
    result = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120, env=env)
    assert result.returncode == 7, result.stderr
    assert "20 calls" in result.stderr
    assert "fault" not in result.stderr


def test_a_gpu_to_be_is_for_the_phantom(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "hotbed", "guard", "--gpu", "t4", str(tmp_path / "loop.py")]
    result = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "error: --gpu is for --phantom: a real GPU is what it is\n"
