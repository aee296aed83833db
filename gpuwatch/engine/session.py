"""The launch loop: one kernel, one probe, launched again and again."""

from __future__ import annotations

import time

from gpuwatch.device import open_device
from gpuwatch.device.base import Device, DeviceInfo, Pipeline
from gpuwatch.engine.attach import (
    PlainKernel,
    ProbedKernel,
    load_plain,
    load_probed,
)
from gpuwatch.engine.frame import Frame, KernelChoice
from gpuwatch.engine.options import Options
from gpuwatch.engine.program import Progress, WatchedProgram
from gpuwatch.engine.rates import LaunchRate
from gpuwatch.engine.readings import MapReader
from gpuwatch.launch import LaunchForm
from gpuwatch.probe import load

_STEP_SECONDS = 1 / 60
"""How long a step of a device that launches back to back goes on: a frame's time."""


class Session:
    """Not thread-safe; in the worker process for the live view, in process for reports.

    `prepare` compiles, captures and attaches; each `step` is one probed launch; `frame` is what
    a screen shows of the newest one. Every method raises UserError for what the user can mend;
    after a failed `select` the former selection goes on.
    """

    def __init__(self, options: Options, progress: Progress = lambda _text: None) -> None:
        self._options = options
        self._progress = progress
        self._device, self._device_note = open_device(options.device, options.timeout)
        self._program: WatchedProgram | None = None
        self._plains: dict[str, PlainKernel] = {}
        self._probeds: dict[tuple[str, str], ProbedKernel] = {}
        self._readers: dict[tuple[str, str], MapReader] = {}
        self._selected = ("", "")
        self._serial = 0
        self._instructions: int | None = None
        self._printed = ""
        self._reset_rates()

    @property
    def launches(self) -> int:
        """Launches observed since the last selection or reset."""
        return self._launches

    @property
    def info(self) -> DeviceInfo:
        return self._device.info

    @property
    def device(self) -> Device:
        return self._device

    @property
    def program(self) -> WatchedProgram:
        """The compiled and captured program; compiled at first use."""
        if self._program is None:
            self._program = WatchedProgram(self._options, self._device, self._progress)
        return self._program

    def kernels(self) -> list[KernelChoice]:
        return self.program.kernels()

    def prepare(self) -> None:
        """Attaches the kernel and the probe that the options name."""
        self.select(self._options.kernel, self._options.probe)

    def select(self, kernel: str | None = None, probe: str | None = None) -> None:
        """Switches to another kernel and/or probe; None keeps. What was attached once stays
        attached, so switching back costs nothing."""
        mangled, name = self._selected
        if kernel is not None or not mangled:
            mangled = self.program.find_kernel(kernel or self._options.kernel)
        if probe is not None or not name:
            name = probe or self._options.probe
        key = (mangled, name)
        self._settle()
        new = key not in self._probeds
        if new:
            self._attach(mangled, name)
        self._selected = key
        self.reset()
        if new:
            self._count_first()

    def give(self, kernel: str, form: LaunchForm) -> None:
        """Launches `kernel` (mangled name) by this form from now on. Raises UserError when it
        does not fit; the former launch then goes on."""
        self._settle()
        self.program.give(kernel, form)
        self._forget(kernel)

    def choose_launch(self, index: int) -> None:
        """Watches the program's launch `index` in place of its kernel's former one; runs the
        program again for its contents. Raises UserError when there is no such launch."""
        self._settle()
        self._forget(self.program.choose_launch(index))

    def _forget(self, kernel: str) -> None:
        for key in [key for key in self._probeds if key[0] == kernel]:
            self._probeds.pop(key).close()
            del self._readers[key]
        if kernel in self._plains:
            self._plains.pop(kernel).runner.loaded.close()

    def step(self) -> None:
        """One probed launch, or those of a frame's time on a device that launches back to back;
        the newest one's records are read."""
        begun = time.monotonic()
        probed = self._probeds[self._selected]
        if probed.pipeline is None:
            launches = self._launch_once(probed)
        else:
            launches = self._launch_many(probed, probed.pipeline, begun + _STEP_SECONDS)
        self._launches += launches
        now = time.monotonic()
        self._rate.add(now, launches, now - begun)

    def _launch_once(self, probed: ProbedKernel) -> int:
        result = probed.runner.loaded.run()
        self._readers[self._selected].observe(probed.runner.loaded)
        self._instructions = result.thread_instructions
        self._printed = result.output
        return 1

    def _launch_many(self, probed: ProbedKernel, pipeline: Pipeline, until: float) -> int:
        batch = pipeline.advance(until)
        probed.runner.times.add(batch.probed)
        self._plains[self._selected[0]].runner.times.add(batch.plain)
        if batch.fresh:
            self._readers[self._selected].observe(pipeline)
        return batch.launches

    def _settle(self) -> None:
        """Ends the launches that are under way: what comes next uses the same buffers."""
        current = self._probeds.get(self._selected)
        if current is not None and current.pipeline is not None:
            current.pipeline.settle()

    def reset(self) -> None:
        """Forgets what was accumulated over launches."""
        self._reset_rates()
        if self._selected in self._readers:
            self._readers[self._selected].reset()
            pipeline = self._probeds[self._selected].pipeline
            if pipeline is not None:
                pipeline.reset()

    def frame(self) -> Frame:
        """Everything a screen shows. Raises RuntimeError before the first step."""
        mangled, name = self._selected
        plain, probed = self._plains[mangled], self._probeds[self._selected]
        reading = self._readers[self._selected].reading()
        launch = plain.launch
        self._serial += 1
        return Frame(
            serial=self._serial,
            kernel=self.program.demangled(mangled),
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
            seconds_plain=plain.runner.times.median,
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
            thread_instructions=self._instructions,
            notes=self._notes(plain, probed),
            printed=self._printed,
            taken_at=time.monotonic(),
        )

    def close(self) -> None:
        """Frees the kernels and the device."""
        for probed in self._probeds.values():
            probed.close()
        for plain in self._plains.values():
            plain.runner.loaded.close()
        self._probeds, self._plains = {}, {}
        self._device.close()

    def _attach(self, mangled: str, name: str) -> None:
        program = load(name)
        if mangled not in self._plains:
            self._progress(f"preparing {self.program.demangled(mangled)}")
            self._plains[mangled] = load_plain(self.program, self._device, mangled)
        plain = self._plains[mangled]
        self._progress(f"weaving {program.name}")
        probed = load_probed(self.program, self._device, plain, program)
        self._probeds[mangled, name] = probed
        self._readers[mangled, name] = MapReader(
            program, probed.layout, probed.woven.sites, plain.launch, self.info
        )

    def _count_first(self) -> None:
        """The last launch of the warm-up is the first that counts, so a frame is there at once."""
        runner = self._probeds[self._selected].runner
        self._readers[self._selected].observe(runner.loaded)
        self._launches = 1
        self._instructions = runner.last.thread_instructions if runner.last else None
        self._printed = runner.last.output if runner.last else ""
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
        return (*notes, *probed.runner.loaded.notes, *probed.woven.notes)
