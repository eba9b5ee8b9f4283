"""Progress of a search, on stderr when that is a terminal."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from hotbed.cli.printer import error_console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hotbed.tuning.evaluator import Evaluator


@contextlib.contextmanager
def replay_progress() -> Iterator[Callable[[Evaluator], None]]:
    """A bar on stderr, when that is a terminal; the total is an estimate until the search ends."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    console = error_console()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting torch", total=None)

        def update(evaluator: Evaluator) -> None:
            expected = max(evaluator.expected_replays, evaluator.replays + 1)
            bar.update(
                task, completed=evaluator.replays, total=expected, description=f"{evaluator.replays} replays"
            )

        yield update


@contextlib.contextmanager
def phases() -> Iterator[Callable[[str], None]]:
    """A line on stderr, when that is a terminal, that says what is being done; it begins with the first call."""
    console = error_console()
    status = console.status("") if console.is_terminal else None
    begun = threading.Event()

    def tell(text: str) -> None:
        if status is not None:
            status.update(text)
            if not begun.is_set():
                begun.set()
                status.start()

    try:
        yield tell
    finally:
        if status is not None:
            status.stop()
