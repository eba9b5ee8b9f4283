"""How clusters of thread blocks fill a card: how many run at once, and which SMs they share; the driver API alone.

Libraries choose kernels and workspaces by it, and it differs from card to card of one model: which SMs are switched off
is a matter of the single chip.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, addressof, byref, c_int, c_size_t, c_uint, c_uint64, c_void_p, pointer
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotbed.gpu.cuda import ATTRIBUTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hotbed.gpu.cuda import Cuda

SIZES = range(1, 17)  # 16 blocks are the largest cluster of sm_90, by leave of the kernel

_CLUSTER_LAUNCH = 120  # CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH
_SHARED_BYTES = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_LARGE_CLUSTERS = 14  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
_CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
_THREADS = 128
_LAUNCHES = 40  # for each size; blocks land differently each time
_WAIT_CYCLES = 20_000  # so that no SM is free again before every block has one

# Each block writes the SM it runs on and its cluster, then stays there for `wait` cycles.
_KERNEL = b"""
.version 7.8
.target sm_90
.address_size 64
.visible .entry place(.param .u64 out, .param .u64 wait)
{
 .reg .pred %p<3>;
 .reg .u32 %r<5>;
 .reg .u64 %rd<9>;
 mov.u32 %r1, %tid.x;
 setp.ne.u32 %p1, %r1, 0;
 @%p1 bra done;
 ld.param.u64 %rd1, [out];
 ld.param.u64 %rd2, [wait];
 cvta.to.global.u64 %rd3, %rd1;
 mov.u32 %r2, %ctaid.x;
 mov.u32 %r3, %smid;
 mov.u32 %r4, %clusterid.x;
 mul.wide.u32 %rd4, %r2, 8;
 add.s64 %rd5, %rd3, %rd4;
 st.global.u32 [%rd5], %r3;
 st.global.u32 [%rd5+4], %r4;
 mov.u64 %rd6, %clock64;
spin:
 mov.u64 %rd7, %clock64;
 sub.s64 %rd8, %rd7, %rd6;
 setp.lt.u64 %p2, %rd8, %rd2;
 @%p2 bra spin;
done:
 ret;
}
\0"""


@dataclass(frozen=True)
class Clusters:
    """Clusters on one card with one block to an SM.

    `active[c - 1]` clusters of c blocks run at once. `groups` are the SMs that were seen to share clusters, as group sizes,
    largest first, summing to the SMs of the card; empty where the placement could not be read.
    """

    active: tuple[int, ...]
    groups: tuple[int, ...]


class _Attribute(Structure):
    """CUlaunchAttribute."""

    _fields_ = [("id", c_int), ("padding", c_int), ("value", c_uint * 16)]


class _Launch(Structure):
    """CUlaunchConfig."""

    _fields_ = [
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared_bytes", c_uint),
        ("stream", c_void_p),
        ("attributes", POINTER(_Attribute)),
        ("attribute_count", c_uint),
    ]


def measure_clusters(cuda: Cuda) -> Clusters | None:
    """The clusters of the device of `cuda`, whose context is open; None where it has none (before sm_90).

    Takes about a tenth of a second. Raises PlatformError when a call fails.
    """
    if not cuda.attribute(_CLUSTER_LAUNCH):
        return None
    kernel = _Kernel(cuda)
    try:
        active = tuple(kernel.active(size) for size in SIZES)
        placed = (kernel.place(size, active[size - 1]) for size in SIZES[1:] for _ in range(_LAUNCHES))
        return Clusters(active, group_sizes((sms for launch in placed for sms in launch), active[0]))
    finally:
        kernel.close()


def group_sizes(clusters: Iterable[Sequence[int]], sm_count: int) -> tuple[int, ...]:
    """Sizes of the groups of SMs that `clusters`, each the SM numbers of one cluster, tie together; largest first.

    Empty unless the clusters touch exactly `sm_count` SMs.
    """
    groups: dict[int, set[int]] = {}
    for sms in clusters:
        merged = set(sms).union(*(groups.get(sm, ()) for sm in sms))
        groups.update(dict.fromkeys(merged, merged))
    if len(groups) != sm_count:
        return ()
    distinct = {id(group): len(group) for group in groups.values()}
    return tuple(sorted(distinct.values(), reverse=True))


class _Kernel:
    """The kernel on the device, set up so that one block fills an SM, and the memory that it writes to."""

    def __init__(self, cuda: Cuda) -> None:
        self.cuda = cuda
        self.shared_bytes = cuda.attribute(ATTRIBUTES["shared_memory_optin_bytes"])
        self.module, self.function, self.buffer = c_void_p(), c_void_p(), c_uint64()
        cuda.call("cuModuleLoadData", byref(self.module), _KERNEL)
        cuda.call("cuModuleGetFunction", byref(self.function), self.module, b"place")
        cuda.call("cuFuncSetAttribute", self.function, _LARGE_CLUSTERS, 1)
        cuda.call("cuFuncSetAttribute", self.function, _SHARED_BYTES, self.shared_bytes)
        self.buffer_bytes = 8 * cuda.attribute(ATTRIBUTES["sm_count"])
        cuda.call("cuMemAlloc_v2", byref(self.buffer), c_size_t(self.buffer_bytes))

    def active(self, size: int) -> int:
        """How many clusters of `size` blocks run at once; 0 where the card has no such clusters."""
        count = c_int()
        code = self.cuda.entry("cuOccupancyMaxActiveClusters")(
            byref(count), self.function, byref(self._launch(size, size))
        )
        return count.value if code == 0 else 0

    def place(self, size: int, clusters: int) -> list[list[int]]:
        """Runs as many clusters once: the SMs of each."""
        if not clusters:
            return []
        blocks = size * clusters
        self.cuda.call("cuMemsetD8_v2", self.buffer, 0xFF, c_size_t(self.buffer_bytes))
        wait = c_uint64(_WAIT_CYCLES)
        arguments = (c_void_p * 2)(addressof(self.buffer), addressof(wait))
        self.cuda.call("cuLaunchKernelEx", byref(self._launch(size, blocks)), self.function, arguments, None)
        self.cuda.call("cuCtxSynchronize")
        host = (c_uint * (2 * blocks))()
        self.cuda.call("cuMemcpyDtoH_v2", host, self.buffer, c_size_t(ctypes.sizeof(host)))
        found: dict[int, list[int]] = {}
        for sm, cluster in zip(host[::2], host[1::2], strict=True):
            found.setdefault(cluster, []).append(sm)
        return list(found.values())

    def close(self) -> None:
        """Gives the memory and the module back."""
        self.cuda.call("cuMemFree_v2", self.buffer)
        self.cuda.call("cuModuleUnload", self.module)

    def _launch(self, size: int, blocks: int) -> _Launch:
        attribute = _Attribute(id=_CLUSTER_DIMENSION)
        attribute.value[0:3] = (size, 1, 1)
        return _Launch(
            grid=(blocks, 1, 1),
            block=(_THREADS, 1, 1),
            shared_bytes=self.shared_bytes,
            attributes=pointer(attribute),
            attribute_count=1,
        )
