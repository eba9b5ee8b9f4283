"""The memory calls of the CUDA driver and runtime through ctypes, on one device of this process; no torch."""

from __future__ import annotations

import ctypes
import sys
from ctypes import (
    POINTER,
    Structure,
    byref,
    c_char,
    c_char_p,
    c_int,
    c_size_t,
    c_ubyte,
    c_uint64,
    c_ushort,
    c_void_p,
)
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

from hotbed.errors import PlatformError

if TYPE_CHECKING:
    from collections.abc import Callable

# CUdevice_attribute numbers, a documented and stable enumeration of the driver API.
ATTRIBUTES = {
    "sm_count": 16,
    "memory_bus_bits": 37,
    "l2_bytes": 38,
    "compute_capability_major": 75,
    "compute_capability_minor": 76,
    "shared_memory_per_sm_bytes": 81,
    "shared_memory_optin_bytes": 97,
}
_VIRTUAL_MEMORY_SUPPORTED = 102
_RDMA_WITH_VIRTUAL_MEMORY = 110


class _Location(Structure):
    _fields_ = [("type", c_int), ("id", c_int)]


class _AllocationFlags(Structure):
    _fields_ = [
        ("compression", c_ubyte),
        ("rdma_capable", c_ubyte),
        ("usage", c_ushort),
        ("reserved", c_ubyte * 4),
    ]


class AllocationProperty(Structure):
    """CUmemAllocationProp."""

    _fields_ = [
        ("type", c_int),
        ("handle_types", c_int),
        ("location", _Location),
        ("win32_metadata", c_void_p),
        ("flags", _AllocationFlags),
    ]


class AccessDescription(Structure):
    """CUmemAccessDesc."""

    _fields_ = [("location", _Location), ("flags", c_int)]


class Cuda:
    """One device with its primary context; every entry point checked, every failure a PlatformError.

    `driver` and `runtime` are the loaded libraries; `runtime` is None where no libcudart can be found, and
    cuMemAlloc then stands in for cudaMalloc.
    """

    def __init__(self, device: int = 0) -> None:
        self.driver = _load_driver()
        self.runtime = _load_runtime()
        self.device = device
        self._handle = c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", byref(self._handle), device)

    def entry(self, name: str) -> Callable[..., int]:
        """The entry point called `name`, of the runtime if it starts with "cuda", else of the driver."""
        library = self.runtime if name.startswith("cuda") else self.driver
        try:
            return cast("Callable[..., int]", getattr(library, name))
        except AttributeError:
            raise PlatformError(f"the CUDA driver here has no {name}") from None

    def call(self, name: str, *args: Any) -> None:
        """Calls `name` and raises PlatformError unless it succeeds."""
        self.check(name, self.entry(name)(*args))

    def check(self, name: str, code: int) -> None:
        """Raises PlatformError naming the call unless `code` is success (0)."""
        if code == 0:
            return
        text = c_char_p()
        found = self.entry("cuGetErrorName")(code, byref(text)) == 0
        raise PlatformError(f"{name}: {text.value.decode() if found and text.value else f'error {code}'}")

    def open_context(self) -> None:
        """Creates the device's primary context and makes it current for the calling thread."""
        context = c_void_p()
        self.call("cuDevicePrimaryCtxRetain", byref(context), self._handle)
        self.call("cuCtxSetCurrent", context)
        if self.runtime is not None:
            self.call("cudaSetDevice", self.device)

    def name(self) -> str:
        """Name of the device as CUDA reports it."""
        text = (c_char * 256)()
        self.call("cuDeviceGetName", text, 256, self._handle)
        return text.value.decode()

    def uuid(self) -> str:
        """UUID of the device in NVML's form: "GPU-" and five groups of hexadecimal digits."""
        raw = (c_ubyte * 16)()
        self.call("cuDeviceGetUuid", raw, self._handle)
        return f"GPU-{UUID(bytes=bytes(raw))}"

    def total_bytes(self) -> int:
        """Memory of the device as CUDA reports it."""
        size = c_size_t()
        self.call("cuDeviceTotalMem_v2", byref(size), self._handle)
        return size.value

    def free_bytes(self) -> int:
        """Memory of the device that is free now; needs the context."""
        free, total = c_size_t(), c_size_t()
        self.call("cuMemGetInfo_v2", byref(free), byref(total))
        return free.value

    def driver_version(self) -> tuple[int, int]:
        """Newest CUDA version that the driver supports."""
        version = c_int()
        self.call("cuDriverGetVersion", byref(version))
        return version.value // 1000, version.value % 1000 // 10

    def attribute(self, number: int) -> int:
        """A CUdevice_attribute of the device."""
        value = c_int()
        self.call("cuDeviceGetAttribute", byref(value), number, self._handle)
        return value.value

    def has_virtual_memory(self) -> bool:
        """Whether cuMemCreate and its companions work on the device."""
        return bool(self.attribute(_VIRTUAL_MEMORY_SUPPORTED))

    def allocation_property(self) -> AllocationProperty:
        """What torch asks of cuMemCreate for expandable segments: pinned, shareable by file descriptor, RDMA."""
        prop = AllocationProperty(type=1, handle_types=1, location=_Location(1, self.device))
        prop.flags.rdma_capable = self.attribute(_RDMA_WITH_VIRTUAL_MEMORY)
        return prop

    def access_description(self) -> AccessDescription:
        """Read and write access for the device itself."""
        return AccessDescription(_Location(1, self.device), 3)


_SIGNATURES: dict[str, list[Any]] = {
    "cuMemAlloc_v2": [POINTER(c_uint64), c_size_t],
    "cuMemFree_v2": [c_uint64],
    "cudaMalloc": [POINTER(c_uint64), c_size_t],
    "cudaFree": [c_uint64],
    "cuMemAddressReserve": [POINTER(c_uint64), c_size_t, c_size_t, c_uint64, c_uint64],
    "cuMemAddressFree": [c_uint64, c_size_t],
    "cuMemCreate": [POINTER(c_uint64), c_size_t, POINTER(AllocationProperty), c_uint64],
    "cuMemRelease": [c_uint64],
    "cuMemMap": [c_uint64, c_size_t, c_size_t, c_uint64, c_uint64],
    "cuMemUnmap": [c_uint64, c_size_t],
    "cuMemSetAccess": [c_uint64, c_size_t, POINTER(AccessDescription), c_size_t],
}


def _load_driver() -> ctypes.CDLL:
    library = _first_with("cuMemCreate", [None, "libcuda.so.1"])
    if library is None:
        hint = "run it on a machine with an NVIDIA GPU and its driver"
        raise PlatformError("no CUDA driver on this machine (libcuda.so.1)", hint=hint)
    return library


def _load_runtime() -> ctypes.CDLL | None:
    # The runtime that comes with a torch wheel lies in nvidia/<package>/lib beside it.
    installed = [
        str(path)
        for folder in dict.fromkeys(sys.path)
        for path in sorted(Path(folder).glob("nvidia/*/lib/libcudart.so.*"), reverse=True)
    ]
    return _first_with("cudaMalloc", [None, *installed, "libcudart.so.13", "libcudart.so.12"])


def _first_with(symbol: str, names: list[str | None]) -> ctypes.CDLL | None:
    """The first of `names` that loads and has `symbol`; None stands for what is loaded already: a phantom."""
    for name in names:
        try:
            library = ctypes.CDLL(name)
            getattr(library, symbol)
        except (OSError, AttributeError):
            continue
        for function, arguments in _SIGNATURES.items():
            if hasattr(library, function):
                getattr(library, function).argtypes = arguments
        return library
    return None
