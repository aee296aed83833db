"""A kernel loaded on the simulated device: its memory, its machine code, its launches."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpuwatch import ptx
from gpuwatch.device.base import GaveWay, Interrupt, KernelImage, RunResult, never
from gpuwatch.device.sim.arena import Arena, Plan, place_variables
from gpuwatch.device.sim.balance import Sample, balance
from gpuwatch.device.sim.codegen import generate
from gpuwatch.device.sim.compile import Code
from gpuwatch.device.sim.console import Console
from gpuwatch.device.sim.costs import Costs, Load, resource_costs
from gpuwatch.device.sim.exactness import inexact
from gpuwatch.device.sim.faults import Fault, Scene, describe
from gpuwatch.device.sim.frame import local_stride, warp_bytes
from gpuwatch.device.sim.initial import first_contents
from gpuwatch.device.sim.layout import TAG_COUNT, FaultKind, LaunchField, WarpField, WorkerField
from gpuwatch.device.sim.linking import build_program, code_addresses
from gpuwatch.device.sim.occupancy import resident_blocks, resident_warps
from gpuwatch.device.sim.order import must_run_serially
from gpuwatch.device.sim.profiles import Profile
from gpuwatch.device.sim.program import align_up
from gpuwatch.device.sim.refused_launches import refuse
from gpuwatch.device.sim.schedule import BlockScheduler, kernel_cycles
from gpuwatch.device.sim.standing import standing
from gpuwatch.device.sim.workers import Worker, aligned
from gpuwatch.errors import UserError
from gpuwatch.launch.model import Launch
from gpuwatch.ptx.model import Function, Module

_Run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 7)
_LOOK_SECONDS = 0.02
"""Between two looks whether a launch shall end early."""


def find_entry(module: Module, name: str) -> Function:
    for function in module.entries():
        if function.name == name:
            return function
    names = ", ".join(f.name for f in module.entries())
    raise UserError(f"the module has no kernel '{name}'", hint=f"it has: {names}")


def _wait(jobs: Sequence[Future[None]], deadline: float, interrupt: Interrupt) -> bool:
    """Waits until all have ended, it is `deadline`, or `interrupt` says so; whether it does."""
    while (left := deadline - time.monotonic()) > 0:
        if interrupt():
            return True
        if not wait(jobs, min(left, _LOOK_SECONDS)).not_done:
            return False
    return False


class SimKernel:
    """See `LoadedKernel`. `timeout` is in seconds of wall time."""

    def __init__(
        self,
        profile: Profile,
        image: KernelImage,
        launch: Launch,
        map_buffers: Sequence[int],
        fixed: Mapping[int, NDArray[np.uint8]],
        *,
        threads: int,
        timeout: float,
    ) -> None:
        self._profile = profile
        self._launch = launch
        self._fixed = fixed
        self._timeout = timeout
        self._module = ptx.parse(image.ptx, f"{image.entry}.ptx")
        function = find_entry(self._module, image.entry)
        self._program = build_program(self._module, function)
        shared = self._program.shared_bytes + launch.shared_bytes
        self._residency = resident_blocks(
            profile, launch.threads_per_block, image.registers, shared
        )
        refuse(launch, self._program, profile, self._residency)
        self._place_memory(image, map_buffers)
        symbols = code_addresses(self._module)
        symbols |= {name: place.address for name, place in self._variables.items()}
        self._initial = first_contents(self._module, self._variables, symbols)
        self._text = generate(self._module, self._program, symbols)
        self._code: Code | None = None
        warps = resident_warps(
            profile, self._residency.blocks, launch.blocks, launch.warps_per_block
        )
        footprint = sum(buffer.nbytes for buffer in launch.buffers)
        load = Load(launch.blocks, self._residency.blocks, warps, footprint)
        self._costs = resource_costs(self._program, profile, load)
        self._balanced = False
        local = local_stride(self._program) * 32 * launch.warps_per_block
        suspended = warp_bytes(self._program) * launch.warps_per_block
        self._strides = strides = [align_up(size, 64) for size in (shared, local, suspended)]
        count = 1 if must_run_serially(self._program, image.block_private_prefix) else threads
        resident = profile.sm_count * self._residency.blocks
        slots = min(launch.blocks, resident) if self._program.polls else 1
        self._workers = [Worker(strides, slots) for _ in range(count)]
        self._pool = ThreadPoolExecutor(count)
        self._fill_launch(shared, strides)

    @property
    def resident_blocks(self) -> int:
        return self._residency.blocks

    @property
    def notes(self) -> tuple[str, ...]:
        used = inexact(self._program.instructions)
        notes = ["cycles are modelled"]
        if used:
            notes.append(f"not bit-exact to hardware: {', '.join(used)}")
        return tuple(notes)

    def _place_memory(self, image: KernelImage, map_buffers: Sequence[int]) -> None:
        plan = Plan()
        # Memory may hold addresses of buffers and variables: those must be the plain kernel's.
        buffers = self._launch.buffers
        self._buffers = [plan.take(f"buffer {k}", b.nbytes) for k, b in enumerate(buffers)]
        self._pointers = image.pointer_variable
        self._variables = place_variables(plan, self._module, self._pointers)
        self._maps = [plan.take(f"map {k}", size) for k, size in enumerate(map_buffers)]
        self._grid_state = plan.take("the grid barrier", 64) if self._launch.cooperative else None
        self._arena = Arena(plan)
        self._parameters = aligned(
            max(8, self._program.parameter_bytes, len(self._launch.parameters))
        )
        given = np.frombuffer(self._launch.parameters, np.uint8)
        self._parameters[: given.size] = given
        for item in self._launch.relocations:
            self._put_address(item.offset, self._buffers[item.buffer].address + item.addend)
        for symbol in self._launch.symbol_relocations:
            place = self._variables[symbol.variable]
            self._put_address(symbol.offset, place.address + symbol.addend)
        if self._pointers in self._program.parameters:
            first = self._program.parameters[self._pointers]
            for number, place in enumerate(self._maps):
                self._put_address(first + 8 * number, place.address)

    def _put_address(self, offset: int, address: int) -> None:
        place = self._parameters[offset : offset + 8]
        place[:] = np.frombuffer(address.to_bytes(8, "little"), np.uint8)

    def _fill_launch(self, shared: int, strides: Sequence[int]) -> None:
        launch = self._launch
        self._block = aligned(LaunchField.COSTS + 16 * len(self._program.blocks))
        self._put(np.int32, LaunchField.BLOCK, *launch.block, *launch.grid)
        self._put(np.int64, LaunchField.ARENA_DELTA, self._arena.delta, self._arena.size)
        self._put(np.int32, LaunchField.SM_COUNT, self._profile.sm_count)
        self._put(np.float64, LaunchField.TIMER_SCALE, 1e9 / self._profile.clock_hz)
        self._put(np.int64, LaunchField.SHARED_BYTES, shared)
        self._put(np.int32, LaunchField.WARPS, launch.warps_per_block, launch.threads_per_block)
        self._put(np.int64, LaunchField.SHARED_STRIDE, *strides)
        if self._grid_state is not None:
            self._put(np.int64, LaunchField.GRID_STATE, self._grid_state.address)
        self._console = Console(self._arena, self._program.local_bytes)
        printer = ctypes.cast(self._console.function, ctypes.c_void_p).value or 0
        self._put(np.int64, LaunchField.PRINT, printer)
        self._put_costs(self._costs.highest())

    def _put_costs(self, costs: Costs) -> None:
        events = (costs.wavefront, costs.sector, costs.conflict, costs.atomic, costs.barrier)
        self._put(np.int64, LaunchField.WAVEFRONT_CYCLES, *events)
        self._put(np.int64, LaunchField.WRITTEN_CYCLES, costs.written)
        self._put(np.int64, LaunchField.COSTS, *costs.blocks, *costs.misses)

    def _put(self, kind: type[np.generic], field: int, *values: float) -> None:
        data = np.array(values, kind).view(np.uint8)
        self._block[field : field + data.size] = data

    def _restore(self) -> None:
        """Buffers and variables as at the time of the launch, maps zeroed."""
        arena = self._arena
        for place, content in zip(self._buffers, self._launch.buffers, strict=True):
            arena.write(place, content)
        for index, place in enumerate(self._maps):
            if index in self._fixed:
                arena.write(place, self._fixed[index])
            else:
                arena.view(place)[:] = 0
        self._restore_variables()
        self._restore_pointers()

    def _restore_variables(self) -> None:
        arena = self._arena
        states = [self._grid_state] if self._grid_state is not None else []
        for place in [*self._variables.values(), *states]:
            arena.view(place)[:] = 0
        for name, content in self._initial.items():
            arena.write(self._variables[name], content)
        for name, value in self._launch.globals.items():
            if name in self._variables:
                arena.write(self._variables[name], value)
        if self._pointers in self._variables and self._maps:
            maps = np.array([place.address for place in self._maps], np.uint64)
            arena.write(self._variables[self._pointers], maps.view(np.uint8))

    def _restore_pointers(self) -> None:
        """Addresses of buffers into the buffers and variables that held such."""
        arena, launch = self._arena, self._launch
        addresses = [place.address for place in self._buffers]
        for index, pointers in launch.buffer_relocations.items():
            pointers.write(arena.view(self._buffers[index]), addresses)
        for name, pointers in launch.global_relocations.items():
            if name in self._variables:
                pointers.write(arena.view(self._variables[name]), addresses)

    def ready(self) -> None:
        """Makes the machine code."""
        if self._code is None:
            self._code = Code(self._text)
            self._text = ""
            self._run = _Run(self._code.address)

    def run(self, interrupt: Interrupt = never, /) -> RunResult:
        self.ready()
        self._balance(interrupt)
        self._begin()
        profile = self._profile
        scheduler = BlockScheduler(profile.sm_count, self._residency.blocks, profile.block_overhead)
        deadline = time.monotonic() + self._timeout
        first = 0
        while first < self._launch.blocks:
            first += self._run_wave(scheduler, first, deadline, interrupt)
        self._check_overrun()
        end = max(scheduler.last_end, self._atomic_cycles())
        cycles = kernel_cycles(end, profile.launch_overhead)
        executed = sum(w.read(np.int64, WorkerField.INSTRUCTIONS)[0] for w in self._workers)
        return RunResult(cycles / profile.clock_hz, executed, self._console.text())

    def _begin(self) -> None:
        self._restore()
        self._console.reset()
        for worker in self._workers:
            worker.reset()

    def _balance(self, interrupt: Interrupt) -> None:
        """Before the first launch: what bounds it. Blocks that wait for others cannot run alone,
        and one that faults shall fault in its launch."""
        if self._balanced or self._program.polls or self._launch.cooperative:
            return
        deadline = time.monotonic() + self._timeout
        sample = partial(self._sample, deadline, interrupt)
        try:
            costs = balance(self._costs, self._launch.blocks, sample)
        except UserError:
            if time.monotonic() >= deadline:
                raise
            costs = self._costs.highest()
        self._put_costs(costs)
        self._workers[0].clear_local()
        self._balanced = True

    def _sample(
        self, deadline: float, interrupt: Interrupt, costs: Costs, blocks: Sequence[int]
    ) -> list[Sample]:
        """Runs single blocks; gives what each of their warps took."""
        self._put_costs(costs)
        self._begin()
        worker, size = self._workers[0], warp_bytes(self._program)
        samples, executed = [], 0
        for block in blocks:
            sm = np.array([block % self._profile.sm_count], np.int32)
            start = np.zeros(1, np.int64)
            self._run_blocks(block, sm, start, [worker], deadline, interrupt)
            warps = worker.parts[3][: size * self._launch.warps_per_block].reshape(-1, size)
            cycles = warps[:, WarpField.CYCLES :][:, :8].copy().view(np.int64)[:, 0]
            before, executed = executed, worker.read(np.int64, WorkerField.INSTRUCTIONS)[0]
            samples.append(Sample(cycles, executed - before))
        return samples

    def _atomic_cycles(self) -> int:
        """Cycles for which atomics keep the busiest line of the L2."""
        turns = sum(
            np.array(w.read(np.int64, WorkerField.ATOMICS, TAG_COUNT)) for w in self._workers
        )
        return round(int(np.max(turns)) * self._profile.latency["atomic_turn"])

    def _check_overrun(self) -> None:
        place = self._arena.overrun()
        if place is not None:
            raise UserError(
                f"the kernel {self._launch.kernel} wrote behind the end of {place.name} "
                f"({place.size} bytes)",
                hint="check the bounds of its stores",
                status=1,
            )

    def _run_wave(
        self, scheduler: BlockScheduler, first: int, deadline: float, interrupt: Interrupt
    ) -> int:
        """Runs the next blocks; gives their number."""
        sms, _, starts = scheduler.next_wave(self._launch.blocks - first)
        sms, starts = np.ascontiguousarray(sms), np.ascontiguousarray(starts)
        workers = self._workers
        scheduler.finish(self._run_blocks(first, sms, starts, workers, deadline, interrupt))
        return int(starts.size)

    def _run_blocks(
        self,
        first: int,
        sms: NDArray[np.int32],
        starts: NDArray[np.int64],
        workers: Sequence[Worker],
        deadline: float,
        interrupt: Interrupt,
    ) -> NDArray[np.int64]:
        """Runs consecutive blocks; gives the cycles that each ran."""
        durations = np.full(starts.size, -1, np.int64)
        places = (sms.ctypes.data, starts.ctypes.data, durations.ctypes.data)
        self._put(np.int64, LaunchField.SM, *places, first, starts.size, 0)
        self._put(np.int32, LaunchField.STOP, time.monotonic() >= deadline)
        jobs = [self._pool.submit(self._work, worker) for worker in workers]
        try:
            interrupted = _wait(jobs, deadline, interrupt)
        finally:
            self._put(np.int32, LaunchField.STOP, 1)
            wait(jobs)
        for job in jobs:
            job.result()
        if interrupted:
            for worker in workers:
                worker.clear_local()
            raise GaveWay
        self._raise_faults()
        if (unfinished := np.flatnonzero(durations < 0)).size:
            block = first + int(unfinished[0])
            raise self._described(Fault(FaultKind.STOPPED, -1, 0, block, 0, ()))
        return durations

    def _work(self, worker: Worker) -> None:
        launch = self._block.ctypes.data
        parts = (part.ctypes.data for part in worker.parts)
        self._run(launch, self._parameters.ctypes.data, *parts)

    def _raise_faults(self) -> None:
        faults = [fault for w in self._workers if (fault := self._fault_of(w)) is not None]
        if faults:
            raise self._described(min(faults, key=lambda f: (f.block, f.warp)))

    def _described(self, fault: Fault) -> UserError:
        program, launch = self._program, self._launch
        limits = {
            "shared": program.shared_bytes + launch.shared_bytes,
            "local": program.local_bytes,
            "param": program.parameter_bytes,
        }
        scene = Scene(self._module, program, launch, self._arena, limits, self._timeout)
        return describe(fault, scene)

    def _fault_of(self, worker: Worker) -> Fault | None:
        (place,) = worker.read(np.int32, WorkerField.FAULT)
        if place < 0:
            return None
        kind = worker.read(np.int32, WorkerField.FAULT_KIND)[0]
        stands: tuple[str, ...] = ()
        if kind in (FaultKind.STOPPED, FaultKind.DEADLOCK):
            slot = worker.read(np.int64, WorkerField.FAULT_SLOT)[0]
            size = warp_bytes(self._program)
            first = slot * self._strides[2]
            warps = worker.parts[3][first : first + size * self._launch.warps_per_block]
            stands = standing(self._module, self._program, warps, size)
        return Fault(
            kind=kind,
            instruction=place - 1,
            mask=worker.read(np.uint32, WorkerField.FAULT_MASK)[0],
            block=worker.read(np.int64, WorkerField.FAULT_BLOCK)[0],
            warp=worker.read(np.int32, WorkerField.FAULT_WARP)[0],
            addresses=tuple(worker.read(np.int64, WorkerField.ADDRESSES, 32)),
            standing=stands,
        )

    def read_map(self, index: int) -> NDArray[np.uint8]:
        return self._arena.view(self._maps[index])

    def read_buffers(self) -> list[NDArray[np.uint8]]:
        return [self._arena.view(place).copy() for place in self._buffers]

    def read_variables(self) -> dict[str, NDArray[np.uint8]]:
        return {
            name: self._arena.view(place).copy()
            for name, place in self._variables.items()
            if name != self._pointers
        }

    def close(self) -> None:
        self._pool.shutdown()
