"""Runs `hotbed` as typed, in forks of a process that has imported it; its programs and replays are forked as well."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.forking import Forks, Server, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Hotbed:
    """The command `hotbed`. Without a server it runs in a new interpreter."""

    folder: Path
    server: Server | None

    def __call__(
        self, *args: str | Path, code: int = 0, columns: int = 100, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs it with `args`; it must exit with `code`."""
        argv = ["-m", "hotbed", *map(str, args)]
        env = os.environ | {"PYTHONIOENCODING": "utf-8", "COLUMNS": str(columns)}
        env.pop("PYTORCH_CUDA_ALLOC_CONF", None)
        texts = [self.folder / "stdout", self.folder / "stderr"]
        with texts[0].open("wb") as out, texts[1].open("wb") as err:
            streams = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err, "cwd": cwd}
            if self.server is None:
                status = subprocess.run([sys.executable, *argv], env=env, check=False, **streams).returncode
            else:
                status = self.server.fork(argv, env, **streams).wait()
        shown, said = (text.read_text(encoding="utf-8") for text in texts)
        assert status == code, shown + said
        return subprocess.CompletedProcess(argv, status, shown, said)


@pytest.fixture(scope="session")
def hotbed_fresh(tmp_path_factory: pytest.TempPathFactory) -> Hotbed:
    """In a new interpreter, with all that it starts."""
    return Hotbed(tmp_path_factory.mktemp("fresh"), None)


@pytest.fixture(scope="session")
def hotbed_cli(
    forks: Forks, hotbed_fresh: Hotbed, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Hotbed]:
    """In a fork; with HOTBED_TEST_FRESH set in a new interpreter."""
    if os.environ.get("HOTBED_TEST_FRESH"):
        yield hotbed_fresh
        return
    folder = tmp_path_factory.mktemp("cli")
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    env = os.environ | {"PYTHONPATH": path, "PYTHONIOENCODING": "utf-8", "HOTBED_TEST_FORKS": forks.to_json()}
    with serving(folder / "socket", sys.executable, ["tests.hotbed_forked"], env) as server:
        yield Hotbed(folder, server)
