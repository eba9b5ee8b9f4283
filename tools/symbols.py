"""Prints what the phantom lacks of the entry points that published torch wheels import, without installing them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from hotbed.phantom.coverage import Coverage, compare, torch_version

if TYPE_CHECKING:
    from collections.abc import Iterator

NEWEST = "newest"


def download(version: str, folder: Path) -> Path | str:
    """The wheel of torch `version` in `folder`, or pip's reason why there is none."""
    wanted = "torch" if version == NEWEST else f"torch=={version}"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    done = subprocess.run([*pip, "--dest", str(folder), wanted], capture_output=True, text=True, check=False)
    wheel = next(folder.glob("torch-*.whl"), None)
    if wheel:
        return wheel
    reasons = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")]
    return reasons[0].removeprefix("ERROR: ") if reasons else f"pip ended with status {done.returncode}"


def libraries(wheel: zipfile.ZipFile, folder: Path) -> Iterator[Path]:
    """The shared objects of torch, each in `folder` until the next is asked for: together they take gigabytes."""
    for member in wheel.namelist():
        if member.startswith("torch/lib/") and member.endswith(".so"):
            path = Path(wheel.extract(member, folder))
            yield path
            path.unlink()


def lacking(version: str) -> Coverage | str:
    """How the phantom covers torch `version`, or why that cannot be told."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = download(version, folder)
        if isinstance(wheel, str):
            return wheel
        with zipfile.ZipFile(wheel) as content:
            said = torch_version(content.read("torch/version.py").decode())
            return compare(said, libraries(content, folder))


def main() -> int:
    """Exit status 1 if an entry point is missing, 2 if a version could not be looked at."""
    status = 0
    for version in sys.argv[1:]:
        found = lacking(version)
        if isinstance(found, str):
            print(f"torch {version}: not looked at: {found}")
            status = status or 2
            continue
        print(
            f"torch {found.torch_version}: {len(found.modelled)} modelled, {len(found.stubs)} named stubs, "
            f"{len(found.uncovered)} missing"
        )
        for name in found.uncovered:
            print(f"  {name}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
