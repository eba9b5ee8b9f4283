"""Checks that a wheel keeps the promise of its manylinux tag and holds the `hotbed` launcher."""

from __future__ import annotations

import io
import re
import stat
import sys
import zipfile
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}
# The only libraries that manylinux lets us count on and that we need: parts of the C library.
ALLOWED = re.compile(r"(libc\.so\.6|libm\.so\.6|libdl\.so\.2|libpthread\.so\.0|librt\.so\.1|ld-linux-.*)")
TAG = re.compile(r"-py3-none-manylinux_(\d+)_(\d+)_(x86_64|aarch64)\.whl")


def elf_problems(name: str, content: bytes, glibc: tuple[int, int], machine: str, own: set[str]) -> list[str]:
    """What in one ELF file would not run where the tag says that it does; `own`: libraries of the same wheel."""
    elf = ELFFile(io.BytesIO(content))
    problems = [] if elf["e_machine"] == machine else [f"{name}: built for {elf['e_machine']}, not {machine}"]
    newest = (0, 0)
    for section in elf.iter_sections():
        if isinstance(section, GNUVerNeedSection):
            names = [entry.name for _, entries in section.iter_versions() for entry in entries]
            versions = [re.fullmatch(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?", version) for version in names]
            newest = max([newest, *((int(found[1]), int(found[2])) for found in versions if found)])
        if isinstance(section, DynamicSection):
            needed = [tag.needed for tag in section.iter_tags() if tag.entry.d_tag == "DT_NEEDED"]
            foreign = [library for library in needed if library not in own and not ALLOWED.fullmatch(library)]
            problems += [f"{name}: needs {library}" for library in foreign]
    print(
        f"  {name}: needs " + (f"glibc {newest[0]}.{newest[1]}" if newest > (0, 0) else "no symbol of glibc")
    )
    if newest > glibc:
        problems.append(f"{name}: needs glibc {newest[0]}.{newest[1]}, the tag allows {glibc[0]}.{glibc[1]}")
    return problems


def wheel_problems(path: Path) -> list[str]:
    """One line for each promise that the wheel at `path` breaks."""
    tag = TAG.search(path.name)
    if not tag:
        return [f"{path.name}: not tagged py3-none-manylinux_*"]
    glibc, machine = (int(tag[1]), int(tag[2])), MACHINES[tag[3]]
    problems, launchers = [], 0
    with zipfile.ZipFile(path) as wheel:
        natives = [entry for entry in wheel.infolist() if wheel.read(entry).startswith(b"\x7fELF")]
        own = {Path(entry.filename).name for entry in natives}
        for entry in natives:
            problems += elf_problems(entry.filename, wheel.read(entry), glibc, machine, own)
            if entry.filename.endswith(".data/scripts/hotbed"):
                launchers += 1
                if not entry.external_attr >> 16 & stat.S_IXUSR:
                    problems.append(f"{entry.filename}: not executable")
    if launchers != 1:
        problems.append("the launcher is not among the wheel's scripts")
    print(f"{path.name}: {len(natives)} native files, {path.stat().st_size / 1024:.0f} KiB")
    return problems


def main(arguments: list[str]) -> int:
    problems = [line for name in arguments for line in wheel_problems(Path(name))]
    print("\n".join(problems) or "wheel: all promises of its tag kept")
    return 1 if problems or not arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
