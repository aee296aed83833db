"""One text of one source: compiled, captured, and the kernels and probes attached to it."""

from __future__ import annotations

import threading
from collections import defaultdict
from contextlib import AbstractContextManager
from dataclasses import dataclass

from gpuwatch.device.base import Device, GaveWay, Interrupt, never
from gpuwatch.engine.attach import (
    PlainKernel,
    ProbedKernel,
    assemble_probed,
    compare_results,
    load_probed,
    open_plain,
    run_plain,
)
from gpuwatch.engine.program import Progress, WatchedProgram
from gpuwatch.engine.readings import MapReader
from gpuwatch.errors import UserError
from gpuwatch.probe import load
from gpuwatch.probe.model import Program

Pair = tuple[str, str]
"""Mangled kernel, probe."""


@dataclass(frozen=True, slots=True)
class _Attached:
    """All that is attached to the launch of one kernel."""

    plains: dict[str, PlainKernel]
    probeds: dict[Pair, ProbedKernel]
    readers: dict[Pair, MapReader]
    untouched: set[Pair]

    def close(self, running: AbstractContextManager[object]) -> None:
        """`running` is held while a plain kernel runs, which gives way when it is detached."""
        for probed in self.probeds.values():
            probed.close()
        with running:
            for plain in self.plains.values():
                plain.runner.loaded.close()


class Build:
    """What was attached once stays attached. Two threads may attach at the same time: each pair
    is attached once. `number` grows with every build of a session.

    On a modelled device the probed kernel may be shown before the plain one has run; `compare`
    then makes up for it.
    """

    def __init__(self, program: WatchedProgram, device: Device, number: int) -> None:
        self.program = program
        self.number = number
        self.plains: dict[str, PlainKernel] = {}
        self.probeds: dict[Pair, ProbedKernel] = {}
        self.readers: dict[Pair, MapReader] = {}
        self.untouched: set[Pair] = set()
        """Pairs that have not been launched since they were attached."""
        self._device = device
        self._locks: defaultdict[Pair, threading.Lock] = defaultdict(threading.Lock)
        self._changing = threading.RLock()
        """Held while what is attached changes."""
        self._running = threading.Lock()
        """Held while a plain kernel runs for the first time."""

    def attach(
        self,
        mangled: str,
        name: str,
        progress: Progress,
        interrupt: Interrupt = never,
        *,
        compared: bool = True,
    ) -> None:
        """Loads and runs the kernel with the probe, if it is not; first the plain kernel, unless
        it need not be `compared` yet. Attaches nothing to a launch that is replaced meanwhile.
        Raises UserError when the probe cannot attach, and GaveWay when `interrupt` ended a
        launch."""
        with self._locks[mangled, name]:
            if (mangled, name) in self.probeds:
                return
            program = load(name)
            plain = self._opened(mangled, progress)
            if compared or not self._device.info.modelled:
                self._run_plain(mangled, plain, interrupt)
            progress(f"weaving {program.name}")
            probed = self._probed(mangled, plain, program, interrupt)
            reader = MapReader(
                program, probed.layout, probed.woven.sites, plain.launch, self._device.info
            )
            with self._changing:
                kept = self.plains.get(mangled) is plain
                if kept:
                    self.readers[mangled, name] = reader
                    self.untouched.add((mangled, name))
                    self.probeds[mangled, name] = probed
            if not kept:
                probed.close()

    def plain(self, mangled: str, progress: Progress) -> PlainKernel:
        """The kernel as it is, which has run. Raises UserError as toolchain and device do."""
        plain = self._opened(mangled, progress)
        self._run_plain(mangled, plain, never)
        return plain

    def _opened(self, mangled: str, progress: Progress) -> PlainKernel:
        with self._locks[mangled, ""]:
            if mangled not in self.plains:
                progress(f"preparing {self.program.demangled(mangled)}")
                self.plains[mangled] = open_plain(self.program, self._device, mangled)
            return self.plains[mangled]

    def _run_plain(self, mangled: str, plain: PlainKernel, interrupt: Interrupt) -> None:
        """Runs it, if it has not run. Raises GaveWay also when it is detached meanwhile."""

        def gives_way() -> bool:
            return self.plains.get(mangled) is not plain or interrupt()

        with self._running:
            if plain.results is not None:
                return
            if gives_way():
                raise GaveWay
            try:
                run_plain(plain, self._device, gives_way)
            except UserError as problem:
                self._forget(mangled, plain, fatal=problem.fatal)
                raise

    def _forget(self, mangled: str, plain: PlainKernel, *, fatal: bool) -> None:
        """A plain kernel that cannot run; not if a probe is attached to it all the same."""
        with self._changing:
            if self.plains.get(mangled) is not plain or any(mangled == k for k, _ in self.probeds):
                return
            del self.plains[mangled]
        if not fatal:
            plain.runner.loaded.close()

    def _probed(
        self, mangled: str, plain: PlainKernel, program: Program, interrupt: Interrupt
    ) -> ProbedKernel:
        """With a plain kernel that has not run, an error of the probed one's launch may be its
        own: then raises that."""
        try:
            return load_probed(self.program, self._device, plain, program, interrupt)
        except UserError as problem:
            if not problem.fatal:
                self._run_plain(mangled, plain, interrupt)
            raise

    def compare(self, mangled: str, name: str, interrupt: Interrupt = never) -> None:
        """Runs the plain kernel, if it has not run, and compares what it left with what the first
        launch with the probe did, if they are attached and were not compared. Raises UserError
        when the plain kernel cannot run, and GaveWay when `interrupt` ended its launch."""
        plain, probed = self.plains.get(mangled), self.probeds.get((mangled, name))
        if plain is not None and probed is not None and probed.outputs_identical is None:
            self._run_plain(mangled, plain, interrupt)
            compare_results(plain, probed)

    def prepare(
        self,
        mangled: str,
        name: str,
        progress: Progress,
        interrupt: Interrupt = never,
        *,
        compared: bool = True,
    ) -> None:
        """What of attaching can be done beside a launch loop in another thread: all of it on a
        modelled device, and everything but loading on a GPU, whose context belongs to the thread
        that launches. Raises as `attach` does."""
        if self._device.info.modelled:
            self.attach(mangled, name, progress, interrupt, compared=compared)
        elif (mangled, name) not in self.probeds:
            assemble_probed(self.program, mangled, load(name), self.plains.get(mangled))

    def map_bytes(self) -> int:
        """Of all probes that are attached."""
        return sum(sum(probed.layout.buffers) for probed in self.probeds.values())

    def relaunch(self, taking: AbstractContextManager[str], name: str, progress: Progress) -> str:
        """Attaches a probe to another launch of a kernel, of the program's `giving` or
        `choosing`, in place of all that was attached to the former one; gives the kernel.
        Raises UserError when it cannot attach; the former launch then stays as it was, unless
        the error is fatal."""
        former: tuple[str, _Attached] | None = None
        try:
            with taking as mangled:
                former = mangled, self._detach(mangled)
                self.attach(mangled, name, progress)
        except BaseException as problem:
            fatal = isinstance(problem, UserError) and problem.fatal
            if former is not None and not fatal:
                self._put_back(*former)
            raise
        former[1].close(self._running)
        return mangled

    def alike(self, mangled: str, former: WatchedProgram) -> str | None:
        """The kernel that stands for `mangled` of a former build: the one of the same mangled or
        else the same readable name; None where there is none that can be launched."""
        ready = [choice for choice in self.program.kernels() if choice.ready]
        if any(choice.mangled == mangled for choice in ready):
            return mangled
        name = former.demangled(mangled).partition("(")[0]
        named = [c.mangled for c in ready if c.demangled.partition("(")[0] == name]
        return named[0] if len(named) == 1 else None

    def first(self) -> str:
        """The kernel that the options name, else the first one launched."""
        try:
            return self.program.find_kernel(self.program.options.kernel)
        except UserError:
            return self.program.find_kernel("")

    def _detach(self, kernel: str) -> _Attached:
        with self._changing:
            pairs = [pair for pair in self.probeds if pair[0] == kernel]
            untouched = self.untouched.intersection(pairs)
            self.untouched -= untouched
            return _Attached(
                {kernel: self.plains.pop(kernel)} if kernel in self.plains else {},
                {pair: self.probeds.pop(pair) for pair in pairs},
                {pair: self.readers.pop(pair) for pair in pairs},
                untouched,
            )

    def _put_back(self, kernel: str, attached: _Attached) -> None:
        """In place of what is attached to the kernel now."""
        with self._changing:
            failed = self._detach(kernel)
            self.plains |= attached.plains
            self.readers |= attached.readers
            self.untouched |= attached.untouched
            self.probeds |= attached.probeds
        failed.close(self._running)

    def close(self) -> None:
        """Frees the kernels."""
        for attached in [self._detach(kernel) for kernel in list(self.plains)]:
            attached.close(self._running)
