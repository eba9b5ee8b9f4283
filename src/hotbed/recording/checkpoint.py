"""Runs the passes of a program from its first use of CUDA on: this process forks a child for each and goes no further."""

from __future__ import annotations

import ctypes
import json
import os
import random
import resource
import signal
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hotbed.recording.draws import SEED, further_draws, named, with_draw
from hotbed.recording.fork_safety import native_threads, why_not
from hotbed.recording.limits import resident_bytes
from hotbed.recording.open_files import OpenFiles
from hotbed.recording.report import REPORT
from hotbed.recording.values.session import ANSWERS, STOPPED_EXIT_STATUS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hotbed.recording.session import Session

PASSES = "passes.json"
"""file in the folder of the plain pass: the modes of the passes that have begun, if they were forked"""

_STREAMS = ("stdout", "stderr")
_UNUSABLE = 78
"""exit status of a child that cannot use CUDA"""

_WAITING = (signal.SIGINT, signal.SIGTERM)
_SET_CHILD_SUBREAPER = 36


class Forking:
    """Make it when torch arrives: the threads that are there then are none of OpenMP's."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._threads = native_threads()

    def __call__(self) -> None:
        """Returns in each process that is to go on with the program: in children, or in this one if it cannot fork."""
        session = self._session
        session.watch.pause()
        if why_not(session.torch, session.control) is None:
            Checkpoint(session, native_threads() > self._threads).run()
        session.watch.resume()


class Checkpoint:
    """The program right before it uses CUDA. Its process keeps it, and ends as the last child does."""

    def __init__(self, session: Session, openmp: bool) -> None:
        self._session, self._openmp = session, openmp
        self._folders = session.folder.parent
        self._begun: list[str] = []
        _flush()
        self._files = OpenFiles(session.job["shown"])
        self._random = random.getstate()
        self._made_us, self._peak_bytes = time.time_ns() // 1000, resident_bytes("VmHWM")
        _become_subreaper()
        # Children unblock them. They stay pending here, and say later that the user interrupted.
        self._signals = signal.pthread_sigmask(signal.SIG_BLOCK, _WAITING)

    def run(self) -> None:
        """Returns in children, and in this process if CUDA cannot be used after a fork."""
        status = self._pass("plain")
        if status is None:
            return
        if os.waitstatus_to_exitcode(status) == _UNUSABLE:
            self._give_up()
            return
        if self._stopped(status):
            status = self._pass("learn")
            if status is not None and not _interrupted():
                self._show_beginning()
                learnt = Path(self._session.job["values"], ANSWERS).exists()
                status = self._pass("answered" if learnt else "policy")
                if status is not None and learnt and not self._draw_again():
                    return
        if status is not None:
            _end_as(status)

    def _draw_again(self) -> bool:
        """Passes with other guesses, where sizes follow from guesses; False in their children.

        Several side by side, each after a process of its own, but where they would share places in open files.
        """
        job = self._session.job
        draws = further_draws(job["seeds"], self._folders / "answered" / REPORT)
        lanes = 1 if self._files.shared else min(len(draws), len(os.sched_getaffinity(0)))
        running: set[int] = set()
        for draw in draws:
            if _interrupted():
                break
            if len(running) >= lanes:
                _wait_for_one_of(running)
            self._note(f"{SEED}{job['seed'] + draw}")
            child = _fork()
            if child == 0:
                return self._lane(draw)
            running.add(child)
        while running:
            _wait_for_one_of(running)
        _end_children()
        return True

    def _lane(self, draw: int) -> bool:
        """In a process of its own: what must be learnt with these guesses, then the pass that counts."""
        _become_subreaper()
        for mode in ("learn", "answered"):
            if not _interrupted() and self._pass(mode, draw) is None:
                return False
        os._exit(0)

    def _give_up(self) -> None:
        (self._session.folder / PASSES).unlink()
        signal.pthread_sigmask(signal.SIG_SETMASK, self._signals)

    def _stopped(self, status: int) -> bool:
        return (
            os.waitstatus_to_exitcode(status) == STOPPED_EXIT_STATUS
            and not (self._session.folder / REPORT).exists()
            and not _interrupted()
        )

    def _note(self, name: str) -> None:
        self._begun.append(name)
        note = self._session.folder / PASSES
        note.with_suffix(".part").write_text(json.dumps(self._begun))
        note.with_suffix(".part").replace(note)

    def _pass(self, mode: str, draw: int = 0) -> int | None:
        """Runs one pass in a child. Its wait status; None in the child."""
        self._files.put_back()
        if not draw:
            self._note(mode)
        child = _fork()
        if child == 0:
            self._become(mode, draw)
            return None
        status = os.waitpid(child, 0)[1]
        _end_children()
        return status

    def _become(self, mode: str, draw: int) -> None:
        torch = self._session.torch
        signal.pthread_sigmask(signal.SIG_SETMASK, self._signals)
        # Python seeds it anew in each child.
        random.setstate(self._random)
        if torch._C._cuda_isInBadFork():
            os._exit(_UNUSABLE)
        if self._openmp:
            # A parallel region would wait for threads that are not there.
            torch.set_num_threads(1)
            torch.set_num_threads = lambda _number: None
        job = with_draw({**self._session.job, "mode": mode}, draw)
        folder = self._folders / named(mode, draw)
        folder.mkdir(exist_ok=True)
        if mode == "learn" or draw:
            self._redirect([os.open(folder / name, os.O_CREAT | os.O_WRONLY, 0o600) for name in _STREAMS])
        elif mode != "plain":
            self._redirect(self._session.job["shown"])
        waited_us = time.time_ns() // 1000 - self._made_us
        self._session.adopt(job, folder, waited_us=waited_us, host_peak_bytes=self._peak_bytes)

    def _redirect(self, targets: list[int]) -> None:
        for number, target in self._ours(targets):
            os.dup2(target, number)

    def _show_beginning(self) -> None:
        """Prints what the program printed before the checkpoint: what comes next is shown as it is printed."""
        self._files.put_back()
        for number, target in self._ours(self._session.job["shown"]):
            rest = (self._session.folder / _STREAMS[number - 1]).read_bytes()
            while rest:
                rest = rest[os.write(target, rest) :]

    def _ours(self, targets: list[int]) -> Iterator[tuple[int, int]]:
        """Streams that still go to the file of the plain pass, each with its target."""
        for number, name, target in zip((1, 2), _STREAMS, targets, strict=True):
            if os.path.samestat(os.fstat(number), (self._session.folder / name).stat()):
                yield number, target


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _become_subreaper() -> None:
    """What is left of a pass comes here when its process is gone."""
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _wait_for_one_of(children: set[int]) -> None:
    """Takes away the first that ends."""
    while (ended := os.wait()[0]) not in children:
        pass
    children.remove(ended)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    ctypes.CDLL(None).fflush(None)


def _interrupted() -> bool:
    return bool(signal.sigpending() & set(_WAITING))


def _end_children() -> None:
    """Ends what a pass has left behind, e.g. workers of a data loader."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    with suppress(ChildProcessError, FileNotFoundError):
        while True:
            for child in children.read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(child), signal.SIGKILL)
            os.waitpid(-1, 0)


def _end_as(status: int) -> None:
    """Ends this process without any of its finalizers."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        os._exit(code)
    # The child has left the core.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if -code not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [-code])
    os._exit(1)
