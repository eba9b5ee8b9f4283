"""Finds the native files of the phantom GPU, or says in words why there are none."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hotbed.errors import PlatformError

_INSTALLED = Path(__file__).parent.parent / "_native"
_LIBRARY = "libcuda.so.1"
_DOOR = "hotbed-libraries.so"


def phantom_folder() -> Path:
    """The folder with the phantom's libcuda.so.1 and libnvidia-ml.so.1.

    HOTBED_NATIVE_DIR, a CMake build folder, goes before the installed files. Raises PlatformError outside
    Linux and where the files were not built.
    """
    if sys.platform != "linux":
        raise PlatformError(
            f"the phantom GPU needs Linux: it takes the place of libcuda.so.1, and {sys.platform} has none",
            hint="run hotbed in a Linux container or virtual machine; no GPU is needed there",
        )
    override = os.environ.get("HOTBED_NATIVE_DIR")
    native = Path(override) if override else _INSTALLED
    folder = native.resolve() / "phantom"
    if not (folder / _LIBRARY).is_file():
        raise PlatformError(
            f"the phantom GPU is not built: {folder / _LIBRARY} does not exist",
            hint="pip install hotbed, or in a checkout: "
            "cmake -S . -B build && cmake --build build && export HOTBED_NATIVE_DIR=$PWD/build",
        )
    return folder


def phantom_library() -> Path:
    """The phantom itself, an ELF shared object. Raises PlatformError like `phantom_folder`."""
    return phantom_folder() / _LIBRARY


def preloaded() -> tuple[Path, ...]:
    """What a child must preload, in this order: the phantom, and the names of CUDA's libraries, which lead to it.

    Raises PlatformError like `phantom_folder`.
    """
    folder = phantom_folder()
    return folder / _LIBRARY, folder / _DOOR
