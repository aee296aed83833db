"""A session: one source on one device, watched through one probe at a time."""

from __future__ import annotations

import statistics
import time
from collections import OrderedDict, deque
from collections.abc import Sequence
from pathlib import Path

from gpuwatch import probe as probes
from gpuwatch.device.base import DeviceInfo, RunResult
from gpuwatch.device.open import open_with_note
from gpuwatch.engine.frame import Frame, KernelChoice
from gpuwatch.engine.kernels import find_kernel, kernel_choices
from gpuwatch.engine.observe import Observer
from gpuwatch.engine.prepare import (
    Plain,
    Prepared,
    Progress,
    build,
    first_launch,
    prepare_plain,
    prepare_probed,
)

KEPT_PAIRS = 8
"""Prepared (kernel, probe) pairs kept loaded, so that switching back is instant."""

RECENT = 64
"""Launches that the medians are taken over."""


class _Attached:
    """A prepared pair and what it has shown so far."""

    def __init__(self, plain: Plain, prepared: Prepared) -> None:
        self.plain = plain
        self.prepared = prepared
        threads = plain.launch.threads_per_block
        self.observer = Observer(prepared.loaded, prepared.layout, threads)
        self.forget()

    def forget(self) -> None:
        self.observer.reset()
        self.launches = 0
        self.last: RunResult | None = None
        self.kernel_seconds: deque[float] = deque(maxlen=RECENT)
        self.wall_seconds: deque[float] = deque(maxlen=RECENT)


class Session:
    """Launches the chosen kernel with the chosen probe, in this process.

    `source` is a .cu file with a main(), `device` as `open_device` takes it, `kernel` a name as
    `find_kernel` takes it (None: the first one launched), `probe` a preset or a path,
    `arguments` the program's own, `flags` nvcc's. `progress` hears one line per long step.

    Raises UserError for whatever of these cannot be used.
    """

    def __init__(
        self,
        source: str | Path,
        *,
        device: str = "auto",
        kernel: str | None = None,
        probe: str = "block_sched",
        arguments: Sequence[str] = (),
        flags: Sequence[str] = (),
        timeout: float | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.source = Path(source)
        self._say: Progress = progress or (lambda _line: None)
        self._pairs: OrderedDict[tuple[str, str], _Attached] = OrderedDict()
        self._plain: dict[str, Plain] = {}
        self._serial = 0
        self._instructions: int | None = None
        opened = open_with_note(device, timeout=timeout)
        self._device, self._note = opened.device, opened.note
        try:
            self._built = build(self.source, self._device, arguments, flags, self._say)
            self.kernels: list[KernelChoice] = kernel_choices(
                self._built.module, self._built.capture
            )
            self._choice = find_kernel(self.kernels, kernel)
            self._current = self._attach(self._choice, probe)
        except BaseException:
            self.close()
            raise
        self.probe = probe

    @property
    def device(self) -> DeviceInfo:
        return self._device.info

    @property
    def kernel(self) -> KernelChoice:
        """The kernel being watched."""
        return self._choice

    def select(self, kernel: str | None = None, probe: str | None = None) -> None:
        """Switches kernel and/or probe; None keeps. Raises UserError and changes nothing when
        the new pair cannot be attached."""
        choice = self._choice if kernel is None else find_kernel(self.kernels, kernel)
        name = self.probe if probe is None else probe
        self._current = self._attach(choice, name)
        self._choice, self.probe = choice, name

    def reset(self) -> None:
        """Forgets accumulated figures."""
        self._current.forget()

    def step(self, *, observe: bool = True) -> RunResult:
        """Launches once. `observe` adds the launch to the averages of the warp table.

        Raises UserError (status 1) on a fault of the kernel.
        """
        current = self._current
        begin = time.perf_counter()
        current.last = current.prepared.loaded.run()
        if observe:
            current.observer.observe()
        current.wall_seconds.append(time.perf_counter() - begin)
        current.kernel_seconds.append(current.last.kernel_seconds)
        current.launches += 1
        return current.last

    def frame(self) -> Frame:
        """The newest launch in figures; launches once first if nothing ran yet."""
        current = self._current
        if current.last is None:
            self.step()
        assert current.last is not None
        self._serial += 1
        plain, prepared = current.plain, current.prepared
        figures = current.observer.figures(self.device)
        wall = statistics.fmean(current.wall_seconds)
        return Frame(
            serial=self._serial,
            kernel=self._choice.demangled,
            mangled=self._choice.mangled,
            probe=prepared.program.name,
            device=self.device,
            grid=plain.launch.grid,
            block=plain.launch.block,
            shared_bytes=plain.launch.shared_bytes,
            launches=current.launches,
            launches_per_second=1 / wall if wall > 0 else 0.0,
            blocks=prepared.layout.blocks,
            warps=prepared.layout.warps,
            records=figures.records,
            missing=figures.missing,
            dropped=figures.dropped,
            outputs_identical=prepared.outputs_identical,
            registers_plain=plain.registers,
            registers_probed=prepared.assembled.registers,
            seconds_plain=plain.seconds,
            seconds_probed=statistics.median(current.kernel_seconds),
            wall_seconds_per_launch=wall,
            resident_blocks=prepared.loaded.resident_blocks,
            running_cycles_mean=figures.running_cycles_mean,
            idle_cycles_mean=figures.idle_cycles_mean,
            elapsed=figures.elapsed,
            warps_table=figures.warps_table,
            sms=figures.sms,
            thread_instructions=current.last.thread_instructions,
            notes=self._notes(prepared),
            taken_at=time.monotonic(),
        )

    def close(self) -> None:
        """Frees every loaded kernel and the device."""
        for attached in self._pairs.values():
            attached.prepared.loaded.close()
        self._pairs.clear()
        self._device.close()

    def _attach(self, choice: KernelChoice, probe: str) -> _Attached:
        key = (choice.mangled, probe)
        if key in self._pairs:
            self._pairs.move_to_end(key)
            return self._pairs[key]
        program = probes.load(probe)
        plain = self._plain.get(choice.mangled)
        if plain is None:
            launch = first_launch(self._built, choice.mangled)
            plain = prepare_plain(self._built, self._device, launch, self._say)
            self._plain[choice.mangled] = plain
        prepared = prepare_probed(self._built, self._device, plain, program, self._say)
        self._pairs[key] = _Attached(plain, prepared)
        if len(self._pairs) > KEPT_PAIRS:
            _, oldest = self._pairs.popitem(last=False)
            oldest.prepared.loaded.close()
        return self._pairs[key]

    def _notes(self, prepared: Prepared) -> tuple[str, ...]:
        own = [self._note] if self._note else []
        spilled = prepared.assembled.spill_store_bytes
        if spilled:
            own.append(f"the probed kernel spills {spilled} bytes of registers")
        return (*own, *prepared.woven.notes, *prepared.loaded.notes)
