"""One pass of a program: the process that records it, what it is told, and how it is made to end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotbed import phantom
from hotbed.phantom import control
from hotbed.predicting.forked import ForkedPasses
from hotbed.recording.draws import named
from hotbed.recording.limits import INTERRUPT, INTERRUPTED
from hotbed.recording.report import REPORT, SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hotbed.gpu import Gpu
    from hotbed.predicting.program import Program
    from hotbed.predicting.running import RunOptions
    from hotbed.predicting.script_run import Ending

_BOOT = Path(control.__file__).parent.parent / "recording" / "boot.py"
_KEPT = ("stdout", "stderr")
# How long a program may take to leave on its own after it was asked to, in seconds.
_GRACE_S = 30.0
_INTERRUPT_S = 5.0
_LOOK_S = 0.2


@dataclass(frozen=True)
class Pass:
    """`mode` is one of hotbed.recording.values, or "policy": reads are answered as the phantom does by itself.

    `folder` takes the files of this pass, `values` those that pass to the next. `kept`: what the program prints is
    kept in `folder` instead of shown.
    """

    mode: str
    folder: Path
    values: Path
    kept: bool
    forks: bool = False
    """whether the passes after this one may go on from its first use of CUDA, in children of its process"""
    draw: int = 0
    """added to the seed of guesses: see hotbed.recording.draws"""


@dataclass(frozen=True)
class Finished:
    """A pass that is over. `report` is empty where the program ended before it could be written."""

    modes: tuple[str, ...]
    """of the passes that its process made; this is the last of them"""
    folder: Path
    ending: Ending
    exit_code: int | None
    """of the process; None if a signal ended it"""
    report: dict[str, Any] = field(default_factory=dict)

    @property
    def snapshot(self) -> Path | None:
        """torch's snapshot, where there is one."""
        path = self.folder / SNAPSHOT
        return path if path.exists() else None

    def used_gpu(self) -> bool:
        """Whether the recorded process had a CUDA context."""
        return self.report.get("pid") in self._users()

    def children_used_gpu(self) -> bool:
        """Whether a process that the program started had one; True also where nobody knows whose a context was."""
        return bool(self._users() - {self.report.get("pid")})

    def _users(self) -> set[int]:
        """Process ids that the phantom noted: see native/phantom/users.h."""
        return {int(path.suffix[1:]) for path in self.folder.glob(control.USER_FILE + ".*")}


class Running:
    """The programs that run in this process's threads: to Ctrl-C only the main thread reacts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self.ended = False

    @contextlib.contextmanager
    def holding(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """Within the block `process` is one of them."""
        with self._lock:
            self._processes.add(process)
        if self.ended:
            self.end()
        try:
            yield
        finally:
            with self._lock:
                self._processes.discard(process)

    def end(self) -> None:
        """Kills them, and those that are still to start."""
        self.ended = True
        with self._lock:
            for process in self._processes:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)


def run_pass(program: Program, gpu: Gpu, options: RunOptions, this: Pass) -> Finished:
    """Runs `program` once and waits for it. Ctrl-C ends the program, not this call."""
    reading, writing = os.pipe()
    forked = ForkedPasses(this.folder, options.progress)
    shown = _duplicates(options) if this.forks else None
    try:
        (this.folder / "job.json").write_text(json.dumps(_job(program, options, this, reading, shown)))
        try:
            process = _start(program, gpu, options, this, [reading, *(shown or ())])
        finally:
            for passed in (reading, *(shown or ())):
                os.close(passed)
        with options.running.holding(process):
            ended = _wait(
                process,
                lambda: _interrupt(process, writing, this.folder.parent),
                options.time_limit_s + _GRACE_S,
                forked,
            )
    finally:
        os.close(writing)
    modes = forked.modes() or (this.mode,)
    return _finished(modes, this.folder.parent / modes[-1], process.returncode, ended)


def finished_draw(main: Finished, draw: int) -> Finished | None:
    """The pass that counts of a further draw, made in children of the process of `main`; None where it left nothing."""
    folder = main.folder.parent / named("answered", draw)
    if not (folder / REPORT).exists():
        return None
    report = json.loads((folder / REPORT).read_text())
    return Finished(main.modes, folder, report["ending"], report["exit_code"], report)


def _duplicates(options: RunOptions) -> tuple[int, int]:
    """Streams for what is shown, where the program's own are files."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if options.echo == "none":
        return os.open(os.devnull, os.O_WRONLY), os.open(os.devnull, os.O_WRONLY)
    return os.dup(1 if options.echo == "all" else 2), os.dup(2)


def _job(
    program: Program, options: RunOptions, this: Pass, orders: int, shown: tuple[int, int] | None
) -> dict[str, Any]:
    return {
        "task": "session",
        "kind": program.kind,
        "target": program.target,
        "arguments": program.arguments,
        "source": program.source,
        "steps": options.steps,
        "until": options.until,
        "time_limit_s": options.time_limit_s,
        "host_limit_bytes": options.host_limit_bytes,
        "seed": options.seed,
        "seeds": options.seeds,
        "draw": this.draw,
        "stacks": options.stacks,
        "mode": this.mode,
        "values": str(this.values),
        "orders": orders,
        "shown": shown,
        "control": control.__file__,
        "users": control.USERS,
    }


def _start(
    program: Program, gpu: Gpu, options: RunOptions, this: Pass, passed: list[int]
) -> subprocess.Popen[bytes]:
    with _outputs(options, this) as (out, err):
        return phantom.start(
            [program.python or sys.executable, str(_BOOT), str(this.folder)],
            gpu=gpu,
            count=options.gpus,
            context=True,
            # Sets of strings must have one order in all passes: what is learnt in one holds in the next.
            env={
                "PYTHONHASHSEED": "0",
                **os.environ,
                **dict(program.environment),
                control.USERS: str(this.folder.resolve()),
            },
            cwd=program.folder,
            stdout=out,
            stderr=err,
            pass_fds=passed,
            # A group of its own: Ctrl-C at the terminal is passed on once, and what it leaves behind can be ended.
            start_new_session=True,
        )


@contextlib.contextmanager
def _outputs(options: RunOptions, this: Pass) -> Iterator[tuple[Any, Any]]:
    if this.kept:
        with (this.folder / _KEPT[0]).open("wb") as out, (this.folder / _KEPT[1]).open("wb") as err:
            yield out, err
        return
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    yield {"all": (1, 2), "stderr": (2, 2), "none": (subprocess.DEVNULL, subprocess.DEVNULL)}[options.echo]


def show_kept(options: RunOptions, this: Pass) -> None:
    """Prints what the program of a kept pass printed, where `options.echo` wants it."""
    places = {"all": (1, 2), "stderr": (2, 2), "none": ()}[options.echo]
    for place, name in zip(places, _KEPT, strict=False):
        with (this.folder / name).open("rb") as kept, open(place, "wb", closefd=False) as out:
            shutil.copyfileobj(kept, out)


def _wait(
    process: subprocess.Popen[bytes], interrupt: Callable[[], None], seconds: float, forked: ForkedPasses
) -> Ending | None:
    """Until the process is gone; what ended it from outside, if anything did. `seconds` are those of each pass."""
    deadline = time.monotonic() + seconds
    try:
        while process.poll() is None:
            if forked.another_began():
                deadline = time.monotonic() + seconds
            left = deadline - time.monotonic()
            if left <= 0:
                return "time"
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(min(left, _LOOK_S))
    except KeyboardInterrupt:
        interrupt()
        return "interrupted"
    finally:
        # Workers that the program left behind, or all of it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return None


def _interrupt(process: subprocess.Popen[bytes], orders: int, folder: Path) -> None:
    """Passes Ctrl-C on; a program that does not end by it writes what is known. A second Ctrl-C waits no longer."""
    (folder / INTERRUPTED).touch()
    os.killpg(process.pid, signal.SIGINT)
    with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired, BrokenPipeError):
        try:
            process.wait(_INTERRUPT_S)
        except subprocess.TimeoutExpired:
            os.write(orders, INTERRUPT)
            process.wait(_GRACE_S)


def _finished(modes: tuple[str, ...], folder: Path, status: int, ended: Ending | None) -> Finished:
    path = folder / REPORT
    report = json.loads(path.read_text()) if path.exists() else {}
    code = status if status >= 0 else None
    if ended == "interrupted" or not report:
        ending: Ending = ended or ("end" if code is not None else "killed")
    else:
        ending = report["ending"]
    return Finished(modes, folder, ending, code, report)
