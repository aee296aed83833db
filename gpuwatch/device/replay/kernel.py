"""The launches of one recorded kernel, run again by reading them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpuwatch.analysis.warps import SM_FIELDS
from gpuwatch.device.base import DeviceInfo, Interrupt, RunResult, never
from gpuwatch.instrument.model import MapLayout
from gpuwatch.trace.buffers import ResultBuffers, layout_of_result
from gpuwatch.trace.facts import DeviceFacts, KernelFacts
from gpuwatch.trace.folder import Trace


def replay_info(facts: DeviceFacts) -> DeviceInfo:
    """The device that was recorded on, as one of kind "replay"."""
    return DeviceInfo(
        name=facts.name,
        kind="replay",
        profile=facts.profile or facts.kind,
        arch=facts.arch,
        sm_count=facts.sm_count,
        warps_per_sm=facts.warps_per_sm,
        clock_hz=facts.clock_hz,
        modelled=facts.modelled,
    )


class ReplayKernel:
    """A kernel whose runs are the recorded launches `numbers` of a trace, in turn.

    `position` is the place in `numbers` of the launch that ran last, -1 before the first. Behind
    the last one comes the first again. Raises UserError for files that are not as they should be.
    """

    def __init__(self, trace: Trace, numbers: Sequence[int]) -> None:
        self._trace = trace
        self.numbers = tuple(numbers)
        first = trace.launch(self.numbers[0])
        self.facts: KernelFacts = first.kernel
        self.layout: MapLayout = layout_of_result(first.kernel, first.result)
        self.position = -1
        self._buffers: ResultBuffers | None = None

    @property
    def resident_blocks(self) -> int:
        return self.facts.figures.resident_probed

    @property
    def notes(self) -> tuple[str, ...]:
        return self.facts.notes

    def ready(self) -> None:
        """It is."""

    def run(self, _interrupt: Interrupt = never, /) -> RunResult:
        """The next launch."""
        return self.run_at((self.position + 1) % len(self.numbers))

    def run_at(self, position: int) -> RunResult:
        """The launch at this place in `numbers`."""
        launch = self._trace.launch(self.numbers[position])
        layout = layout_of_result(launch.kernel, launch.result)
        if not _alike(layout, self.layout):
            raise launch.result.wrong("its maps lie otherwise than those of the first launch")
        self._buffers = ResultBuffers(launch.result, layout)
        self._buffers.check_sms(SM_FIELDS)
        self.position = position
        facts = launch.result.facts
        return RunResult(facts.kernel_seconds, facts.thread_instructions, facts.printed)

    def read_map(self, index: int) -> NDArray[np.uint8]:
        if self._buffers is None:
            raise RuntimeError("no launch was run yet")
        return self._buffers.read_map(index)

    def read_buffers(self) -> list[NDArray[np.uint8]]:
        """None: a trace keeps the records alone."""
        return []

    def close(self) -> None:
        self._buffers = None


def _alike(one: MapLayout, other: MapLayout) -> bool:
    return one.buffers == other.buffers and all(
        np.array_equal(content, other.fixed[index]) for index, content in one.fixed.items()
    )
