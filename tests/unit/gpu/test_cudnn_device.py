"""Reading cuDNN's private properties, against the installed cuDNN itself: no GPU is needed for a described device."""

from __future__ import annotations

import json
from ctypes import byref, c_int64, c_void_p
from typing import TYPE_CHECKING

import pytest

from hotbed.gpu import cudnn_device
from hotbed.gpu.cudnn_device import CudnnError, read_descriptor, read_device

if TYPE_CHECKING:
    import ctypes
    from pathlib import Path

DESCRIBED = {
    "maxGridSize": [2147483647, 65535, 65535],
    "maxBlockSize": [1024, 1024, 64],
    "regsPerBlock": 65536,
    "multiProcessorCount": 132,
    "warpSize": 32,
    "maxSharedMemoryPerBlock": 49152,
    "maxSharedMemoryPerBlockOptin": 232448,
    "reservedSharedMemoryPerBlock": 1024,
    "maxRegistersPerSM": 65536,
    "maxCtasPerSM": 32,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerSM": 2048,
    "pciDeviceId": 6,
    "isTccDriver": 0,
    "supportCoopLaunch": 1,
    "totalGlobalMem": 150109880320,
    "smClockRateKHz": 1980000,
    "memClockRateKHz": 3201000,
    "l2CacheSize": 62914560,
    "cudaDeviceId": 0,
    "deviceVer": 900,
    "driverVer": 13000,
    "deviceName": "NVIDIA H200",
}


@pytest.fixture
def cudnn() -> ctypes.CDLL:
    try:
        return cudnn_device._load()
    except CudnnError as error:
        pytest.skip(str(error))


def test_the_description_and_the_layout_of_a_described_device_are_read_back(cudnn: ctypes.CDLL) -> None:
    text, descriptor = json.dumps(DESCRIBED, separators=(",", ":")).encode(), c_void_p()
    assert cudnn.cudnnBackendCreateDescriptor(38, byref(descriptor)) == 0
    assert cudnn.cudnnBackendSetAttribute(descriptor, 2702, 24, c_int64(len(text)), text) == 0
    assert cudnn.cudnnBackendFinalize(descriptor) == 0
    device = read_descriptor(cudnn, descriptor)
    assert json.loads(device.json) == DESCRIBED
    # cuDNN gives a described sm_90 device one GPC of 18 SMs, and from 9.21 on the clusters that fit into it.
    assert device.sms_per_gpc == (18,)
    assert device.active_clusters in ((), tuple(18 // size for size in range(1, 17)))


def test_without_a_gpu_the_handle_is_refused_by_name(cudnn: ctypes.CDLL) -> None:
    with pytest.raises(CudnnError, match="cudnnCreate failed"):
        read_device(cudnn)


def test_bytes_that_are_not_recognised_give_no_layout(tmp_path: Path) -> None:
    assert cudnn_device._private(bytes(1024), json.dumps(DESCRIBED)) == ((), ())
