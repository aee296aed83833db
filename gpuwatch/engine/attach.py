"""A kernel ready to run plain, and one with a probe woven in."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpuwatch.device.base import (
    Device,
    Interrupt,
    Interruptible,
    KernelImage,
    LoadedKernel,
    Pipeline,
    RunResult,
    never,
)
from gpuwatch.engine.program import WatchedProgram
from gpuwatch.engine.rates import Times
from gpuwatch.engine.readings import main_place
from gpuwatch.engine.reduction import reduction_cubin, reduction_of
from gpuwatch.errors import UserError
from gpuwatch.instrument import lay_out, weave
from gpuwatch.instrument.memory import check_memory
from gpuwatch.instrument.model import MapLayout, Woven
from gpuwatch.instrument.unmatched import UnmatchedError
from gpuwatch.launch import Launch
from gpuwatch.probe.model import Program
from gpuwatch.toolchain import Assembled, assemble

_WARM_UP = 20
"""Launches on a GPU before times count: clocks rise, caches fill."""
_PAIRS = 20
"""Plain and probed launches in turn on a GPU, so that the first ratio is of like with like."""
_LEAST_PAIRS = 3
_PATIENCE_SECONDS = 0.2
"""How long each of these may go on for a kernel of long launches."""


class GaveWay(Exception):  # noqa: N818 - nothing is wrong
    """A launch was ended early, as asked: what needed it is not attached."""


@dataclass(slots=True)
class Runner:
    """A loaded kernel with what ptxas said of it, and the kernel times (seconds) that count."""

    assembled: Assembled
    loaded: LoadedKernel
    wall_seconds: float = 0.0
    """Of the last launch of the warm-up."""
    last: RunResult | None = None
    """Result of the newest launch that was made on its own, not by a pipeline."""
    times: Times = field(default_factory=Times)

    def launch(self, interrupt: Interrupt = never) -> bool:
        """One launch; whether it came to its end. `interrupt` may end it early, where the device
        can do that."""
        if isinstance(self.loaded, Interruptible):
            result = self.loaded.run_unless(interrupt)
        else:
            result = self.loaded.run()
        self.last = result or self.last
        return result is not None

    def warm_up(self, modelled: bool, interrupt: Interrupt = never) -> None:
        """On a GPU, launches until clocks and caches are steady; a modelled device needs none.
        Raises GaveWay when a launch was ended early."""
        started = time.monotonic()
        for number in range(1 if modelled else _WARM_UP):
            begun = time.monotonic()
            if number and begun - started > _PATIENCE_SECONDS:
                break
            if not self.launch(interrupt):
                raise GaveWay
            self.wall_seconds = time.monotonic() - begun
        assert self.last is not None
        self.times.add([self.last.kernel_seconds])


@dataclass(slots=True)
class PlainKernel:
    """`outputs` are the launch's buffers after a plain run, `variables` the module's own."""

    runner: Runner
    launch: Launch
    outputs: list[NDArray[np.uint8]]
    variables: dict[str, NDArray[np.uint8]]


@dataclass(slots=True)
class ProbedKernel:
    runner: Runner
    program: Program
    woven: Woven
    layout: MapLayout
    outputs_identical: bool
    pipeline: Pipeline | None = None
    """Where the device launches back to back and sums up every launch by itself."""

    def close(self) -> None:
        if self.pipeline is not None:
            self.pipeline.close()
        self.runner.loaded.close()


def load_plain(watched: WatchedProgram, device: Device, mangled: str) -> PlainKernel:
    """Loads and runs the kernel as it is. Raises UserError as toolchain and device do."""
    launch = watched.launch(mangled)
    runner = _load(watched, device, watched.module.text, mangled, launch)
    runner.warm_up(device.info.modelled)
    loaded = runner.loaded
    return PlainKernel(runner, launch, loaded.read_buffers(), loaded.read_variables())


def load_probed(
    watched: WatchedProgram,
    device: Device,
    plain: PlainKernel,
    program: Program,
    interrupt: Interrupt = never,
) -> ProbedKernel:
    """Weaves, assembles, loads and runs; compares the outputs with the plain kernel's bit for
    bit. Raises UserError when the probe cannot attach, GaveWay when `interrupt` ended it."""
    launch = plain.launch
    woven = _weave(watched, launch, program)
    layout = _lay_out(watched, device, launch, woven)
    runner = _load(watched, device, woven.text, woven.entry, launch, woven, layout)
    if runner.loaded.resident_blocks < plain.runner.loaded.resident_blocks:
        runner, woven = _with_residents(watched, device, plain, program, runner, woven, layout)
    try:
        with naming(program):
            runner.warm_up(device.info.modelled, interrupt)
    except BaseException:
        runner.loaded.close()
        raise
    same = _same_results(plain, runner.loaded)
    if not device.info.modelled:
        _time_in_turn(plain.runner, runner)
    probed = ProbedKernel(runner, program, woven, layout, same)
    if not device.info.modelled:
        probed.pipeline = _pipeline(watched, device, plain, probed)
    return probed


def _with_residents(
    watched: WatchedProgram, device: Device, plain: PlainKernel, program: Program,
    runner: Runner, woven: Woven, layout: MapLayout,
) -> tuple[Runner, Woven]:  # fmt: skip
    """The kernel with as many blocks on an SM as the plain one has, if ptxas can do with so few
    registers without spilling more; else `runner` and `woven` as they are."""
    launch, wanted = plain.launch, plain.runner.loaded.resident_blocks
    shape = launch.grid, launch.block
    bounded = weave(watched.module, launch.kernel, program, shape, residents=wanted)
    assembled = assemble(watched.toolchain, bounded.text, watched.arch, bounded.entry)
    if assembled.spill_store_bytes > plain.runner.assembled.spill_store_bytes:
        return runner, woven
    runner.loaded.close()
    return _load(watched, device, bounded.text, bounded.entry, launch, bounded, layout), bounded


def assemble_probed(watched: WatchedProgram, mangled: str, program: Program) -> Woven:
    """Weaves and assembles, so that loading finds it done. Raises UserError when the probe cannot
    attach."""
    woven = _weave(watched, watched.launch(mangled), program)
    assemble(watched.toolchain, woven.text, watched.arch, woven.entry)
    return woven


def _weave(watched: WatchedProgram, launch: Launch, program: Program) -> Woven:
    try:
        return weave(watched.module, launch.kernel, program, (launch.grid, launch.block))
    except UnmatchedError as missing:
        kernel = watched.demangled(launch.kernel).partition("(")[0]
        raise UserError(
            f"{kernel} has no {missing.wanted}", hint=missing.hint, at=missing.at
        ) from missing


@contextmanager
def naming(program: Program) -> Iterator[None]:
    """Tells of errors in a launch that the probe was in it."""
    try:
        yield
    except UserError as problem:
        problem.message = f"with probe {program.name}: {problem.message}"
        raise


def _same_results(plain: PlainKernel, probed: LoadedKernel) -> bool:
    """Whether buffers and module variables are bit for bit what the plain kernel leaves."""
    buffers = zip(plain.outputs, probed.read_buffers(), strict=True)
    variables = probed.read_variables()
    shared = plain.variables.keys() & variables.keys()
    return all(np.array_equal(a, b) for a, b in buffers) and all(
        np.array_equal(plain.variables[name], variables[name]) for name in shared
    )


def _lay_out(watched: WatchedProgram, device: Device, launch: Launch, woven: Woven) -> MapLayout:
    """The maps; those with a dynamic capacity as large as a first launch, which only counts, says
    that they must be. Raises UserError when they take more than the limit."""
    sm_count, limit = device.info.sm_count, watched.options.map_limit
    layout = lay_out(woven, launch.grid, launch.block, sm_count=sm_count)
    check_memory(layout, limit)
    dynamic = [place for place in layout.places if place.map.dynamic]
    if not dynamic:
        return layout
    counting = _load(watched, device, woven.text, woven.entry, launch, woven, layout).loaded
    try:
        counting.run()
        counts = {
            place.map.name: counting.read_map(place.counts).view(np.uint32).copy()
            for place in dynamic
        }
    finally:
        counting.close()
    layout = lay_out(woven, launch.grid, launch.block, sm_count=sm_count, counts=counts)
    check_memory(layout, limit)
    return layout


def _pipeline(
    watched: WatchedProgram, device: Device, plain: PlainKernel, probed: ProbedKernel
) -> Pipeline | None:
    options = watched.options
    return device.pipeline(
        probed.runner.loaded,
        plain.runner.loaded,
        reduction_of(main_place(probed.layout)),
        reduction_cubin(watched.toolchain, watched.arch),
        probed.runner.times.median,
        plain_every=options.plain_every,
        max_rate=options.max_rate,
    )


def _time_in_turn(plain: Runner, probed: Runner) -> None:
    plain.times.clear()
    probed.times.clear()
    started = time.monotonic()
    for number in range(_PAIRS):
        if number >= _LEAST_PAIRS and time.monotonic() - started > _PATIENCE_SECONDS:
            break
        probed.times.add([probed.loaded.run().kernel_seconds])
        plain.times.add([plain.loaded.run().kernel_seconds])


def _load(
    watched: WatchedProgram,
    device: Device,
    text: str,
    entry: str,
    launch: Launch,
    woven: Woven | None = None,
    layout: MapLayout | None = None,
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
    if layout is None:
        return Runner(assembled, device.load(image, launch, ()))
    return Runner(assembled, device.load(image, launch, layout.buffers, layout.fixed))
