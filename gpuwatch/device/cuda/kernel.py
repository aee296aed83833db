"""A kernel loaded on a GPU and bound to a launch."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwatch.device.base import KernelImage, RunResult
from gpuwatch.device.cuda import occupancy
from gpuwatch.device.cuda.memory import LaunchMemory, MapMemory
from gpuwatch.errors import UserError
from gpuwatch.launch.model import Launch

_SPIN_SECONDS = 0.002
_POLL_SECONDS = 0.0002


class CudaKernel:
    """Launches on a stream of its own, timed by events around the kernel alone."""

    def __init__(
        self,
        driver: Any,
        image: KernelImage,
        launch: Launch,
        memory: LaunchMemory,
        maps: MapMemory,
        timeout: float,
    ) -> None:
        self._driver = driver
        self._launch = launch
        self._memory = memory
        self._maps = maps
        self._timeout = timeout
        self._resident_blocks = occupancy.resident_blocks(image, launch)
        self._stream = driver.Stream()
        self._begin, self._end = driver.Event(), driver.Event()
        self._module = _load_module(driver, image)
        self._function = self._module.get_function(image.entry)
        self._fill_globals(image)
        self._allow_shared_memory()
        block = memory.parameters()
        # One string of prepared bytes: PyCUDA packs several arguments without alignment.
        self._function.prepare([f"{len(block)}s"] if block else [])
        self._arguments = (block,) if block else ()
        self._runs = 0

    @property
    def resident_blocks(self) -> int:
        return self._resident_blocks

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    def run(self) -> RunResult:
        """One launch; seconds are those between two events around it.

        Raises UserError (status 1) when the kernel faults or does not end in time.
        """
        try:
            self._memory.restore(self._stream)
            self._maps.clear(self._stream)
            self._begin.record(self._stream)
            self._function.prepared_async_call(
                self._launch.grid,
                self._launch.block,
                self._stream,
                *self._arguments,
                shared_size=self._launch.shared_bytes,
            )
            self._end.record(self._stream)
            self._wait()
        except self._driver.Error as problem:
            raise _fault(self._launch, problem) from problem
        if self._runs == 0:
            self._memory.learn_changed()
        self._runs += 1
        return RunResult(self._end.time_since(self._begin) / 1e3)

    def read_map(self, index: int) -> NDArray[np.uint8]:
        return self._maps.read(index)

    def read_buffers(self) -> list[NDArray[np.uint8]]:
        return self._memory.read()

    def close(self) -> None:
        self._maps.close()

    def _wait(self) -> None:
        started = time.monotonic()
        while not self._end.query():
            waited = time.monotonic() - started
            if waited > self._timeout:
                raise UserError(
                    f"the kernel did not end within {self._timeout:g} s",
                    hint="give it longer with --timeout, or look for a loop that never ends",
                    status=1,
                )
            if waited > _SPIN_SECONDS:
                time.sleep(_POLL_SECONDS)

    def _fill_globals(self, image: KernelImage) -> None:
        contents = dict(self._launch.globals)
        if image.pointer_variable:
            contents[image.pointer_variable] = self._maps.addresses()
        for name, value in contents.items():
            try:
                address, size = self._module.get_global(name)
            except self._driver.LogicError:
                if name == image.pointer_variable:
                    raise
                continue  # ptxas left out a variable that this kernel never reads
            self._driver.memcpy_htod(address, value[:size])

    def _allow_shared_memory(self) -> None:
        if self._launch.shared_bytes > 48 << 10:
            attribute = self._driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._function.set_attribute(attribute, self._launch.shared_bytes)


def _load_module(driver: Any, image: KernelImage) -> Any:
    try:
        return driver.module_from_buffer(image.cubin)
    except driver.Error as problem:
        raise UserError(
            "the driver does not load this kernel",
            detail=str(problem),
            hint="a driver older than the toolkit, or a cubin for another GPU, answers so; "
            "see `gpuwatch doctor`",
            status=1,
        ) from problem


def _fault(launch: Launch, problem: Exception) -> UserError:
    return UserError(
        f"the kernel {launch.kernel} faulted on the GPU: {problem}",
        hint="the GPU's context is lost; restart the worker (ctrl+r in the live view); "
        "`-d sim` names the thread and the source line of a bad access",
        status=1,
    )
