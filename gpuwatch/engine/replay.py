"""A recorded trace looked at launch by launch, as a session is."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from gpuwatch.device.base import DeviceInfo, RunResult
from gpuwatch.device.replay import ReplayKernel, replay_info
from gpuwatch.engine.choices import find_kernel
from gpuwatch.engine.frame import Frame, KernelChoice, LaunchChoice
from gpuwatch.engine.rates import LaunchRate
from gpuwatch.engine.readings import MapReader
from gpuwatch.launch import Launch
from gpuwatch.probe.model import Probe, Program, Save
from gpuwatch.trace.facts import KernelFacts
from gpuwatch.trace.folder import Trace

NO_OCCUPANCY = "how many warps an SM holds is not known, so neither is its occupancy"


class ReplaySession:
    """The launches of a trace. Not thread-safe.

    `prepare` reads the first launch; each `step` the next one; `frame` is what a screen shows of
    the one read last. Averages count the launches stepped through since the last `reset`, `seek`
    or selection. Raises UserError for a folder that is no trace and for files that are damaged.
    """

    def __init__(self, path: Path, kernel: str = "") -> None:
        self._trace = Trace(path)
        self._wanted = kernel
        self._groups: dict[str, list[int]] = _groups(self._trace)
        self._kernels: dict[str, ReplayKernel] = {}
        self._serial = 0

    @property
    def trace(self) -> Trace:
        return self._trace

    @property
    def facts(self) -> KernelFacts:
        """Of the selected kernel."""
        return self._kernel.facts

    @property
    def info(self) -> DeviceInfo:
        return self._info

    @property
    def count(self) -> int:
        """Recorded launches of the selected kernel."""
        return len(self._kernel.numbers)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Which of the trace's launches those are."""
        return self._kernel.numbers

    @property
    def position(self) -> int:
        """Place among them of the one read last."""
        return self._kernel.position

    @property
    def result(self) -> Path:
        """File of the launch read last."""
        return self._trace.results[self._kernel.numbers[self.position]]

    @property
    def kernel_seconds(self) -> float:
        """Kernel time of the launch read last; 0 where the trace does not say."""
        return self._last.kernel_seconds

    @property
    def launches(self) -> int:
        """Launches read since the last selection, seek or reset."""
        return self._launches

    def kernels(self) -> list[KernelChoice]:
        """Every recorded kernel with its launches one by one; a launch's index is its place."""
        return [_choice(self._load(key)) for key in self._groups]

    def prepare(self) -> None:
        """Selects the kernel that was asked for, or the first recorded."""
        self.select(self._wanted)

    def select(self, kernel: str = "") -> None:
        """Another kernel, by its mangled name or a part of either name, at its first launch."""
        self._kernel = self._load(self._find(kernel))
        facts, layout = self._kernel.facts, self._kernel.layout
        self._info = replay_info(facts.device)
        self._reader = MapReader(_program(facts), layout, facts.sites, _launch(facts), self._info)
        self.seek(0)

    def step(self) -> None:
        """Reads the next launch; behind the last one the first, with averages begun again."""
        if self.position + 1 == self.count:
            self.seek(0)
        else:
            self._observe(self.position + 1)

    def seek(self, position: int) -> None:
        """Reads the launch at this place, the nearest one where there is none."""
        self._begin_again()
        self._observe(min(max(position, 0), self.count - 1))

    def reset(self) -> None:
        """Forgets the launches before the present one."""
        self.seek(self.position)

    def frame(self) -> Frame:
        """Everything a screen shows of the launch read last."""
        reading = self._reader.reading()
        facts = self._kernel.facts
        figures, launch = facts.figures, _launch(facts)
        self._serial += 1
        frame = Frame(
            serial=self._serial,
            kernel=facts.name,
            mangled=facts.mangled,
            probe=facts.probe,
            device=self._info,
            grid=facts.grid,
            block=facts.block,
            shared_bytes=figures.shared_bytes,
            launches=self._launches,
            launches_per_second=self._rate.per_second,
            blocks=launch.blocks,
            warps=launch.warps,
            records=reading.records,
            missing=reading.missing,
            dropped=reading.dropped,
            outputs_identical=figures.outputs_identical,
            registers_plain=figures.registers_plain,
            registers_probed=figures.registers_probed,
            seconds_plain=figures.seconds_plain,
            seconds_probed=statistics.median(self._seconds),
            spills_plain=figures.spills_plain,
            spills_probed=figures.spills_probed,
            resident_plain=figures.resident_plain,
            resident_blocks=figures.resident_probed,
            wall_seconds_per_launch=self._rate.wall_seconds,
            running_cycles_mean=reading.running_mean,
            idle_cycles_mean=reading.idle_mean,
            elapsed=reading.elapsed,
            warps_table=reading.warps,
            sms=reading.sms,
            maps=reading.maps,
            thread_instructions=self._last.thread_instructions,
            notes=self._notes(),
            printed=self._last.output,
            source=str(self._trace.path),
            recorded=(self.position + 1, self.count),
        )
        if not self._info.warps_per_sm and frame.sms is not None:
            return replace(frame, sms=None, notes=(*frame.notes, NO_OCCUPANCY))
        return frame

    def close(self) -> None:
        for kernel in self._kernels.values():
            kernel.close()

    def _notes(self) -> tuple[str, ...]:
        name = self.result.name
        return (*self._kernel.notes, f"recorded launch {self.position + 1} of {self.count}, {name}")

    def _observe(self, position: int) -> None:
        begun = time.monotonic()
        self._last: RunResult = self._kernel.run_at(position)
        self._reader.observe(self._kernel)
        self._launches += 1
        self._seconds.append(self._last.kernel_seconds)
        now = time.monotonic()
        self._rate.add(now, 1, now - begun)

    def _begin_again(self) -> None:
        self._launches = 0
        self._seconds: list[float] = []
        self._rate = LaunchRate()
        self._reader.reset()

    def _load(self, key: str) -> ReplayKernel:
        if key not in self._kernels:
            self._kernels[key] = ReplayKernel(self._trace, self._groups[key])
        return self._kernels[key]

    def _find(self, wanted: str) -> str:
        if not wanted:
            return next(iter(self._groups))
        loaded = {key: self._load(key).facts for key in self._groups}
        names = {key: (facts.mangled, facts.name) for key, facts in loaded.items()}
        return find_kernel(wanted, names, str(self._trace.path))


def _groups(trace: Trace) -> dict[str, list[int]]:
    """Numbers of the launches by kernel: its folder, or its shape where there is none."""
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for number in range(len(trace.results)):
        facts = trace.launch(number).kernel
        groups[facts.folder or facts.mangled].append(number)
    return dict(groups)


def _choice(kernel: ReplayKernel) -> KernelChoice:
    facts, count = kernel.facts, len(kernel.numbers)
    shape = (facts.grid, facts.block, facts.dynamic_shared_bytes)
    return KernelChoice(
        mangled=facts.mangled,
        demangled=facts.name,
        parameters=(),
        grid=facts.grid,
        block=facts.block,
        launches=count,
        shapes=tuple(LaunchChoice(place, *shape, times=1) for place in range(count)),
    )


def _program(facts: KernelFacts) -> Program:
    """A probe program as far as the reader of its maps needs it: which of them always save."""
    saves = tuple(Save(name, ()) for name in sorted(facts.always))
    probe = Probe(facts.probe, "kernel", "warp", before=False, body=saves)
    return Program(facts.probe, facts.title, facts.maps, (), (probe,) if saves else (), "", "toml")


def _launch(facts: KernelFacts) -> Launch:
    """The launch's shape; a trace has no arguments."""
    return Launch(
        kernel=facts.mangled,
        grid=facts.grid,
        block=facts.block,
        shared_bytes=facts.dynamic_shared_bytes,
        slots=(),
        parameters=b"",
        relocations=(),
        buffers=[],
    )
