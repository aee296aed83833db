"""A launch as data: captured from the program's own main(), or given.

What there is to call, in the order of use:

`read_ptx(toolchain, source, arch, flags, link)` gives the PTX of CUDA sources, of a PTX file or
of a program that is already built, always as one module.

`capture(toolchain, source, module, answers, arguments, flags, timeout, link=, launch=)` runs the
program without a GPU and gives a `Capture`: all launches as `LaunchRecord`s, and as `Launch`es,
with contents, the first of each kernel or the one with the index `launch`.
"""

from gpuwatch.launch.capture import capture
from gpuwatch.launch.model import (
    Capture,
    DeviceAnswers,
    Launch,
    LaunchRecord,
    ParameterSlot,
    Pointers,
    Relocation,
    SymbolRelocation,
)
from gpuwatch.launch.parameters import parameter_slots
from gpuwatch.launch.source import read_ptx

__all__ = [
    "Capture",
    "DeviceAnswers",
    "Launch",
    "LaunchRecord",
    "ParameterSlot",
    "Pointers",
    "Relocation",
    "SymbolRelocation",
    "capture",
    "parameter_slots",
    "read_ptx",
]
