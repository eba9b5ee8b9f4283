"""`hotbed.phantom.coverage` on small ELF files, and the phantom's own symbols."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

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


@pytest.mark.parametrize("library", ["libcuda.so.1", "libnvidia-ml.so.1"])
def test_the_phantom_runs_on_glibc_2_28(library: str) -> None:
    needed = set()
    with (phantom_folder() / library).open("rb") as file:
        for section in ELFFile(file).iter_sections():
            if isinstance(section, GNUVerNeedSection):
                needed |= {version.name for _, versions in section.iter_versions() for version in versions}
    found = [tuple(map(int, name.removeprefix("GLIBC_").split("."))) for name in needed]
    assert max(found) <= (2, 28)
