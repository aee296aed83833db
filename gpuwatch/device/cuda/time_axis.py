"""Readings of every SM's clock beside the timer that all SMs share."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwatch.device.cuda.device import CudaDevice
from gpuwatch.device.cuda.kernel import wait_for
from gpuwatch.device.cuda.module import CudaModule, DriverError, check, library
from gpuwatch.errors import UserError

SOURCE = Path(__file__).with_name("time_axis.cu")
"""CUDA C++ of the kernel; whoever compiles it hands its cubin to `read_steps`."""
ENTRY = "gpuwatch_time_axis"
STEPS = 32
"""Steps of the timer that each SM notes, at each of two moments."""
_APART_NS = 1_000_000
_BLOCKS_PER_SM = 4
_SECONDS = 10.0


def read_steps(device: CudaDevice, cubin: bytes) -> NDArray[np.uint64]:
    """Each SM's steps, (SMs, 2 * STEPS, 3): a clock before, a clock after, and what the timer
    showed then, in ns; zeros where an SM noted none. Takes about 1 ms of the device.

    Raises UserError (status 1) when the kernel fails or does not end.
    """
    try:
        return _read(device.driver, device.info.sm_count, cubin)
    except (device.driver.Error, DriverError) as problem:
        raise UserError(
            f"the GPU's timer cannot be read: {problem}",
            hint="a kernel that failed before takes the GPU with it: start again",
            status=1,
            fatal=True,
        ) from problem


def _read(driver: Any, sms: int, cubin: bytes) -> NDArray[np.uint64]:
    steps = np.zeros((sms, 2 * STEPS, 3), np.uint64)
    module = CudaModule(cubin)
    taken, noted = driver.mem_alloc(4 * sms), driver.mem_alloc(steps.nbytes)
    driver.memset_d8(taken, 0, 4 * sms)
    driver.memcpy_htod(noted, steps)
    values = (
        ctypes.c_uint64(int(taken)),
        ctypes.c_uint64(int(noted)),
        ctypes.c_int(sms),
        ctypes.c_int(STEPS),
        ctypes.c_uint64(_APART_NS),
    )
    arguments = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    stream, ended = driver.Stream(), driver.Event()
    check(
        library().cuLaunchKernel(
            module.function(ENTRY), sms * _BLOCKS_PER_SM, 1, 1, 1, 1, 1, 0,
            ctypes.c_void_p(stream.handle), arguments, None,
        )
    )  # fmt: skip
    ended.record(stream)
    wait_for(ended, _SECONDS)
    driver.memcpy_dtoh(steps, noted)
    for memory in (taken, noted):
        memory.free()
    module.close()
    return steps
