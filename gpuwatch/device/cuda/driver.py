"""The CUDA driver's library: found, started, and old or new enough for a toolkit."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from gpuwatch.errors import UserError

LIBRARY = "libcuda.so.1"
_NO_DEVICE = 100
_KERNEL_MODULE = Path("/proc/driver/nvidia/version")
_NO_START = {
    2: ("the GPU has no memory left", "close other programs on it: nvidia-smi lists them"),
    34: (
        f"the {LIBRARY} that was found is a toolkit's stub, not the driver's",
        "take folders named stubs out of LD_LIBRARY_PATH",
    ),
    46: (
        "every GPU is held by another process, or prohibited",
        "see compute mode and processes in nvidia-smi; as root: nvidia-smi -c DEFAULT",
    ),
    _NO_DEVICE: (
        "the driver shows no GPU",
        "CUDA_VISIBLE_DEVICES may hide it; a GPU in MIG mode shows only instances, which "
        "nvidia-smi -L lists: as root make one with `nvidia-smi mig -cgi 0 -C`, or end the mode "
        "with `nvidia-smi -mig 0`",
    ),
    101: (
        "CUDA_VISIBLE_DEVICES names no GPU of this machine",
        "nvidia-smi -L lists them; unset CUDA_VISIBLE_DEVICES to see all",
    ),
    102: ("this virtual GPU has no licence", "nvidia-smi -q tells its licence status"),
    304: (
        "the driver's device nodes are missing or closed to this user",
        "on the host: sudo nvidia-modprobe -u -c 0; in a container: start it with --gpus all",
    ),
    802: (
        "the GPUs are not ready: their fabric is not set up",
        "sudo systemctl start nvidia-fabricmanager",
    ),
    803: (
        "the driver's library and its kernel module are of different releases",
        "the driver was updated under way: reboot, or in a container use the host's libraries",
    ),
    804: (
        "the cuda-compat package in use does not support this GPU",
        "take its folder out of LD_LIBRARY_PATH, and update the driver instead",
    ),
    805: (
        "the MPS daemon does not answer",
        "restart it: echo quit | nvidia-cuda-mps-control; nvidia-cuda-mps-control -d",
    ),
    999: ("the driver's kernel module is not loaded", "sudo nvidia-modprobe -u -c 0, or reboot"),
}
"""What a CUresult of cuInit means, and what mends it (cuda.h 13.0)."""
_LEAST_RELEASE = {11: 450, 12: 525, 13: 580}
"""The first driver release that runs code of a toolkit of each major version, by NVIDIA's "CUDA
Compatibility"."""


class NoGpuError(UserError):
    """The driver shows no GPU."""


def open_library(name: str = LIBRARY, kernel_module: Path = _KERNEL_MODULE) -> Any:
    """The driver's library, not started. Raises UserError when there is none."""
    try:
        return ctypes.CDLL(name)
    except OSError as problem:
        hint = "install NVIDIA's driver, or use the simulated device: -d sim"
        if kernel_module.exists():
            hint = (
                "its kernel module is loaded, so this is a container without the driver's "
                "libraries (start it with --gpus all), or they are not on ldconfig's path"
            )
        raise UserError(
            f"no NVIDIA driver: {LIBRARY} cannot be loaded", detail=str(problem), hint=hint
        ) from problem


def start(library: Any) -> str:
    """Starts the driver; returns the CUDA version that it is made for, "13.0".

    Raises UserError that says why it refuses to start, NoGpuError where it shows no GPU.
    """
    status = library.cuInit(0)
    if status != 0:
        message, hint = _NO_START.get(
            status, ("it refuses", "check `nvidia-smi`; -d sim works without a driver")
        )
        kind = NoGpuError if status == _NO_DEVICE else UserError
        raise kind(
            f"the NVIDIA driver does not start: {message} ({error_name(library, status)})",
            hint=hint,
        )
    version = ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(version))
    return f"{version.value // 1000}.{version.value % 1000 // 10}"


def load_libcuda() -> str:
    """Loads and starts the driver; returns its version as `start` does.

    Raises UserError when there is none or it refuses to start.
    """
    return start(open_library())


def require_driver_for(toolkit: str, driver: str) -> None:
    """Raises UserError when a driver for CUDA `driver`, like "12.4", does not run code of the
    toolkit `toolkit`, like "13.0.88"."""
    wanted, there = _major(toolkit), _major(driver)
    if there >= wanted:
        return
    release = _LEAST_RELEASE.get(wanted)
    newer = f"release {release} or newer" if release else "a newer release"
    raise UserError(
        f"the NVIDIA driver is older than the toolkit: it runs CUDA {driver}, "
        f"and nvcc makes code for {toolkit}",
        hint=f"update the driver to {newer}, or use a toolkit of CUDA {there}: --cuda-home DIR, "
        "or CUDA_HOME=DIR",
    )


def _major(version: str) -> int:
    return int(version.partition(".")[0])


def error_name(library: Any, status: int) -> str:
    """What the driver calls a CUresult, with its number."""
    name = ctypes.c_char_p()
    library.cuGetErrorName(status, ctypes.byref(name))
    return f"{(name.value or b'unknown error').decode()}, {status}"
