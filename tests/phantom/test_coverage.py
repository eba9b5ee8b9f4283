"""`hotbed.phantom.coverage` on small ELF files, and the phantom's own symbols."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from elftools.elf.elffile import ELFFile

from hotbed.errors import TorchError
from hotbed.phantom import phantom_folder, phantom_library
from hotbed.phantom.coverage import coverage, exported_names, library_of

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """
int cudaMalloc(void **, unsigned long), cudaNewThing(void), cublasCreate_v2(void), cudaIpcGetMemHandle(void);
int cusparseNewThing(void), cudnnCreate(void), cuFileRead(void);
const char names[] = "\\0cuMemCreate\\0cuMemUnheardOf\\0nvmlInit_v2\\0";
int use(void) { return cudaMalloc(0, 0) + cudaNewThing() + cublasCreate_v2() + cudaIpcGetMemHandle(); }
int more(void) { return cusparseNewThing() + cudnnCreate() + cuFileRead(); }
"""


def fake_torch(folder: Path, source: str) -> Path:
    """A folder laid out like an installed torch, with one library built from `source`."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    (folder / "lib").mkdir(parents=True)
    (folder / "version.py").write_text("__version__ = '9.9.0+cu139'\n")
    library = folder / "lib" / "libc10_cuda.so"
    build = [compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
    subprocess.run(build, input=source, text=True, check=True)
    return folder


def test_names_are_modelled_stubs_or_uncovered(tmp_path: Path) -> None:
    found = coverage(fake_torch(tmp_path / "torch", SOURCE))
    assert found.torch_version == "9.9.0+cu139"
    assert found.modelled == ("cuMemCreate", "cublasCreate_v2", "cudaMalloc", "nvmlInit_v2")
    assert found.stubs == ("cudaIpcGetMemHandle",)
    assert found.uncovered == ("cuMemUnheardOf", "cudaNewThing", "cusparseNewThing")


def test_each_name_belongs_to_a_library() -> None:
    names = {
        "cublasSgemm_v2": "cuBLAS",
        "cublasLtMatmul": "cuBLASLt",
        "cusolverDnXgeev": "cuSOLVER",
        "__cudaRegisterVar": "CUDA runtime",
        "cuMemCreate": "CUDA driver",
        "cudnnCreate": "unknown",
    }
    assert {name: library_of(name) for name in names} == names


def test_a_torch_without_cuda_is_said_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(TorchError, match="was built without CUDA"):
        coverage(fake_torch(tmp_path / "torch", "int nothing;"))


def test_the_phantom_exports_cuda_names_and_its_control_interface_only() -> None:
    modelled, stubs = exported_names(phantom_library())
    assert len(modelled) > 250
    assert not modelled & stubs
    libraries = "cublas(Lt)?|cudnn|cufft|curand|cusolver|cusparse(Lt)?|nccl"
    expected = re.compile(rf"(__cuda|cuda|cu|nvml|(__)?nvrtc|{libraries})[A-Z]\w+|phantom_\w+")
    assert [name for name in modelled | stubs if not expected.fullmatch(name)] == []


def needed_symbols(library: Path) -> dict[str, tuple[int, ...]]:
    """Symbols that `library` takes from glibc, and the version of glibc that it wants them from."""
    with library.open("rb") as file:
        elf = ELFFile(file)
        versions = {
            auxiliary["vna_other"]: tuple(map(int, auxiliary.name.removeprefix("GLIBC_").split(".")))
            for section in elf.iter_sections("SHT_GNU_verneed")
            for _, auxiliaries in section.iter_versions()
            for auxiliary in auxiliaries
        }
        names = elf.get_section_by_name(".dynsym")
        numbers = elf.get_section_by_name(".gnu.version")
        needed = {}
        for i in range(names.num_symbols()) if versions else ():
            version = versions.get(numbers.get_symbol(i)["ndx"])
            if version:
                needed[names.get_symbol(i).name] = version
        return needed


@pytest.mark.parametrize("library", [path.name for path in phantom_folder().glob("*.so*")])
def test_the_phantom_runs_on_glibc_2_28(library: str) -> None:
    """tools/check_wheel.py holds the wheel to it; a local compiler takes what 2.34 moved into libc from there."""
    moved = {"dlclose", "dlopen", "dlsym", "pthread_once"}
    needed = needed_symbols(phantom_folder() / library)
    assert [name for name, version in needed.items() if version > (2, 28) and name not in moved] == []
