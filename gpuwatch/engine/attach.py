"""A kernel ready to run plain, and one with a probe woven in."""

from __future__ import annotations

import statistics
import time
from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpuwatch.device.base import Device, KernelImage, LoadedKernel, RunResult
from gpuwatch.engine.program import WatchedProgram
from gpuwatch.instrument import lay_out, weave
from gpuwatch.instrument.model import MapLayout, Woven
from gpuwatch.launch import Launch
from gpuwatch.probe.model import Program
from gpuwatch.toolchain import Assembled, assemble

_WARM_UP = 20
"""Launches on a GPU before times count: clocks rise, caches fill."""
_PAIRS = 20
"""Plain and probed launches in turn on a GPU, so that the first ratio is of like with like."""
_REMEMBERED = 101
"""Launches whose kernel times the medians are taken over."""


@dataclass(slots=True)
class Runner:
    """A loaded kernel with what ptxas said of it, and the kernel times (seconds) that count."""

    assembled: Assembled
    loaded: LoadedKernel
    wall_seconds: float = 0.0
    """Of the last launch of the warm-up."""
    last: RunResult | None = None
    """Result of that launch."""
    times: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))

    @property
    def seconds(self) -> float:
        """Median of the kernel times that count."""
        return statistics.median(self.times)

    def warm_up(self, modelled: bool) -> None:
        """On a GPU, launches until clocks and caches are steady; a modelled device needs none."""
        for _ in range(1 if modelled else _WARM_UP):
            begun = time.monotonic()
            result = self.loaded.run()
            self.wall_seconds = time.monotonic() - begun
        self.last = result
        self.times.append(result.kernel_seconds)


@dataclass(slots=True)
class PlainKernel:
    """`outputs` are the launch's buffers after a plain run."""

    runner: Runner
    launch: Launch
    outputs: list[NDArray[np.uint8]]


@dataclass(slots=True)
class ProbedKernel:
    runner: Runner
    program: Program
    woven: Woven
    layout: MapLayout
    outputs_identical: bool


def load_plain(watched: WatchedProgram, device: Device, mangled: str) -> PlainKernel:
    """Loads and runs the kernel as it is. Raises UserError as toolchain and device do."""
    launch = watched.launch(mangled)
    runner = _load(watched, device, watched.module.text, mangled, launch)
    runner.warm_up(device.info.modelled)
    return PlainKernel(runner, launch, runner.loaded.read_buffers())


def load_probed(
    watched: WatchedProgram, device: Device, plain: PlainKernel, program: Program
) -> ProbedKernel:
    """Weaves, assembles, loads and runs; compares the outputs with the plain kernel's bit for
    bit. Raises UserError when the probe cannot attach."""
    launch = plain.launch
    woven = weave(watched.module, launch.kernel, program)
    layout = lay_out(woven, launch.grid, launch.block)
    runner = _load(watched, device, woven.text, woven.entry, launch, woven, layout.buffers)
    runner.warm_up(device.info.modelled)
    outputs = runner.loaded.read_buffers()
    same = all(np.array_equal(a, b) for a, b in zip(plain.outputs, outputs, strict=True))
    if not device.info.modelled:
        _time_in_turn(plain.runner, runner)
    return ProbedKernel(runner, program, woven, layout, same)


def _time_in_turn(plain: Runner, probed: Runner) -> None:
    plain.times.clear()
    probed.times.clear()
    for _ in range(_PAIRS):
        time_pair(plain, probed, probed.loaded.run())


def time_pair(plain: Runner, probed: Runner, result: RunResult) -> None:
    """Counts the probed launch that just gave `result`, together with a plain one after it."""
    probed.times.append(result.kernel_seconds)
    plain.times.append(plain.loaded.run().kernel_seconds)


def _load(
    watched: WatchedProgram,
    device: Device,
    text: str,
    entry: str,
    launch: Launch,
    woven: Woven | None = None,
    buffers: tuple[int, ...] = (),
) -> Runner:
    assembled = assemble(watched.toolchain, text, watched.arch, entry)
    image = KernelImage(
        entry=entry,
        ptx=text,
        cubin=assembled.cubin,
        registers=assembled.registers,
        shared_bytes=assembled.shared_bytes,
        pointer_variable=woven.pointer_variable if woven else "",
        block_private_prefix=woven.block_private_prefix if woven else "",
    )
    return Runner(assembled, device.load(image, launch, buffers))
