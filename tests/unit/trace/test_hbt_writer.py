"""The writer lives in other people's processes: stdlib only, thread-safe, fork-safe, and honest about full disks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import hotbed
from hotbed.trace import load_trace
from hotbed.trace.writer import TraceWriter

IMPORTS = """
import sys
sys.path[:0] = sys.argv[1:]
import hotbed.trace.writer
ours = [n for n in sys.modules if n.split(".")[0] not in sys.stdlib_module_names and n != "__main__"]
print(*sorted(n for n in ours if not n.startswith("hotbed")))
"""


def test_the_writer_imports_only_the_standard_library() -> None:
    # -S keeps out what site-packages loads at start; what is left is what the writer asked for.
    folder = Path(hotbed.__file__).parent.parent
    command = [sys.executable, "-S", "-c", IMPORTS, str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.strip() == ""


def test_an_existing_file_is_never_touched(tmp_path: Path) -> None:
    path = tmp_path / "x.hbt"
    path.write_text("precious")
    with pytest.raises(FileExistsError):
        TraceWriter(path)
    assert path.read_text() == "precious"


def test_threads_may_share_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "x.hbt"
    with TraceWriter(path, chunk_events=64) as writer:

        def work(device: int) -> None:
            for i in range(500):
                stack = writer.stack([(f"{device}.py", i % 5, "f")])
                writer.event(0, device=device, size=i, stack=stack)

        threads = [threading.Thread(target=work, args=(device,)) for device in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for device in range(4):
        trace = load_trace(path, device)
        assert trace.events.size.tolist() == list(range(500))
        assert {frame.filename for stack in trace.stacks for frame in stack} == {f"{device}.py"}


def test_a_forked_child_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.hbt"
    writer = TraceWriter(path)
    writer.event(0, size=1)
    child = os.fork()
    if child == 0:
        writer.event(0, size=2)
        writer.flush()
        writer.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    writer.event(0, size=3)
    writer.close()
    writer.close()
    assert load_trace(path).events.size.tolist() == [1, 3]


def test_a_value_that_does_not_fit_leaves_the_columns_whole(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "x.hbt") as writer:
        writer.event(0, size=1)
        with pytest.raises(OverflowError):
            writer.event(0, size=2, time_us=1 << 63)
        writer.event(0, size=3)
    assert load_trace(tmp_path / "x.hbt").events.size.tolist() == [1, 3]


FULL_DISK = """
import resource, shutil, signal, sys
from hotbed.trace.writer import TraceWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path, copy = sys.argv[1:]
unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
writer = TraceWriter(path, chunk_events=100)
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, unlimited))
failures = 0
for i in range(1000):
    try:
        writer.event(0, address=512 * (i + 1), size=i, stack=writer.stack([(f"{i}.py", 1, "f")]))
    except OSError:
        failures += 1
shutil.copy(path, copy)
resource.setrlimit(resource.RLIMIT_FSIZE, (unlimited, unlimited))
writer.close()
print(failures)
"""


def test_a_full_disk_is_an_error_leaves_the_file_readable_and_loses_nothing(tmp_path: Path) -> None:
    path, full = tmp_path / "x.hbt", tmp_path / "full.hbt"
    command = [sys.executable, "-c", FULL_DISK, str(path), str(full)]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert int(result.stdout) > 500
    cut = load_trace(full)
    assert len(cut.events) in (100, 200, 300)
    assert cut.events.size.tolist() == list(range(len(cut.events)))
    assert cut.missing[0].startswith("the recording was not closed")
    whole = load_trace(path)
    assert whole.events.size.tolist() == list(range(1000))
    assert whole.stacks[whole.events.stack[777]][0].filename == "777.py"
    assert whole.missing == ()
