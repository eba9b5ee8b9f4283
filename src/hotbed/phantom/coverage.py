"""Compares the CUDA entry points that an installed torch needs with those that the phantom exports."""

from __future__ import annotations

import re
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hotbed.errors import TorchError
from hotbed.phantom.library import phantom_library
from hotbed.phantom.start import LEAVE_WORKING_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from elftools.elf.elffile import ELFFile

# How the names of each library begin; the first that fits counts. cuFile, cuDNN and NCCL are not among them: their real
# libraries stay.
_PREFIXES = {
    "cuBLASLt": "cublasLt",
    "cuBLAS": "cublas",
    "cuSOLVER": "cusolver(?:Dn|Sp|Rf|Mg)?",
    "cuSPARSELt": "cusparseLt",
    "cuSPARSE": "cusparse",
    "cuFFT": "cufft",
    "cuRAND": "curand",
    "NVRTC": "nvrtc",
    "NVML": "nvml",
    "CUDA runtime": "(?:__)?cuda",
    "CUDA driver": "cu(?!File)",
}
LIBRARIES = tuple(_PREFIXES)
_CUDA_NAME = re.compile("(?:" + "|".join(f"({prefix})" for prefix in _PREFIXES.values()) + r")(?=[A-Z])\w+")
# torch keeps the names that it looks up at run time as strings in this library.
_LOOKUPS_IN = "libc10_cuda.so"
_LOOKED_UP = re.compile(
    rb"\0((?:cu(?:Ctx|Dev|Device|Green|Logs|Mem|Multicast|Stream)|nvml(?:Device|Init|System))\w*)(?=\0)"
)
_UNMODELLED_SECTION = "hotbed_unmodelled"
_ASK_TORCH = "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
_SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size of an ELF64 symbol


@dataclass(frozen=True)
class Coverage:
    """Entry points of CUDA and its libraries that one torch imports or looks up, by what the phantom does with them.

    `modelled` behave as on the GPU, as far as memory goes; `stubs` fail with "not supported" and are named at exit;
    `uncovered` are not in the phantom, so a program that calls one stops at it.
    """

    torch_version: str
    modelled: tuple[str, ...]
    stubs: tuple[str, ...]
    uncovered: tuple[str, ...]


def torch_folder(python: str) -> Path:
    """Where the torch of the interpreter `python` is installed. Raises TorchError if it has none."""
    try:
        asked = subprocess.run(
            [python, "-c", LEAVE_WORKING_FOLDER + _ASK_TORCH], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise TorchError(f"{python} is no Python that can be started: {error}") from error
    if not asked.stdout.strip():
        raise TorchError(
            f"{python} has no torch", hint="pip install torch, or name another Python with --torch"
        )
    return Path(asked.stdout.strip())


def coverage(torch: Path) -> Coverage:
    """How much of what the torch installed at `torch` needs the phantom has. Raises TorchError without CUDA."""
    return compare(torch_version((torch / "version.py").read_text()), sorted((torch / "lib").glob("*.so")))


def compare(version: str, libraries: Iterable[Path]) -> Coverage:
    """How much of what the `libraries` of torch `version` need the phantom has; each is read before the next is asked
    for. Raises TorchError if none of them needs CUDA."""
    modelled, stubs = exported_names(phantom_library())
    needed: set[str] = set()
    for library in libraries:
        needed |= imported_names(library)
        if library.name == _LOOKUPS_IN:
            # Who looks a function up by name gets its newest form.
            lookups = looked_up_names(library)
            needed |= {name + "_v2" if name + "_v2" in modelled else name for name in lookups}
    if not any(name.startswith("cuda") for name in needed):
        raise TorchError(
            f"torch {version} was built without CUDA", hint="install a CUDA build of torch from pypi.org"
        )
    return Coverage(
        torch_version=version,
        modelled=tuple(sorted(needed & modelled)),
        stubs=tuple(sorted(needed & stubs)),
        uncovered=tuple(sorted(needed - modelled - stubs)),
    )


def library_of(name: str) -> str:
    """Which of LIBRARIES an entry point belongs to."""
    found = _CUDA_NAME.fullmatch(name)
    return LIBRARIES[found.lastindex - 1] if found and found.lastindex else "unknown"


def imported_names(library: Path) -> set[str]:
    """CUDA names that an ELF file expects other files to define."""
    with library.open("rb") as file:
        return {name for name, section in _symbols(_elf(file)) if section == 0 and _CUDA_NAME.fullmatch(name)}


def looked_up_names(library: Path) -> set[str]:
    """CUDA names among the constant strings of an ELF file."""
    with library.open("rb") as file:
        section = _elf(file).get_section_by_name(".rodata")
        data: bytes = section.data() if section else b""
    return {match[1].decode() for match in _LOOKED_UP.finditer(data)}


def exported_names(library: Path) -> tuple[set[str], set[str]]:
    """Names that the phantom at `library` defines: those that it models, and the named stubs."""
    with library.open("rb") as file:
        elf = _elf(file)
        stub_section = elf.get_section_index(_UNMODELLED_SECTION)
        defined = [(name, section) for name, section in _symbols(elf) if section]
    stubs = {name for name, section in defined if section == stub_section}
    return {name for name, _ in defined} - stubs, stubs


def _elf(file: object) -> ELFFile:
    from elftools.elf.elffile import ELFFile

    return ELFFile(file)


def _symbols(elf: ELFFile) -> Iterator[tuple[str, int]]:
    """(name, section index) of each dynamic symbol; torch's tables are too long for one object a symbol."""
    table = elf.get_section_by_name(".dynsym")
    if table is None or elf.elfclass != 64 or not elf.little_endian:
        return
    strings: bytes = elf.get_section_by_name(".dynstr").data()
    for name, _, _, section, _, _ in _SYMBOL.iter_unpack(table.data()):
        if strings[name : name + 2] in (b"cu", b"nv", b"__"):
            yield strings[name : strings.index(0, name)].decode(), section


def torch_version(module: str) -> str:
    """The version that the text of a torch/version.py states."""
    found = re.search(r"__version__ = '([^']+)'", module)
    return found[1] if found else "unknown"
