"""What cuDNN sees of a card: the description that it gives out, and the GPC layout that it measures and keeps to itself.

Stdlib only and importable by path alone: hotbed runs it in the interpreter whose cuDNN is asked.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from ctypes import byref, c_char_p, c_int, c_int64, c_void_p
from dataclasses import dataclass
from pathlib import Path

GPCS, SIZES = 24, 16

# Attributes and types of cuDNN's backend interface, documented numbers.
_DEVICE_PROPERTIES = 38
_OF_HANDLE, _AS_JSON = 2701, 2702
_TYPE_HANDLE, _TYPE_CHAR = 0, 24

# The properties are a private struct in which the device and the driver version are neighbours, and the device's name comes
# last. Places in ints from the device version: (name, SMs per GPC, active clusters or None), by version of cuDNN.
_ARRANGEMENTS = (
    (26, 2, None),  # 9.9 to 9.18
    (42, 2, 26),  # 9.19, 9.20
    (58, 2, 26),  # 9.21 to 9.23
    (59, 3, 27),  # 9.24
)
_WINDOW_BYTES = 1024


class CudnnError(RuntimeError):
    """cuDNN is not here, or did not answer."""


@dataclass(frozen=True)
class CudnnDevice:
    """The current device as cuDNN has it. The tuples are empty where its private part was not recognised.

    `sms_per_gpc` are the SMs of each GPC; `active_clusters[c - 1]` clusters of c blocks run at once.
    """

    version: int
    json: str
    sms_per_gpc: tuple[int, ...]
    active_clusters: tuple[int, ...]


def read_device(library: ctypes.CDLL | None = None) -> CudnnDevice:
    """The device of the current CUDA context, through a real handle; some tenths of a second.

    Raises CudnnError when there is no cuDNN or a call fails.
    """
    library = library or _load()
    handle, descriptor = c_void_p(), c_void_p()
    _check("cudnnCreate", library.cudnnCreate(byref(handle)))
    create = library.cudnnBackendCreateDescriptor(_DEVICE_PROPERTIES, byref(descriptor))
    _check("cudnnBackendCreateDescriptor", create)
    given = library.cudnnBackendSetAttribute(descriptor, _OF_HANDLE, _TYPE_HANDLE, c_int64(1), byref(handle))
    _check("cudnnBackendSetAttribute", given)
    _check("cudnnBackendFinalize", library.cudnnBackendFinalize(descriptor))
    found = read_descriptor(library, descriptor)
    library.cudnnBackendDestroyDescriptor(descriptor)
    library.cudnnDestroy(handle)
    return found


def read_descriptor(library: ctypes.CDLL, descriptor: c_void_p) -> CudnnDevice:
    """What a finalized descriptor of device properties holds. Raises CudnnError when it gives no description."""
    text, length = ctypes.create_string_buffer(8192), c_int64()
    size = c_int64(len(text))
    got = library.cudnnBackendGetAttribute(descriptor, _AS_JSON, _TYPE_CHAR, size, byref(length), text)
    _check("cudnnBackendGetAttribute", got)
    described = text.raw[: length.value].rstrip(b"\0").decode()
    sms, clusters = _private(_mapped(descriptor.value or 0, _WINDOW_BYTES), described)
    return CudnnDevice(library.cudnnGetVersion(), described, sms, clusters)


def _private(raw: bytes, described: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(SMs per GPC, active clusters) out of the bytes of a descriptor, () for what they do not show."""
    facts = json.loads(described)
    pair, name = (facts["deviceVer"], facts["driverVer"]), facts["deviceName"].encode()
    ints = memoryview(raw[: len(raw) // 4 * 4]).cast("i")
    for at in range(len(ints) - 1):
        if (ints[at], ints[at + 1]) != pair:
            continue
        for name_at, gpc_at, cluster_at in _ARRANGEMENTS:
            if raw[4 * (at + name_at) :].startswith(name):
                sms = tuple(n for n in ints[at + gpc_at : at + gpc_at + GPCS] if n)
                clusters = ints[at + cluster_at : at + cluster_at + SIZES] if cluster_at else ()
                return sms, tuple(clusters) if any(clusters) else ()
    return (), ()


def _mapped(address: int, size_bytes: int) -> bytes:
    """Bytes of this process's own memory from `address` on, as far as pages are mapped."""
    read = bytearray()
    file = os.open("/proc/self/mem", os.O_RDONLY)
    try:
        while len(read) < size_bytes:
            start = address + len(read)
            read += os.pread(file, min(4096 - start % 4096, size_bytes - len(read)), start)
    except OSError:
        pass  # the page behind is not mapped
    finally:
        os.close(file)
    return bytes(read)


def _load() -> ctypes.CDLL:
    installed = [
        str(path) for folder in sys.path for path in Path(folder).glob("nvidia/cudnn/lib/libcudnn.so.9")
    ]
    for name in (*installed, "libcudnn.so.9"):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        library.cudnnGetErrorString.restype = c_char_p
        return library
    raise CudnnError("no libcudnn.so.9 in this interpreter's folders")


def _check(call: str, status: int) -> None:
    if status:
        raise CudnnError(f"{call} failed with status {c_int(status).value}")
