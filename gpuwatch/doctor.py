"""`gpuwatch doctor`: what works on this machine, and the command that mends the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial

from rich.console import Console

from gpuwatch import __version__
from gpuwatch.device import open_device
from gpuwatch.device.cuda import (
    Gpu,
    NoGpuError,
    import_pycuda,
    load_libcuda,
    open_cuda,
    require_driver_for,
    require_usable,
    shown_gpus,
)
from gpuwatch.engine.time_axis import measure_twice
from gpuwatch.errors import UserError
from gpuwatch.inject.library import find_cupti, require_compiler
from gpuwatch.toolchain import find, ncu, nvidia_smi
from gpuwatch.toolchain.disassemble import find_disassembler
from gpuwatch.toolchain.find import require_host_compiler
from gpuwatch.toolchain.nvidia_smi import SmiGpu
from gpuwatch.toolchain.targets import require_target

_DRIFT_SECONDS = 1.0


def doctor(console: Console) -> int:
    """Prints one line per part; returns 1 when the simulated device cannot work, else 0."""
    console.print(f"gpuwatch {__version__}")
    has_toolchain = _line(console, "toolchain", _toolchain)
    needed = [
        has_toolchain,
        _line(console, "host compiler", require_host_compiler),
        _line(console, "simulated GPU", lambda: _name_of("sim")),
    ]
    if _line(console, "driver", lambda: _driver(nvidia_smi.ask())):
        if has_toolchain:
            _line(console, "driver for this toolkit", _driver_for_toolkit)
        has_binding = _line(console, "PyCUDA", _pycuda)
        for gpu in shown_gpus():
            _gpu_lines(console, gpu, has_binding=has_binding, has_toolchain=has_toolchain)
    _line(console, "Nsight Compute (not needed)", _ncu)
    if has_toolchain:
        _line(console, "CUPTI (for `gpuwatch run`)", _cupti)
        _line(console, "nvdisasm (marks lines that ptxas changed)", _disassembler)
    return 0 if all(needed) else 1


def _line(console: Console, what: str, check: Callable[[], str]) -> bool:
    say = partial(console.print, markup=False)
    try:
        say(f"  ok       {what}: {check()}")
    except UserError as problem:
        say(f"  missing  {what}: {problem.message}")
        if problem.hint:
            say(f"           {problem.hint}")
        return False
    return True


def _gpu_lines(console: Console, gpu: Gpu, *, has_binding: bool, has_toolchain: bool) -> None:
    spec = f"cuda:{gpu.index}"
    opens = _line(console, spec, partial(_gpu, gpu, opened=has_binding))
    fits = has_toolchain and _line(console, f"nvcc for {spec}", partial(_target, gpu))
    if opens and fits and has_binding:
        _line(console, f"time axis of {spec}", partial(_time_axis, gpu))


def _toolchain() -> str:
    found = find()
    return f"nvcc {found.version}, found through {found.origin}"


def _driver(machine: Sequence[SmiGpu]) -> str:
    """Its version, once it has told of its GPUs; `machine` is what nvidia-smi shows."""
    try:
        version = load_libcuda()
    except NoGpuError as problem:
        raise _with_mig(problem, machine) from problem
    shown_gpus()
    release = f", release {machine[0].release}" if machine else ""
    return f"CUDA {version}{release}"


def _driver_for_toolkit() -> str:
    toolkit = find().version
    require_driver_for(toolkit, load_libcuda())
    return f"runs code of nvcc {toolkit}"


def _with_mig(problem: NoGpuError, machine: Sequence[SmiGpu]) -> UserError:
    """That no GPU is shown, or that the only ones are in MIG mode without an instance."""
    parted = [one for one in machine if one.mig]
    if not parted or len(parted) < len(machine):
        return problem
    first = parted[0].index
    return UserError(
        f"GPU {first} ({parted[0].name}) is in MIG mode, and no instance of it is shown",
        hint=f"as root make one: nvidia-smi mig -i {first} -cgi 0 -C; or end the mode: "
        f"nvidia-smi -i {first} -mig 0; an instance that nvidia-smi -L lists is chosen with "
        "CUDA_VISIBLE_DEVICES=MIG-...",
    )


def _pycuda() -> str:
    binding = import_pycuda()
    major, minor, _ = binding.get_version()
    return f"built for CUDA {major}.{minor}"


def _gpu(gpu: Gpu, *, opened: bool) -> str:
    """What the GPU is; with PyCUDA it is opened."""
    require_usable(gpu)
    if opened:
        _name_of(f"cuda:{gpu.index}")
    return gpu.described


def _target(gpu: Gpu) -> str:
    require_target(find(), gpu.arch)
    return f"makes code for {gpu.arch}"


def _time_axis(gpu: Gpu) -> str:
    with closing(open_cuda(gpu.index)) as device:
        axis = measure_twice(device, find(), _DRIFT_SECONDS)
    if axis is None:
        raise UserError(
            "the GPU's timer gives none for all SMs", hint="SMs are shown one by one, in cycles"
        )
    return axis.described


def _ncu() -> str:
    return f"{ncu.find_ncu()}, for `gpuwatch report --ncu`"


def _cupti() -> str:
    return f"{find_cupti(find()).library.name}, built into a library by {require_compiler()}"


def _disassembler() -> str:
    return str(find_disassembler(find()))


def _name_of(spec: str) -> str:
    device, _note = open_device(spec)
    name = device.info.name
    device.close()
    return name
