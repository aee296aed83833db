"""The launch loop: one kernel, one probe, launched again and again."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import replace

from gpuwatch.analysis.sm_placing import placing_of
from gpuwatch.analysis.time_axis import TimeAxis
from gpuwatch.device import open_device
from gpuwatch.device.base import Device, DeviceInfo, GaveWay, Interrupt, Pipeline, never
from gpuwatch.engine.attach import PlainKernel, ProbedKernel, naming
from gpuwatch.engine.build import Build
from gpuwatch.engine.frame import Frame, KernelChoice
from gpuwatch.engine.options import Options
from gpuwatch.engine.program import Progress, WatchedProgram
from gpuwatch.engine.rates import LaunchRate
from gpuwatch.engine.readings import Reading
from gpuwatch.engine.time_axis import TimeAxisKeeper
from gpuwatch.errors import UserError
from gpuwatch.launch import LaunchForm

_STEP_SECONDS = 1 / 60
"""How long a step of a device that launches back to back goes on: a frame's time."""


class Session:
    """Not thread-safe but for `compile`; in the worker process for the live view, in process for
    reports.

    `prepare` compiles, captures and attaches; each `step` is one probed launch; `frame` is what
    a screen shows of the newest one. Every method raises UserError for what the user can mend;
    after a failed `select` the former selection goes on.
    """

    def __init__(self, options: Options, progress: Progress = lambda _text: None) -> None:
        self._options = options
        self._progress = progress
        self._device, self._device_note = open_device(options.device, options.timeout)
        self._axes = TimeAxisKeeper(self._device)
        self._source = options.source
        self._builds: dict[str, Build] = {}
        self._made = 0
        self._current: Build | None = None
        self._selected = ("", "")
        self._serial = 0
        self._reset_rates()

    @property
    def launches(self) -> int:
        """Launches observed since the last selection or reset."""
        return self._launches

    @property
    def has_frame(self) -> bool:
        """Whether a launch was observed since the last selection or reset, and none has given way
        after it."""
        return self._launches > 0 and self._probed.runner.whole

    @property
    def info(self) -> DeviceInfo:
        return self._device.info

    @property
    def device(self) -> Device:
        return self._device

    @property
    def source(self) -> str:
        return self._source

    @property
    def selected(self) -> tuple[str, str]:
        """Mangled kernel and probe, empty before the first selection."""
        return self._selected

    @property
    def build(self) -> Build:
        """That of the current source; compiled and captured at first use."""
        return self._build_of(self._source)

    @property
    def program(self) -> WatchedProgram:
        """The compiled and captured program; compiled at first use."""
        return self.build.program

    def kernels(self) -> list[KernelChoice]:
        return self.program.kernels()

    def compile(
        self, source: str, progress: Progress | None = None, *, again: Build | None = None
    ) -> Build:
        """A build of one of the sources as it is now, not used yet. Any thread may call this.

        Launches of the former build may be assumed, but not in place of the build `again`, which
        has assumed wrongly.
        """
        options = replace(self._options, source=source)
        if source != self._options.source:
            options = replace(options, launch=None)
        former = self._builds.get(source) if again is None else None
        self._made += again is None
        number = self._made if again is None else again.number
        program = WatchedProgram(
            options,
            self._device,
            progress or self._progress,
            former.program if former is not None else None,
        )
        return Build(program, self._device, number)

    def has(self, source: str) -> bool:
        """Whether that source was compiled."""
        return source in self._builds

    def adopt(self, build: Build) -> None:
        """Takes another build of its source; of the current one with the kernel of the same name
        and the same probe.

        Raises UserError when that cannot run; the former build then goes on.
        """
        source = build.program.options.source
        former = self._builds.get(source)
        mangled, name = self._selected
        if former is not None and former is self._current:
            wanted = build.alike(mangled, former.program) or build.first()
            try:
                self.settle()
                build.attach(wanted, name, self._progress)
            except UserError as refused:
                if not refused.fatal:
                    build.close()
                raise
            self._use(build, (wanted, name))
        self._builds[source] = build
        if former is not None:
            former.close()

    def _build_of(self, source: str) -> Build:
        if source not in self._builds:
            self._builds[source] = self.compile(source)
        return self._builds[source]

    def prepare(self) -> None:
        """Attaches the kernel and the probe that the options name."""
        self.select(self._options.kernel, self._options.probe)

    def select(
        self, kernel: str | None = None, probe: str | None = None, source: str | None = None
    ) -> None:
        """Switches to another kernel, probe and/or source; None keeps, and in another source
        takes the kernel of the same name or else the first. What was attached once stays
        attached, so switching back costs nothing."""
        build = self._build_of(source or self._source)
        mangled, name = self._selected
        if kernel is not None or not mangled:
            mangled = build.program.find_kernel(kernel or self._options.kernel)
        elif source is not None and source != self._source:
            mangled = build.alike(mangled, self.program) or build.first()
        if probe is not None or not name:
            name = probe or self._options.probe
        self.settle()
        build.attach(mangled, name, self._progress)
        self._source = source or self._source
        self._use(build, (mangled, name))

    def _use(self, build: Build, pair: tuple[str, str]) -> None:
        again = (build, pair) == (self._current, self._selected)
        self._current, self._selected = build, pair
        self._axes.newest(build.program.toolchain, self.settle)
        self.reset()
        probed = self._probed
        fresh = pair in build.untouched or (not again and probed.pipeline is None)
        if fresh and probed.runner.whole:
            self._count_last()

    def give(self, kernel: str, form: LaunchForm, probe: str | None = None) -> None:
        """Selects `kernel` (mangled name) and launches it by this form from now on. Raises
        UserError when it does not fit; the former launch then goes on."""
        self._relaunch(self.program.giving(kernel, form), probe)

    def choose_launch(self, index: int, probe: str | None = None) -> None:
        """Selects the kernel of the program's launch `index`, and that launch in place of its
        former one; runs the program again for its contents. Raises UserError when there is no
        such launch or it cannot run; the former then goes on."""
        self._relaunch(self.program.choosing(index, self._progress), probe)

    def _relaunch(self, taking: AbstractContextManager[str], probe: str | None) -> None:
        build, name = self.build, probe or self._selected[1] or self._options.probe
        self.settle()
        self._use(build, (build.relaunch(taking, name, self._progress), name))

    @property
    def _probed(self) -> ProbedKernel:
        assert self._current is not None
        return self._current.probeds[self._selected]

    @property
    def _plain(self) -> PlainKernel:
        assert self._current is not None
        return self._current.plains[self._selected[0]]

    def step(self, interrupt: Interrupt = never) -> None:
        """One probed launch, or those of a frame's time on a device that launches back to back;
        the newest one's records are read. A launch that `interrupt` ends counts for nothing."""
        begun = time.monotonic()
        build, probed = self._running(), self._probed
        build.untouched.discard(self._selected)
        try:
            if probed.pipeline is None:
                launches = self._launch_once(build, probed, interrupt)
            else:
                launches = self._launch_many(build, probed, probed.pipeline, begun + _STEP_SECONDS)
        except GaveWay:
            return
        self._launches += launches
        now = time.monotonic()
        self._rate.add(now, launches, now - begun)

    def _running(self) -> Build:
        if self._current is None:
            raise UserError("no kernel is selected yet", hint="choose one with k")
        return self._current

    def _launch_once(self, build: Build, probed: ProbedKernel, interrupt: Interrupt) -> int:
        with naming(probed.program):
            probed.runner.launch(interrupt)
        build.readers[self._selected].observe(probed.runner.loaded)
        return 1

    def _launch_many(
        self, build: Build, probed: ProbedKernel, pipeline: Pipeline, until: float
    ) -> int:
        batch = pipeline.advance(until)
        if batch.probed and not probed.paired:  # what was timed alone is not like these
            probed.runner.times.clear()
            self._plain.runner.times.clear()
            probed.paired = True
        probed.runner.times.add(batch.probed)
        self._plain.runner.times.add(batch.plain)
        if batch.fresh:
            build.readers[self._selected].observe(pipeline)
        return batch.launches

    def settle(self) -> None:
        """Ends the launches that are under way: what comes next uses the same buffers."""
        if self._current is None:
            return
        probed = self._current.probeds.get(self._selected)
        if probed is not None and probed.pipeline is not None:
            probed.pipeline.settle()

    def reset(self) -> None:
        """Forgets what was accumulated over launches."""
        self._reset_rates()
        if self._current is None or self._selected not in self._current.readers:
            return
        self._current.readers[self._selected].reset()
        pipeline = self._probed.pipeline
        if pipeline is not None:
            pipeline.reset()

    def frame(self) -> Frame:
        """Everything a screen shows. Raises RuntimeError before the first step, and after a
        launch that gave way: the maps then hold a part of it."""
        mangled, name = self._selected
        build, plain, probed = self._running(), self._plain, self._probed
        if not probed.runner.whole:
            raise RuntimeError("the newest launch gave way")
        reading = build.readers[self._selected].reading()
        launch, last = plain.launch, probed.runner.last
        self._serial += 1
        return Frame(
            serial=self._serial,
            kernel=build.program.demangled(mangled),
            mangled=mangled,
            probe=name,
            device=self.info,
            grid=launch.grid,
            block=launch.block,
            shared_bytes=launch.shared_bytes + plain.runner.assembled.shared_bytes,
            launches=self._launches,
            launches_per_second=self._rate.per_second,
            blocks=launch.blocks,
            warps=launch.warps,
            records=reading.records,
            missing=reading.missing,
            dropped=reading.dropped,
            outputs_identical=probed.outputs_identical,
            registers_plain=plain.runner.assembled.registers,
            registers_probed=probed.runner.assembled.registers,
            seconds_plain=plain.runner.times.median if plain.results is not None else 0.0,
            seconds_probed=probed.runner.times.median,
            ratio_spread=probed.runner.times.ratio_spread(plain.runner.times),
            spills_plain=plain.runner.assembled.spill_store_bytes,
            spills_probed=probed.runner.assembled.spill_store_bytes,
            resident_plain=plain.runner.loaded.resident_blocks,
            reduced=None if probed.pipeline is None else probed.pipeline.reduced(),
            wall_seconds_per_launch=self._rate.wall_seconds,
            resident_blocks=probed.runner.loaded.resident_blocks,
            running_cycles_mean=reading.running_mean,
            idle_cycles_mean=reading.idle_mean,
            elapsed=reading.elapsed,
            warps_table=reading.warps,
            sms=reading.sms,
            maps=reading.maps,
            time_axis=self._time_axis(build, reading),
            thread_instructions=last.thread_instructions if last is not None else None,
            notes=self._notes(plain, probed),
            printed=last.output if last is not None else "",
            source=self._source,
            build=build.number,
        )

    def _time_axis(self, build: Build, reading: Reading) -> TimeAxis | None:
        """The axis, if it holds every SM that ran a warp; measured again where the newest launch
        lies too far from it."""
        warps, sms = reading.warps, reading.sms
        if warps is None or sms is None:
            return None

        def stale(axis: TimeAxis) -> bool:
            placing = placing_of(axis, warps, sms)
            return placing is not None and placing.stale

        axis = self._axes.newest(build.program.toolchain, self.settle, stale)
        return axis if axis is not None and axis.covers(sms.sm[sms.used]) else None

    def close(self) -> None:
        """Frees the kernels and the device."""
        for build in self._builds.values():
            build.close()
        self._builds, self._current = {}, None
        self._device.close()

    def _count_last(self) -> None:
        """The pair's last launch, of the warm-up if it had no other, is the first that counts, so
        a frame is there at once."""
        build, runner = self._running(), self._probed.runner
        build.readers[self._selected].observe(runner.loaded)
        self._launches = 1
        self._rate.add(time.monotonic(), 1, runner.wall_seconds)

    def _reset_rates(self) -> None:
        self._launches = 0
        self._rate = LaunchRate()

    def _notes(self, plain: PlainKernel, probed: ProbedKernel) -> tuple[str, ...]:
        notes = [self._device_note] if self._device_note else []
        spilled = probed.runner.assembled.spill_store_bytes
        if spilled > plain.runner.assembled.spill_store_bytes:
            notes.append(f"the probe makes the kernel spill {spilled} bytes")
        lost = plain.runner.loaded.resident_blocks - probed.runner.loaded.resident_blocks
        if lost > 0:
            notes.append(f"the probe costs {lost} resident blocks per SM")
        capture = self._running().program.capture
        if capture is not None and capture.timed_out:
            notes.append("the program was stopped at its time limit: later launches are missing")
        return (*notes, *probed.runner.loaded.notes, *probed.woven.notes)
