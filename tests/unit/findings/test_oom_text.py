"""Out-of-memory messages as torch prints them, and what they say. Sources: torch 2.9 and 2.14 on a phantom H200; public reports."""

from __future__ import annotations

import pytest

from hotbed.errors import UsageError
from hotbed.findings.oom_text import explain, read_message
from hotbed.trace import Frame

MIB, GIB = 1 << 20, 1 << 30
TAIL = (
    " If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid "
    "fragmentation.  See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html)"
)
CAPPED = (
    "CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which 129.29 GiB is free. "
    "Including non-PyTorch memory, this process has 10.51 GiB memory in use. 13.98 GiB allowed; Of the allocated memory "
    "10.00 GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated." + TAIL
)
PLAIN = (
    "CUDA out of memory. Tried to allocate 180.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which 129.29 GiB is free. "
    "Including non-PyTorch memory, this process has 10.51 GiB memory in use. Of the allocated memory 10.00 GiB is allocated "
    "by PyTorch, and 0 bytes is reserved by PyTorch but unallocated." + TAIL
)
PIECES = (
    "CUDA out of memory. Tried to allocate 2.87 GiB (GPU 0; 14.76 GiB total capacity; 8.77 GiB already allocated; 19.75 MiB "
    "free; 13.71 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb"
)
CROWDED = (
    "CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total capacity of 31.36 GiB of which 471.69 MiB is free. "
    "Including non-PyTorch memory, this process has 16.63 GiB memory in use. Process 19239 has 14.26 GiB memory in use. Of the "
    "allocated memory 15.03 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated."
)
GRAPHS = (
    "CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 47.53 GiB of which 896.00 KiB is free. "
    "Process 1686436 has 47.51 GiB memory in use. Of the allocated memory 47.00 GiB is allocated by PyTorch, with 46.22 GiB "
    "allocated in private pools (e.g., CUDA Graphs), and 149.10 MiB is reserved by PyTorch but unallocated."
    + TAIL
)
FULL = (
    "CUDA out of memory. Tried to allocate 22.00 MiB. GPU 0 has a total capacty of 23.65 GiB of which 11.06 MiB is free. "
    "Including non-PyTorch memory, this process has 23.60 GiB memory in use. Of the allocated memory 22.90 GiB is allocated by "
    "PyTorch, and 194.87 MiB is reserved by PyTorch but unallocated."
)
ASYNC = (
    "Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 9.43 GiB\n"
    "Requested               : 640.00 MiB\nDevice limit            : 11.59 GiB\nFree (according to CUDA): 7.12 MiB\n"
    "PyTorch limit (set by user-supplied memory fraction)\n                        : 17179869184.00 GiB"
)


@pytest.mark.parametrize(
    ("text", "code", "missing_mib"),
    [
        (CAPPED, "oom/cap-too-low", (10 + 8 - 13.98) * 1024),
        (PLAIN, "oom/capacity", (180 - 129.29) * 1024),
        (PIECES, "oom/fragmentation", 2.87 * 1024 - 19.75),
        (CROWDED, "oom/other-process", 1.16 * 1024 - 471.69),
        (GRAPHS, "oom/private-pool", 20 - 896 / 1024),
        (FULL, "oom/capacity", 22 - 11.06),
        (ASYNC, "oom/capacity", 640 - 7.12),
        (PLAIN.replace("CUDA", "HIP"), "oom/capacity", (180 - 129.29) * 1024),
        (CAPPED.replace("CUDA", "XPU").replace("13.98 GiB allowed; ", "139.80 GiB allowed; "), "oom/unexplained", None),
    ],
)  # fmt: skip
def test_the_cause_and_what_was_missing(text: str, code: str, missing_mib: float | None) -> None:
    found = explain(text)
    assert found.code == code
    # Requests from 10 MiB on are rounded up to 2 MiB.
    assert (
        found.bytes is None
        if missing_mib is None
        else found.bytes == pytest.approx(missing_mib * MIB, abs=2 * MIB)
    )


def test_every_size_of_a_message_is_read() -> None:
    message = read_message(CROWDED.replace("allocated by PyTorch, and", "allocated by PyTorch, with 1.50 MiB allocated in private pools (e.g., CUDA Graphs), and"))  # fmt: skip
    assert (message.requested, message.total, message.free) == (
        round(1.16 * GIB),
        round(31.36 * GIB),
        round(471.69 * MIB),
    )
    assert (message.process, message.processes) == (round(16.63 * GIB), ((19239, round(14.26 * GIB)),))
    assert (message.allocated, message.cached, message.private) == (round(15.03 * GIB), GIB, round(1.5 * MIB))


def test_what_torch_prints_for_unknown_stays_unknown() -> None:
    assert read_message(ASYNC).limit is None


@pytest.mark.parametrize("width", [20, 60])
def test_folded_and_prefixed_lines_read_the_same(width: int) -> None:
    words, lines = PLAIN.split(" "), [""]
    for word in words:
        if len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += word + " "
    folded = "\n".join(f"[rank3]:   {line.strip()}" for line in lines)
    found = explain(folded)
    assert (found.title, found.rank) == (explain(PLAIN).title, 3)


def test_a_whole_traceback_gives_the_programs_own_line() -> None:
    text = f"""Traceback (most recent call last):
  File "/me/train.py", line 41, in step
    loss = model(x)
  File "/env/lib/python3.12/site-packages/torch/nn/modules/module.py", line 1790, in _call_impl
    return forward_call(*args, **kwargs)
torch.OutOfMemoryError: {FULL}"""
    assert explain(text).where == Frame("/me/train.py", 41, "step")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CUDA out of memory. Tried to alloc", "oom/unexplained"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 200.00 GiB. GPU 0 has a total capacity of 139.8", "oom/unexplained"),
        ("Tried to allocate 94.00 MiB. GPU 0 has a total capacity of 8.00 GiB of which 4.03 GiB is free. 2.94 GiB allowed; Of the "
         "allocated memory 2.81 GiB is allocated by PyTorch…", "oom/cap-too-low"),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "oom/outside-allocator"),
        ("CUDA ran out of memory outside PyTorch's allocator. If this workload uses many dynamic shapes", "oom/outside-allocator"),
    ],
)  # fmt: skip
def test_truncated_and_foreign_messages(text: str, code: str) -> None:
    assert explain(text).code == code


@pytest.mark.parametrize("text", ["", "Tried hard.", "ValueError: shapes do not match"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no out-of-memory message"):
        explain(text)
