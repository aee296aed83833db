"""The kernels of a source: listing them and finding one by name."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.engine.frame import KernelChoice
from gpuwatch.errors import UserError
from gpuwatch.launch.model import Capture
from gpuwatch.ptx.model import Module
from gpuwatch.toolchain import demangle


def kernel_choices(module: Module, capture: Capture) -> list[KernelChoice]:
    """Every entry of `module`, with the shape of its first launch and how often it ran."""
    entries = module.entries()
    readable = demangle(entry.name for entry in entries)
    first = {launch.kernel: launch for launch in reversed(capture.launches)}
    choices = []
    for entry in entries:
        launch = first.get(entry.name)
        choices.append(
            KernelChoice(
                mangled=entry.name,
                demangled=readable[entry.name],
                parameters=tuple(parameter.type for parameter in entry.parameters),
                grid=launch.grid if launch else None,
                block=launch.block if launch else None,
                launches=capture.counts.get(entry.name, 0),
            )
        )
    return choices


def find_kernel(choices: Sequence[KernelChoice], name: str | None) -> KernelChoice:
    """The kernel called `name`: exactly (mangled or not), else as the only one containing it.

    No name means the kernel that was launched first among those launched. Raises UserError,
    listing the kernels, when none or several fit.
    """
    launched = [choice for choice in choices if choice.launches]
    if name is None:
        if not launched:
            raise _refusal("the program launched no kernel", choices)
        return launched[0]
    exact = [c for c in choices if name in (c.mangled, c.demangled, _bare(c.demangled))]
    fitting = exact or [c for c in choices if name in c.demangled or name in c.mangled]
    if len(fitting) != 1:
        problem = "several kernels match" if fitting else "no kernel is called"
        raise _refusal(f"{problem} {name!r}", fitting or choices)
    if not fitting[0].launches:
        raise _refusal(f"the program never launched {fitting[0].demangled}", launched or choices)
    return fitting[0]


def _bare(demangled: str) -> str:
    return demangled.partition("(")[0]


def _refusal(message: str, choices: Sequence[KernelChoice]) -> UserError:
    listed = "\n".join(f"  {choice.demangled}  ({choice.launches} launches)" for choice in choices)
    return UserError(
        message,
        detail=f"kernels:\n{listed}" if listed else "the source has no kernel",
        hint="name one by its whole name, or run the program so that it launches it",
    )
