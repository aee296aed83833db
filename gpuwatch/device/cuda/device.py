"""An NVIDIA GPU as a device."""

from __future__ import annotations

import atexit
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwatch.device.base import DeviceInfo, KernelImage, LoadedKernel, Reduction
from gpuwatch.device.cuda.binding import import_pycuda
from gpuwatch.device.cuda.gpus import chosen, not_opened, shown_gpus
from gpuwatch.device.cuda.kernel import CudaKernel, fault
from gpuwatch.device.cuda.memory import LaunchMemory
from gpuwatch.device.cuda.module import DriverError
from gpuwatch.device.cuda.pipeline import CudaPipeline
from gpuwatch.device.cuda.reduction import Reducer
from gpuwatch.errors import UserError
from gpuwatch.launch.model import DeviceAnswers, Launch


class CudaDevice:
    """Holds the primary context of one GPU for the life of the process."""

    def __init__(self, driver: Any, index: int, timeout: float) -> None:
        self._driver = driver
        self._timeout = timeout
        self._handle = driver.Device(index)
        self._context = self._handle.retain_primary_context()
        self._context.push()
        # PyCUDA aborts the process when a context is still pushed at its end.
        atexit.register(self._leave)
        self._memories: list[LaunchMemory] = []
        self._answers = _answers(driver, self._handle)
        major, minor = self._handle.compute_capability()
        self._info = DeviceInfo(
            name=self._answers.name,
            kind="cuda",
            profile=str(index),
            arch=f"sm_{major}{minor}",
            sm_count=self._answers.sm_count,
            warps_per_sm=self._answers.threads_per_sm // 32,
            clock_hz=self._answers.clock_khz * 1e3,
            modelled=False,
        )

    @property
    def driver(self) -> Any:
        """PyCUDA's driver module; this device's context is current."""
        return self._driver

    @property
    def info(self) -> DeviceInfo:
        return self._info

    @property
    def answers(self) -> DeviceAnswers:
        return self._answers

    def load(
        self,
        image: KernelImage,
        launch: Launch,
        map_buffers: Sequence[int],
        fixed: Mapping[int, NDArray[np.uint8]] | None = None,
    ) -> CudaKernel:
        """Loads the cubin; the launch's buffers are uploaded once and shared by its kernels.

        Raises UserError (status 1) when the driver refuses the module or memory runs out.
        """
        try:
            memory = self._memory_of(launch, image)
            return CudaKernel(
                self._driver, image, launch, memory, map_buffers, fixed or {}, self._timeout
            )
        except (self._driver.Error, DriverError) as problem:
            if not _no_memory(problem):
                raise fault(launch, problem) from problem
            raise UserError(
                f"the GPU has no memory left for {launch.kernel}",
                detail=f"{sum(map_buffers):,} bytes of maps, "
                f"{2 * sum(b.nbytes for b in launch.buffers):,} bytes of buffers and copies",
                hint="close other programs on this GPU, or run the program at a smaller size",
                status=1,
            ) from problem

    def pipeline(
        self,
        probed: LoadedKernel,
        plain: LoadedKernel,
        reduction: Reduction,
        cubin: bytes,
        seconds: float,
        *,
        plain_every: int,
        max_rate: float,
    ) -> CudaPipeline:
        """`probed` and `plain` are kernels that this device loaded for one launch; `cubin` is
        the compiled `reduction.SOURCE`."""
        if not isinstance(probed, CudaKernel) or not isinstance(plain, CudaKernel):
            raise TypeError("a pipeline launches kernels of this device")
        return CudaPipeline(
            probed,
            plain,
            Reducer(self._driver, cubin, reduction, self._info.sm_count),
            seconds,
            plain_every=plain_every,
            max_rate=max_rate,
        )

    def close(self) -> None:
        for memory in self._memories:
            memory.close()
        self._memories = []
        atexit.unregister(self._leave)
        self._leave()

    def _leave(self) -> None:
        self._context.pop()
        self._context.detach()

    def _memory_of(self, launch: Launch, image: KernelImage) -> LaunchMemory:
        for memory in self._memories:
            if memory.launch is launch:
                return memory
        self._memories.append(LaunchMemory(self._driver, launch, image.ptx))
        return self._memories[-1]


def open_cuda(index: int = 0, timeout: float = 10.0) -> CudaDevice:
    """Opens GPU `index`; a launch longer than `timeout` seconds counts as hung.

    Raises UserError that says what is missing: the driver, PyCUDA, or that GPU.
    """
    gpu = chosen(shown_gpus(), index)
    driver = import_pycuda()
    try:
        return CudaDevice(driver, index, timeout)
    except driver.Error as problem:
        raise not_opened(gpu, str(problem)) from problem


def _no_memory(problem: Exception) -> bool:
    return "out of memory" in str(problem)


def _answers(driver: Any, handle: Any) -> DeviceAnswers:
    key = driver.device_attribute
    major, minor = handle.compute_capability()
    return DeviceAnswers(
        name=handle.name(),
        sm_count=handle.get_attribute(key.MULTIPROCESSOR_COUNT),
        threads_per_sm=handle.get_attribute(key.MAX_THREADS_PER_MULTIPROCESSOR),
        warp_size=handle.get_attribute(key.WARP_SIZE),
        threads_per_block=handle.get_attribute(key.MAX_THREADS_PER_BLOCK),
        shared_per_block=handle.get_attribute(key.MAX_SHARED_MEMORY_PER_BLOCK),
        shared_per_sm=handle.get_attribute(key.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
        registers_per_sm=handle.get_attribute(key.MAX_REGISTERS_PER_MULTIPROCESSOR),
        compute_major=major,
        compute_minor=minor,
        memory_bytes=handle.total_memory(),
        clock_khz=handle.get_attribute(key.CLOCK_RATE),
    )
