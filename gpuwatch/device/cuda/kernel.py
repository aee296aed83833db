"""A kernel loaded on a GPU and bound to a launch."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwatch.device.base import Interrupt, KernelImage, RunResult, never
from gpuwatch.device.cuda.memory import LaunchMemory, MapMemory
from gpuwatch.device.cuda.module import CudaModule, DriverError, PreparedLaunch
from gpuwatch.device.cuda.variables import VariableMemory
from gpuwatch.errors import UserError
from gpuwatch.launch.model import Launch

_SPIN_SECONDS = 0.002
_POLL_SECONDS = 0.0002


class Instance:
    """Map buffers of its own, ready to be launched with; in a module of its own unless it is given
    another one's, which it does not close."""

    def __init__(
        self,
        driver: Any,
        image: KernelImage,
        launch: Launch,
        memory: LaunchMemory,
        maps: MapMemory,
        module: CudaModule | None = None,
    ) -> None:
        self.maps = maps
        self._driver = driver
        self._own = module is None
        self.module = module or CudaModule(image.cubin)
        contents = {name: memory.variable(name) for name in launch.globals}
        self._fill_variables(image, contents)
        self._variables = VariableMemory(driver, self.module, memory.variables)
        block = self._parameters(launch, memory)
        offsets = [slot.offset for slot in launch.slots]
        if image.takes_pointers:
            offsets.append(len(block))
            block += maps.addresses()
        function = self.module.function(image.entry)
        self.prepared = PreparedLaunch(function, launch, block, offsets)

    def _parameters(self, launch: Launch, memory: LaunchMemory) -> bytes:
        """The parameter block with the addresses of buffers and module variables in it."""
        block = bytearray(memory.parameters())
        for symbol in launch.symbol_relocations:
            place = self.module.variable(symbol.variable)
            if place is None:
                raise UserError(f"the loaded module lacks the variable {symbol.variable}", status=1)
            address = (place[0] + symbol.addend).to_bytes(8, "little")
            block[symbol.offset : symbol.offset + 8] = address
        return bytes(block)

    def _fill_variables(self, image: KernelImage, contents: dict[str, bytes]) -> None:
        if image.pointer_variable and not image.takes_pointers:
            contents[image.pointer_variable] = self.maps.addresses()
        for name, value in contents.items():
            place = self.module.variable(name)
            if place is not None:  # ptxas leaves out what this kernel never reads
                address, size = place
                self._driver.memcpy_htod(address, value[:size])

    def restore(self, stream: Any, changed: Collection[str]) -> None:
        """Puts back the first contents of module variables that launches change."""
        self._variables.restore(stream, changed)

    def variables(self) -> dict[str, NDArray[np.uint8]]:
        """Their contents now."""
        return self._variables.read()

    def changed_variables(self) -> frozenset[str]:
        """Those that hold something else than at first."""
        return self._variables.changed()

    def close(self) -> None:
        self._variables.close()
        self.maps.close()
        if self._own:
            self.module.close()


class CudaKernel:
    """Launches on a stream of its own, timed by events around the kernel alone."""

    def __init__(
        self,
        driver: Any,
        image: KernelImage,
        launch: Launch,
        memory: LaunchMemory,
        map_buffers: Sequence[int],
        fixed: Mapping[int, NDArray[np.uint8]],
        timeout: float,
    ) -> None:
        self.driver = driver
        self.image = image
        self.launch = launch
        self.memory = memory
        self.map_buffers = tuple(map_buffers)
        self.fixed = fixed
        self.timeout = timeout
        maps = MapMemory(driver, map_buffers, fixed)
        self._instance = Instance(driver, image, launch, memory, maps)
        self._resident_blocks = self._instance.prepared.resident_blocks()
        self._stream = driver.Stream()
        self._begin, self._end = driver.Event(), driver.Event()
        self._runs = 0
        self.changed: frozenset[str] = frozenset()
        """Module variables that the first launch changed: put back before each further one."""

    @property
    def resident_blocks(self) -> int:
        return self._resident_blocks

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    @property
    def shared_module(self) -> CudaModule | None:
        """Its module, if launches with other maps can be made of it too."""
        alike = self.image.takes_pointers and not self.memory.variables
        return self._instance.module if alike else None

    @property
    def prepared(self) -> PreparedLaunch:
        """Its launch, to be put into any stream."""
        return self._instance.prepared

    def ready(self) -> None:
        """It is."""

    def run(self, _interrupt: Interrupt = never, /) -> RunResult:
        """One launch; seconds are those between two events around it.

        Raises UserError (status 1) when the kernel faults or does not end in time.
        """
        try:
            self.memory.restore(self._stream, everything=self._runs == 0)
            self._instance.restore(self._stream, self.changed)
            self._instance.maps.clear(self._stream)
            self._begin.record(self._stream)
            self._instance.prepared.start(self._stream)
            self._end.record(self._stream)
            wait_for(self._end, self.timeout)
        except (self.driver.Error, DriverError) as problem:
            raise fault(self.launch, problem) from problem
        if self._runs == 0:
            self.memory.learn_changed()
            self.changed = self._instance.changed_variables()
        self._runs += 1
        return RunResult(self._end.time_since(self._begin) / 1e3)

    def read_map(self, index: int) -> NDArray[np.uint8]:
        return self._instance.maps.read(index)

    def read_buffers(self) -> list[NDArray[np.uint8]]:
        return self.memory.read()

    def read_variables(self) -> dict[str, NDArray[np.uint8]]:
        return self._instance.variables()

    def restore_variables(self, stream: Any) -> None:
        """For a launch of `prepared` in another stream."""
        self._instance.restore(stream, self.changed)

    def close(self) -> None:
        self._instance.close()


def wait_for(event: Any, timeout: float) -> None:
    """Polls a PyCUDA event: quickly at first. Raises UserError (status 1) after `timeout` s."""
    started = time.monotonic()
    while not event.query():
        waited = time.monotonic() - started
        if waited > timeout:
            raise hung(timeout)
        if waited > _SPIN_SECONDS:
            time.sleep(_POLL_SECONDS)


def hung(timeout: float) -> UserError:
    return UserError(
        f"the kernel did not end within {timeout:g} s",
        hint="give it longer with --timeout, or look for a loop that never ends",
        status=1,
        fatal=True,
    )


def fault(launch: Launch, problem: Exception) -> UserError:
    """A driver's error about a launch, in words."""
    return UserError(
        f"the kernel {launch.kernel} failed on the GPU: {problem}",
        detail=f"launch {launch.index}: grid {launch.grid}, block {launch.block}, "
        f"{launch.shared_bytes} bytes of dynamic shared memory",
        hint="ctrl+r in the live view starts again; "
        "`-d sim` names the thread and the source line of a bad access",
        status=1,
        fatal=True,
    )
