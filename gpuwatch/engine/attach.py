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
_BRIEF_SECONDS = 0.01
"""A plain kernel this short is unlikely to run for 2^32 cycles when it is probed."""
_LONG_SECONDS = 1.0
"""Less than 2^32 cycles of any GPU's clock."""
_PATIENCE_SECONDS = 0.2
"""How long each of these may go on for a kernel of long launches."""


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
    whole: bool = False
    """Whether the newest of these launches came to its end: only then do the maps hold one."""

    def launch(self, interrupt: Interrupt) -> RunResult:
        """One launch. Raises as `LoadedKernel.run` does."""
        self.whole = False
        self.last = self.loaded.run(interrupt)
        self.whole = True
        return self.last

    def warm_up(self, modelled: bool, interrupt: Interrupt = never) -> None:
        """On a GPU, launches until clocks and caches are steady; a modelled device needs none.
        Raises as `launch` does."""
        started = time.monotonic()
        self.loaded.ready()
        for number in range(1 if modelled else _WARM_UP):
            begun = time.monotonic()
            if number and begun - started > _PATIENCE_SECONDS:
                break
            last = self.launch(interrupt)
            self.wall_seconds = time.monotonic() - begun
        self.times.add([last.kernel_seconds])


@dataclass(frozen=True, slots=True)
class Results:
    """What a run left: the launch's buffers, and the module's own variables."""

    buffers: list[NDArray[np.uint8]]
    variables: dict[str, NDArray[np.uint8]]

    def same_as(self, other: Results) -> bool:
        """Whether both are bit for bit the same, of variables those that both have."""
        shared = self.variables.keys() & other.variables.keys()
        return all(
            np.array_equal(mine, its) for mine, its in zip(self.buffers, other.buffers, strict=True)
        ) and all(np.array_equal(self.variables[n], other.variables[n]) for n in shared)


@dataclass(slots=True)
class PlainKernel:
    runner: Runner
    launch: Launch
    results: Results | None = None
    """None until it has run."""
    brief: bool = False
    """Whether probes may take it that no thread runs for 2^32 cycles."""


@dataclass(slots=True)
class ProbedKernel:
    runner: Runner
    program: Program
    woven: Woven
    layout: MapLayout
    outputs_identical: bool | None
    """None until it was compared."""
    results: Results | None = None
    """Of its first launch, until they are compared."""
    pipeline: Pipeline | None = None
    """Where the device launches back to back and sums up every launch by itself."""
    paired: bool = False
    """Whether its times, and those of the plain kernel beside them, are the pipeline's pairs."""

    def close(self) -> None:
        if self.pipeline is not None:
            self.pipeline.close()
        self.runner.loaded.close()


def load_plain(watched: WatchedProgram, device: Device, mangled: str) -> PlainKernel:
    """Loads and runs the kernel as it is. Raises UserError as toolchain and device do."""
    plain = open_plain(watched, device, mangled)
    with _closed_on_error(plain.runner):
        run_plain(plain, device)
    return plain


def open_plain(watched: WatchedProgram, device: Device, mangled: str) -> PlainKernel:
    """Loads the kernel as it is. Raises as `load_plain` does."""
    launch = watched.launch(mangled)
    return PlainKernel(_load(watched, device, watched.module.text, mangled, launch), launch)


def run_plain(plain: PlainKernel, device: Device, interrupt: Interrupt = never) -> None:
    """Runs it for the first time. Raises as `LoadedKernel.run` does."""
    plain.runner.warm_up(device.info.modelled, interrupt)
    plain.brief = not device.info.modelled and plain.runner.times.median < _BRIEF_SECONDS
    plain.results = _results(plain.runner.loaded)


def _results(loaded: LoadedKernel) -> Results:
    return Results(loaded.read_buffers(), loaded.read_variables())


def load_probed(
    watched: WatchedProgram,
    device: Device,
    plain: PlainKernel,
    program: Program,
    interrupt: Interrupt = never,
) -> ProbedKernel:
    """Weaves, assembles, loads and runs; compares the outputs with the plain kernel's if that has
    run. Of a brief kernel on a GPU the quicker one of two weavings is kept: which that is, hangs on
    how ptxas orders the kernel's own instructions. Raises UserError when the probe cannot attach,
    GaveWay when `interrupt` ended it."""
    probed = _loaded(watched, device, plain, program, interrupt, brief=plain.brief)
    if plain.brief:
        with _closed_on_error(probed.runner):
            other = _loaded(watched, device, plain, program, interrupt)
        probed = _quicker(probed, other)
    if not device.info.modelled:
        with _closed_on_error(probed.runner), naming(program):
            probed.pipeline = _pipeline(watched, device, plain, probed)
    return probed


def _quicker(brief: ProbedKernel, other: ProbedKernel) -> ProbedKernel:
    """Closes the one that it does not give: also the brief one if it was not brief after all."""
    seconds = brief.runner.times.median
    keep, leave = brief, other
    if seconds > min(_LONG_SECONDS, other.runner.times.median):
        keep, leave = other, brief
    leave.close()
    return keep


def _loaded(
    watched: WatchedProgram,
    device: Device,
    plain: PlainKernel,
    program: Program,
    interrupt: Interrupt,
    *,
    brief: bool = False,
) -> ProbedKernel:
    launch = plain.launch
    woven = _weave(watched, launch, program, brief)
    layout = _lay_out(watched, device, launch, woven, program, interrupt)
    runner = _load(watched, device, woven.text, woven.entry, launch, woven, layout)
    with _closed_on_error(runner):
        bounded = _with_residents(watched, plain, program, runner, brief)
    if bounded is not None:
        runner.loaded.close()
        woven = bounded
        runner = _load(watched, device, woven.text, woven.entry, launch, woven, layout)
    with _closed_on_error(runner), naming(program):
        runner.warm_up(device.info.modelled, interrupt)
        probed = ProbedKernel(runner, program, woven, layout, None, _results(runner.loaded))
        compare_results(plain, probed)
        if not device.info.modelled:
            _time_in_turn(plain.runner, runner)
        return probed


@contextmanager
def _closed_on_error(runner: Runner) -> Iterator[None]:
    """But not after a fatal error: freeing would wait for ever, or fail again."""
    try:
        yield
    except BaseException as problem:
        if not (isinstance(problem, UserError) and problem.fatal):
            runner.loaded.close()
        raise


def _with_residents(
    watched: WatchedProgram, plain: PlainKernel, program: Program, runner: Runner, brief: bool
) -> Woven | None:
    """The kernel with as many blocks on an SM as the plain one has, if `runner` has fewer and
    ptxas can do with so few registers without spilling more."""
    launch, wanted = plain.launch, plain.runner.loaded.resident_blocks
    if runner.loaded.resident_blocks >= wanted:
        return None
    shape = launch.grid, launch.block
    bounded = weave(watched.module, launch.kernel, program, shape, residents=wanted, brief=brief)
    assembled = assemble(watched.toolchain, bounded.text, watched.arch, bounded.entry)
    spills = assembled.spill_store_bytes > plain.runner.assembled.spill_store_bytes
    return None if spills else bounded


def assemble_probed(
    watched: WatchedProgram, mangled: str, program: Program, plain: PlainKernel | None
) -> None:
    """Weaves and assembles, so that loading finds it done. Raises UserError when the probe cannot
    attach."""
    for brief in {False, plain is not None and plain.brief}:
        woven = _weave(watched, watched.launch(mangled), program, brief)
        assemble(watched.toolchain, woven.text, watched.arch, woven.entry)


def _weave(watched: WatchedProgram, launch: Launch, program: Program, brief: bool) -> Woven:
    shape = launch.grid, launch.block
    try:
        return weave(watched.module, launch.kernel, program, shape, brief=brief)
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


def compare_results(plain: PlainKernel, probed: ProbedKernel) -> None:
    """Notes whether the probed kernel left what the plain one did, if both have run."""
    if plain.results is not None and probed.results is not None:
        probed.outputs_identical = probed.results.same_as(plain.results)
        probed.results = None


def _lay_out(
    watched: WatchedProgram, device: Device, launch: Launch, woven: Woven, program: Program,
    interrupt: Interrupt,
) -> MapLayout:  # fmt: skip
    """The maps; those with a dynamic capacity as large as a first launch, which only counts, says
    that they must be. Raises UserError when they take more than the limit."""
    sm_count, limit = device.info.sm_count, watched.options.map_limit
    layout = lay_out(woven, launch.grid, launch.block, sm_count=sm_count)
    check_memory(layout, limit)
    dynamic = [place for place in layout.places if place.map.dynamic]
    if not dynamic:
        return layout
    counting = _load(watched, device, woven.text, woven.entry, launch, woven, layout)
    with _closed_on_error(counting), naming(program):
        counting.loaded.run(interrupt)
        counts = {
            place.map.name: counting.loaded.read_map(place.counts).view(np.uint32).copy()
            for place in dynamic
        }
    counting.loaded.close()
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
        takes_pointers=woven is not None and woven.takes_pointers,
    )
    if layout is None:
        return Runner(assembled, device.load(image, launch, ()))
    return Runner(assembled, device.load(image, launch, layout.buffers, layout.fixed))
