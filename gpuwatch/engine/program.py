"""The watched program: its PTX, its kernels and how they are launched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from gpuwatch.device.base import Device
from gpuwatch.device.cuda import load_libcuda, require_driver_for
from gpuwatch.engine import choices
from gpuwatch.engine.frame import KernelChoice, LaunchChoice
from gpuwatch.engine.given import GivenLaunches
from gpuwatch.engine.host_part import host_part
from gpuwatch.engine.options import Options
from gpuwatch.engine.watching import local_files
from gpuwatch.errors import UserError
from gpuwatch.launch import (
    Capture,
    Launch,
    LaunchForm,
    capture,
    is_program,
    parameter_slots,
    read_ptx,
)
from gpuwatch.launch.model import Dim3
from gpuwatch.launch.stored import is_stored, read_stored
from gpuwatch.ptx import parse
from gpuwatch.ptx.model import Module
from gpuwatch.toolchain import Toolchain, demangle, find

Progress = Callable[[str], None]

_MAIN = re.compile(r"\bmain\s*\(")


class WatchedProgram:
    """Compiled and, unless its launches are given, captured once for a device's architecture."""

    def __init__(
        self,
        options: Options,
        device: Device,
        progress: Progress,
        former: WatchedProgram | None = None,
    ) -> None:
        """Where nothing that decides on launches has changed since `former`, its launches are
        taken over, and `assumed` says so until `confirm`."""
        self.options = options
        self.arch = device.info.arch
        source = Path(options.source)
        link = [Path(name) for name in options.link]
        self.toolchain: Toolchain = find(options.cuda_home)
        if device.info.kind == "cuda":
            require_driver_for(self.toolchain.version, load_libcuda())
        progress(f"compiling {source.name} for {self.arch} with nvcc {self.toolchain.version}")
        text = read_ptx(self.toolchain, source, self.arch, options.nvcc_flags, link)
        self.module: Module = parse(text, source.with_suffix(".ptx").name)
        self._demangled = demangle([entry.name for entry in self.module.entries()])
        self._answers = device.answers
        self._progress = progress
        self.given: GivenLaunches | None = None
        self.capture: Capture | None = None
        self.assumed = False
        self._host = host_part(local_files([source, *link])) if is_text(source) else None
        if is_stored(source) and not _is_given(options):
            self.capture = read_stored(source, self.module)
        elif _must_be_given(options, source, link):
            self.given = GivenLaunches(options, self.module, self._demangled)
        elif former is not None and self._launches_like(former):
            self.capture, self.assumed = former.capture, True
        else:
            self.capture = self._captured(options.launch, progress)

    def _launches_like(self, former: WatchedProgram) -> bool:
        signatures = [
            {entry.name: parameter_slots(entry) for entry in one.module.entries()}
            for one in (self, former)
        ]
        return self._host is not None and (self._host, signatures[0], self.options) == (
            former._host,
            signatures[1],
            former.options,
        )

    def confirm(self) -> Capture | None:
        """Runs the program after all; gives what it launched if that is not what was assumed."""
        found = self._captured(self.options.launch, self._progress)
        self.assumed = False
        assert self.capture is not None
        return None if _alike(found, self.capture) else found

    def _captured(self, launch: int | None, progress: Progress) -> Capture:
        options = self.options
        source = Path(options.source)
        if is_stored(source):
            return read_stored(source, self.module)
        progress(f"running {source.name} to capture its launches")
        return capture(
            self.toolchain,
            source,
            self.module,
            self._answers,
            options.arguments,
            options.nvcc_flags,
            max(options.timeout, options.program_timeout),
            link=[Path(name) for name in options.link],
            launch=launch,
        )

    @contextmanager
    def choosing(self, index: int, progress: Progress) -> Iterator[str]:
        """Takes launch `index` in place of its kernel's former one, which is back when the block
        raises; gives the kernel's mangled name. Raises UserError when the program made no such
        launch."""
        former, self.capture = self.capture, self._captured(index, progress)
        try:
            found = (one.kernel for one in self.capture.launches if one.index == index)
            kernel = next(found, None)
            if kernel is None:
                raise UserError(f"there is no launch {index}", hint="choose one with k")
            yield kernel
        except BaseException:
            self.capture = former
            raise

    def demangled(self, mangled: str) -> str:
        return self._demangled[mangled]

    def kernels(self) -> list[KernelChoice]:
        """Every kernel, launched ones first, else in order of the file."""
        found = []
        for entry in self.module.entries():
            launch = self._known_launch(entry.name)
            counts = self.capture.counts if self.capture else {}
            found.append(
                KernelChoice(
                    mangled=entry.name,
                    demangled=self._demangled[entry.name],
                    parameters=_parameters(self._demangled[entry.name]),
                    grid=launch.grid if launch else None,
                    block=launch.block if launch else None,
                    launches=counts.get(entry.name, 0),
                    shapes=self._shapes(entry.name),
                    form=self.given.form(entry.name) if self.given else None,
                    ready=launch is not None
                    or (self.given is not None and self.given.described(entry.name)),
                )
            )
        return sorted(found, key=lambda choice: choice.launches == 0)

    def _shapes(self, mangled: str) -> tuple[LaunchChoice, ...]:
        found: dict[tuple[Dim3, Dim3, int], LaunchChoice] = {}
        for one in self.capture.listed if self.capture else ():
            if one.kernel == mangled and not one.error:
                key = (one.grid, one.block, one.shared_bytes)
                first = found.get(key) or LaunchChoice(one.index, *key, times=0)
                found[key] = replace(first, times=first.times + 1)
        return tuple(found.values())

    def find_kernel(self, wanted: str) -> str:
        """The mangled name of the kernel that `wanted` means; "" means the first launched, or
        that of the launch that was asked for. Raises UserError as `choices.find_kernel` does."""
        kernels = self.kernels()
        if not kernels:
            raise UserError(
                f"{Path(self.options.source).name} has no kernel",
                hint="name a file with a __global__ function",
            )
        if not wanted:
            first = next((one for one in kernels if one.ready), kernels[0])
            return self._wanted_launch() or first.mangled
        names = {one.mangled: (one.mangled, one.demangled) for one in kernels}
        return choices.find_kernel(wanted, names, Path(self.options.source).name)

    def launch(self, mangled: str) -> Launch:
        """The launch of a kernel; raises UserError when there is none or what was given for it
        does not fit."""
        if self.given is not None:
            return self.given.launch(mangled)
        launch = self._known_launch(mangled)
        if launch is None:
            raise self._no_launch(mangled)
        return launch

    @contextmanager
    def giving(self, mangled: str, form: LaunchForm) -> Iterator[str]:
        """Launches a kernel by this form from now on, or as before when the block raises; gives
        its mangled name. Raises UserError when the form does not fit."""
        if self.given is None:
            raise UserError(
                "the launches of this program are its own",
                hint="start gpuwatch with --no-run to give them",
            )
        with self.given.giving(mangled, form):
            yield mangled

    def _no_launch(self, mangled: str) -> UserError:
        failed = self.capture.failure(mangled) if self.capture else None
        if failed is not None:
            return UserError(
                f"launch {failed.index} of {self._demangled[mangled]} failed: {failed.error}",
                hint="mend the launch, or choose a device that can do it with -d",
            )
        return UserError(
            f"the program never launched {self._demangled[mangled]}",
            hint="choose a kernel that it launches (see `gpuwatch kernels`), give the program "
            "other arguments after --, or give the launch: --no-run --grid 64 --block 256",
        )

    def _wanted_launch(self) -> str | None:
        if self.capture is None or self.options.launch is None:
            return None
        wanted = self.options.launch
        found = (one for one in self.capture.launches if one.index == wanted)
        return next((one.kernel for one in found), None)

    def _known_launch(self, mangled: str) -> Launch | None:
        if self.given is not None:
            return self.given.known(mangled)
        launches = self.capture.launches if self.capture else ()
        return next((one for one in launches if one.kernel == mangled), None)


def _must_be_given(options: Options, source: Path, link: list[Path]) -> bool:
    """Whether launches come from flags, a file or a form: as asked, or for want of a main()."""
    if _is_given(options):
        return True
    if source.suffix == ".ptx":
        return True
    return not is_program(source) and not any(map(_has_main, (source, *link)))


def _is_given(options: Options) -> bool:
    """Whether the user says how kernels are launched."""
    return bool(options.no_run or options.grid or options.block or options.values)


def is_text(source: Path) -> bool:
    """Whether it is CUDA source, and neither PTX nor a built program."""
    return source.suffix != ".ptx" and not is_program(source)


def _alike(one: Capture, other: Capture) -> bool:
    """Whether two runs made the same launches, with buffers of the same sizes."""
    sizes = [
        [(launch.kernel, [buffer.nbytes for buffer in launch.buffers]) for launch in run.launches]
        for run in (one, other)
    ]
    return (one.listed, sizes[0]) == (other.listed, sizes[1])


def _has_main(source: Path) -> bool:
    """Whether a source, or a file that it may include, has a main()."""
    text = source.read_text(errors="replace")
    return bool(_MAIN.search(text)) or '#include "' in text


def _parameters(demangled: str) -> tuple[str, ...]:
    """The parameter types of a readable signature, split at its outer commas."""
    _, _, inside = demangled.partition("(")
    parts, depth, current = [], 0, ""
    for character in inside.rpartition(")")[0]:
        depth += (character in "(<[") - (character in ")>]")
        if character == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    return tuple(part for part in (*parts, current.strip()) if part)
