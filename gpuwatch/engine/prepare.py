"""From a source to kernels loaded on a device: the slow part, done once per kernel and probe."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpuwatch import instrument, ptx, toolchain
from gpuwatch.device.base import Device, KernelImage, LoadedKernel
from gpuwatch.errors import UserError
from gpuwatch.instrument.model import MapLayout, Woven
from gpuwatch.launch import capture
from gpuwatch.launch.model import Capture, Launch
from gpuwatch.probe.model import Program
from gpuwatch.ptx.model import Module
from gpuwatch.toolchain.model import Assembled, Toolchain

Progress = Callable[[str], None]

PLAIN_RUNS = {"cuda": 5, "sim": 1, "replay": 1}
"""Launches of the plain build that its median time is taken from."""


@dataclass(frozen=True, slots=True)
class Built:
    """A source compiled for a device, and what its program launched."""

    tools: Toolchain
    module: Module
    capture: Capture


@dataclass(frozen=True, slots=True)
class Plain:
    """A kernel without probes: its registers, its median seconds, its buffers after a launch."""

    launch: Launch
    registers: int
    seconds: float
    outputs: list[NDArray[np.uint8]]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A kernel with a probe woven in, loaded, and compared with the plain one."""

    program: Program
    woven: Woven
    layout: MapLayout
    assembled: Assembled
    loaded: LoadedKernel
    outputs_identical: bool


def build(
    source: Path, device: Device, arguments: Sequence[str], flags: Sequence[str], say: Progress
) -> Built:
    """Compiles `source` for `device` and runs its main() to see what it launches.

    Raises UserError for a source that does not exist, does not compile or has no main().
    """
    if source.suffix == ".ptx":
        raise UserError(
            f"{source.name} has no main(), so nothing says how its kernels are launched",
            hint="give a .cu file with a main() for now",
        )
    tools = toolchain.find()
    arch = device.info.arch
    say(f"compiling {source.name} with nvcc {tools.version} for {arch}")
    text = toolchain.compile_to_ptx(tools, source, arch, flags)
    module = ptx.parse(text, source=f"{source.name} (PTX)")
    say(f"running {source.name} to see its launches")
    seen = capture(tools, source, module, device.answers, arguments=arguments, flags=flags)
    return Built(tools, module, seen)


def first_launch(built: Built, kernel: str) -> Launch:
    """The captured launch of the kernel with this mangled name."""
    return next(launch for launch in built.capture.launches if launch.kernel == kernel)


def prepare_plain(built: Built, device: Device, launch: Launch, say: Progress) -> Plain:
    """Loads and runs the kernel as it is."""
    say("running the kernel without a probe")
    arch = device.info.arch
    text = built.module.text
    assembled = toolchain.assemble(built.tools, text, arch, launch.kernel)
    loaded = device.load(_image(launch.kernel, text, assembled), launch, ())
    try:
        runs = [loaded.run().kernel_seconds for _ in range(PLAIN_RUNS[device.info.kind])]
        outputs = loaded.read_buffers()
    finally:
        loaded.close()
    return Plain(launch, assembled.registers, statistics.median(runs), outputs)


def prepare_probed(
    built: Built, device: Device, plain: Plain, program: Program, say: Progress
) -> Prepared:
    """Weaves, assembles, loads, launches once and compares the outputs bit for bit.

    Raises UserError when the probe cannot attach, or the probed kernel does not run.
    """
    say(f"attaching {program.name}")
    launch = plain.launch
    woven = instrument.weave(built.module, launch.kernel, program)
    layout = instrument.lay_out(woven, launch.grid, launch.block)
    assembled = toolchain.assemble(built.tools, woven.text, device.info.arch, launch.kernel)
    image = _image(launch.kernel, woven.text, assembled, woven.pointer_variable)
    loaded = device.load(image, launch, layout.buffers)
    try:
        loaded.run()
        same = _identical(plain.outputs, loaded.read_buffers())
    except BaseException:
        loaded.close()
        raise
    return Prepared(program, woven, layout, assembled, loaded, same)


def _image(entry: str, text: str, assembled: Assembled, pointers: str = "") -> KernelImage:
    return KernelImage(
        entry, text, assembled.cubin, assembled.registers, assembled.shared_bytes, pointers
    )


def _identical(first: list[NDArray[np.uint8]], second: list[NDArray[np.uint8]]) -> bool:
    return len(first) == len(second) and all(map(np.array_equal, first, second))
