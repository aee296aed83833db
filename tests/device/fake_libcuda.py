"""A CUDA driver's library that answers by table."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any


@dataclass
class FakeGpu:
    name: str = "NVIDIA H200"
    memory: int = 140 << 30
    attributes: dict[int, int] = field(
        default_factory=lambda: {16: 132, 20: 0, 75: 9, 76: 0}
    )  # SMs, compute mode, capability


@dataclass
class FakeLibcuda:
    """`init` is what cuInit gives; `names` CUresults by number."""

    gpus: tuple[FakeGpu, ...] = (FakeGpu(),)
    version: int = 13000
    init: int = 0
    names: dict[int, bytes] = field(default_factory=lambda: {100: b"CUDA_ERROR_NO_DEVICE"})

    def cuInit(self, _flags: int) -> int:  # noqa: N802
        return self.init

    def cuDriverGetVersion(self, version: Any) -> int:  # noqa: N802
        return _give(version, self.version)

    def cuGetErrorName(self, status: int, name: Any) -> int:  # noqa: N802
        return _give(name, self.names.get(status))

    def cuDeviceGetCount(self, count: Any) -> int:  # noqa: N802
        return _give(count, len(self.gpus))

    def cuDeviceGet(self, device: Any, index: int) -> int:  # noqa: N802
        return _give(device, index)

    def cuDeviceGetName(self, name: Any, size: int, device: ctypes.c_int) -> int:  # noqa: N802
        name.value = self.gpus[device.value].name.encode()[: size - 1]
        return 0

    def cuDeviceTotalMem_v2(self, memory: Any, device: ctypes.c_int) -> int:  # noqa: N802
        return _give(memory, self.gpus[device.value].memory)

    def cuDeviceGetAttribute(self, value: Any, number: int, device: ctypes.c_int) -> int:  # noqa: N802
        return _give(value, self.gpus[device.value].attributes[number])


def _give(reference: Any, value: Any) -> int:
    reference._obj.value = value
    return 0
