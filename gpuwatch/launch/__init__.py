"""A launch as data: captured from the program's own main(), or given.

In the order of use:

PTX of CUDA sources, of a PTX file or of a program that is already built, always as one module:

    text = read_ptx(toolchain, source, arch, flags, link)

Capture runs the program without a GPU. `capture.listed` are all launches (`LaunchRecord`, with
`error` where one failed), `capture.launches` those with contents: the first of each kernel, in
place of one kernel's first the one with index `launch`; `capture.failure(kernel)` says why there
is none:

    capture(toolchain, source, module, answers, arguments, flags, timeout, link=[], launch=None)

Given launches start from a signature; names of parameters come from the texts `sources`. A
`LaunchForm` holds a launch as editable texts (values: see `gpuwatch.launch.values`):

    signature = read_signature(module, kernel, demangled, sources)
    form = form_from_flags("32,43", "32,24", "0", ["A=f32[1024]:uniform", "M=1024"])
    form = form_from_toml(path, signature)    # path = launch_file(source); see .table
    form = remembered(key, signature) or guess_form(signature)
    launch_from_form(signature, form)
    remember(key, form)                       # key = form_key(str(source), kernel)

All of them raise UserError for what the user can mend.
"""

from gpuwatch.launch.binary import is_program
from gpuwatch.launch.capture import capture
from gpuwatch.launch.given import (
    LaunchForm,
    form_from_flags,
    launch_from_form,
)
from gpuwatch.launch.guess import form_key, guess_form, remember, remembered
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
from gpuwatch.launch.signature import KernelParameter, KernelSignature, read_signature
from gpuwatch.launch.source import read_ptx
from gpuwatch.launch.table import form_from_toml, launch_file

__all__ = [
    "Capture",
    "DeviceAnswers",
    "KernelParameter",
    "KernelSignature",
    "Launch",
    "LaunchForm",
    "LaunchRecord",
    "ParameterSlot",
    "Pointers",
    "Relocation",
    "SymbolRelocation",
    "capture",
    "form_from_flags",
    "form_from_toml",
    "form_key",
    "guess_form",
    "is_program",
    "launch_file",
    "launch_from_form",
    "parameter_slots",
    "read_ptx",
    "read_signature",
    "remember",
    "remembered",
]
