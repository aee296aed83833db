"""`gpuwatch doctor`: what works on this machine, and the command that mends the rest."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console

from gpuwatch import __version__
from gpuwatch.device import open_device
from gpuwatch.device.cuda import device_count, load_libcuda
from gpuwatch.errors import UserError
from gpuwatch.toolchain import find
from gpuwatch.toolchain.find import require_host_compiler


def doctor(console: Console) -> int:
    """Prints one line per part; returns 1 when the simulated device cannot work, else 0."""
    console.print(f"gpuwatch {__version__}")
    needed = [
        _line(console, "toolchain", _toolchain),
        _line(console, "host compiler", require_host_compiler),
        _line(console, "simulated GPU", lambda: _name_of("sim")),
    ]
    for what, check in (("NVIDIA driver", _driver), ("PyCUDA and GPUs", _gpus)):
        _line(console, what, check)
    return 0 if all(needed) else 1


def _line(console: Console, what: str, check: Callable[[], str]) -> bool:
    try:
        console.print(f"  ok       {what}: {check()}")
    except UserError as problem:
        console.print(f"  missing  {what}: {problem.message}")
        if problem.hint:
            console.print(f"           {problem.hint}")
        return False
    return True


def _toolchain() -> str:
    found = find()
    return f"nvcc {found.version}, found through {found.origin}"


def _driver() -> str:
    return f"CUDA {load_libcuda()}"


def _gpus() -> str:
    names = [_name_of(f"cuda:{index}") for index in range(device_count())]
    return ", ".join(f"cuda:{index} {name}" for index, name in enumerate(names)) or "no GPU"


def _name_of(spec: str) -> str:
    device, _note = open_device(spec)
    name = device.info.name
    device.close()
    return name
