"""The watched program: its PTX, its kernels and what it launched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpuwatch.device.base import Device
from gpuwatch.engine.frame import KernelChoice
from gpuwatch.engine.options import Options
from gpuwatch.errors import UserError
from gpuwatch.launch import Capture, Launch, capture
from gpuwatch.ptx import parse
from gpuwatch.ptx.model import Module
from gpuwatch.toolchain import Toolchain, compile_to_ptx, demangle, find

Progress = Callable[[str], None]

FLAG_HINT = "pass -k with one of these names, or a part that only one of them has"


class WatchedProgram:
    """Compiled and captured once for the architecture of a device."""

    def __init__(self, options: Options, device: Device, progress: Progress) -> None:
        self.options = options
        self.arch = device.info.arch
        source = Path(options.source)
        self.toolchain: Toolchain = find(options.cuda_home)
        progress(f"compiling {source.name} for {self.arch} with nvcc {self.toolchain.version}")
        text = compile_to_ptx(self.toolchain, source, self.arch, options.nvcc_flags)
        self.module: Module = parse(text, source.with_suffix(".ptx").name)
        progress(f"running {source.name} to capture its launches")
        self.capture: Capture = capture(
            self.toolchain,
            source,
            self.module,
            device.answers,
            options.arguments,
            options.nvcc_flags,
        )
        names = [entry.name for entry in self.module.entries()]
        self._demangled = demangle(names)

    def demangled(self, mangled: str) -> str:
        return self._demangled[mangled]

    def kernels(self) -> list[KernelChoice]:
        """Every kernel of the file, launched ones first, else in order of the file."""
        choices = []
        for entry in self.module.entries():
            launch = self._first_launch(entry.name)
            choices.append(
                KernelChoice(
                    mangled=entry.name,
                    demangled=self._demangled[entry.name],
                    parameters=_parameters(self._demangled[entry.name]),
                    grid=launch.grid if launch else None,
                    block=launch.block if launch else None,
                    launches=self.capture.counts.get(entry.name, 0),
                )
            )
        return sorted(choices, key=lambda choice: choice.launches == 0)

    def find_kernel(self, wanted: str) -> str:
        """The mangled name of the kernel that `wanted` means; "" means the first launched.

        Exact mangled or demangled names (with or without parameters) win over parts.
        Raises UserError, listing the kernels, when none or several match.
        """
        choices = self.kernels()
        if not wanted:
            return choices[0].mangled
        exact = [c for c in choices if wanted in _names(c)]
        part = [c for c in choices if wanted in c.mangled or wanted in c.demangled]
        found = exact or part
        if len(found) == 1:
            return found[0].mangled
        listed = "\n".join(f"  {c.demangled}" for c in (found or choices))
        problem = "matches several kernels" if found else "matches no kernel"
        raise UserError(
            f"{wanted!r} {problem} of {Path(self.options.source).name}",
            detail=listed,
            hint=FLAG_HINT,
        )

    def launch(self, mangled: str) -> Launch:
        """The captured launch of a kernel; raises UserError when the program made none."""
        launch = self._first_launch(mangled)
        if launch is None:
            raise UserError(
                f"the program never launched {self._demangled[mangled]}",
                hint="choose a kernel that it launches (see `gpuwatch kernels`), or give the "
                "program other arguments after --",
            )
        return launch

    def _first_launch(self, mangled: str) -> Launch | None:
        return next((one for one in self.capture.launches if one.kernel == mangled), None)


def _names(choice: KernelChoice) -> tuple[str, str, str]:
    return choice.mangled, choice.demangled, choice.demangled.partition("(")[0]


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
