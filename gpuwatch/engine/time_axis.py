"""The common time axis of a device's SMs, measured now and then."""

from __future__ import annotations

import time
from collections.abc import Callable

from gpuwatch.analysis.time_axis import TimeAxis, fit
from gpuwatch.device.base import Device
from gpuwatch.device.cuda import CudaDevice
from gpuwatch.device.cuda import time_axis as device_side
from gpuwatch.toolchain import Toolchain, assemble, compile_to_ptx

_KEPT_SECONDS = 2.0
"""How long a measurement holds: it takes a millisecond of the GPU."""


def _never(_axis: TimeAxis) -> bool:
    return False


class TimeAxisKeeper:
    """Measures a GPU's axis when it is asked for and older than two seconds, or too old for what
    is to be placed on it."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._axis: TimeAxis | None = None
        self._measured = float("-inf")
        self._helps = True

    def newest(
        self,
        toolchain: Toolchain,
        settle: Callable[[], None],
        stale: Callable[[TimeAxis], bool] = _never,
    ) -> TimeAxis | None:
        """The axis; None where the GPU's timer gives none, or the device keeps no clocks.

        `settle` ends the launches under way before a measurement. `stale` says of an axis that
        it should be measured again now; where that did not help, it waits for its two seconds.
        Raises as the device does.
        """
        info = self._device.info
        if info.modelled:
            if self._axis is None:
                self._axis = TimeAxis.shared(info.sm_count, info.clock_hz)
            return self._axis
        if not isinstance(self._device, CudaDevice):
            return None
        if self._is_old(stale):
            settle()
            self._axis = _after(measure(self._device, toolchain), self._axis)
            self._measured = time.monotonic()
            self._helps = self._axis is not None and not stale(self._axis)
        return self._axis

    def _is_old(self, stale: Callable[[TimeAxis], bool]) -> bool:
        if time.monotonic() - self._measured > _KEPT_SECONDS:
            return True
        return self._helps and self._axis is not None and stale(self._axis)


def measure(device: CudaDevice, toolchain: Toolchain) -> TimeAxis | None:
    """The axis of a GPU as of now; None where its timer gives none."""
    text = compile_to_ptx(toolchain, device_side.SOURCE, device.info.arch)
    cubin = assemble(toolchain, text, device.info.arch, device_side.ENTRY).cubin
    return fit(device_side.read_steps(device, cubin))


def measure_twice(device: CudaDevice, toolchain: Toolchain, seconds: float) -> TimeAxis | None:
    """The same, with the drift of the SMs over so many seconds."""
    former = measure(device, toolchain)
    time.sleep(seconds)
    return _after(measure(device, toolchain), former)


def _after(axis: TimeAxis | None, former: TimeAxis | None) -> TimeAxis | None:
    return axis if axis is None or former is None else axis.after(former)
