"""The CUDA driver through PyCUDA: opened once, every failure told with what mends it."""

from __future__ import annotations

import ctypes
from typing import Any

from gpuwatch.errors import UserError

_INSTALL_HINT = "install it with `make cuda`, or `pip install '.[cuda]'`; see `gpuwatch doctor`"


def load_libcuda() -> str:
    """Loads the driver's library; returns its version, "13.0".

    Raises UserError when there is none or it refuses to start.
    """
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError as problem:
        raise UserError(
            "no NVIDIA driver: libcuda.so.1 cannot be loaded",
            detail=str(problem),
            hint="install NVIDIA's driver, or use the simulated device: -d sim",
        ) from problem
    status = library.cuInit(0)
    if status != 0:
        raise UserError(
            f"the NVIDIA driver does not start: {_error_name(library, status)}",
            hint="check `nvidia-smi`; a GPU in exclusive mode, a missing device node or a driver "
            "in the middle of an update answers so; -d sim works without one",
        )
    version = ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(version))
    return f"{version.value // 1000}.{version.value % 1000 // 10}"


def _error_name(library: ctypes.CDLL, status: int) -> str:
    name = ctypes.c_char_p()
    library.cuGetErrorName(status, ctypes.byref(name))
    return (name.value or b"unknown error").decode() + f" ({status})"


def import_pycuda() -> Any:
    """PyCUDA's driver module, initialised.

    Raises UserError when PyCUDA is missing, or does not fit the driver on this machine.
    """
    load_libcuda()
    try:
        import pycuda.driver as driver
    except ModuleNotFoundError as problem:
        raise UserError("PyCUDA is not installed", hint=_INSTALL_HINT) from problem
    except ImportError as problem:
        raise UserError(
            "PyCUDA does not load: it was built against another CUDA or Python",
            detail=str(problem),
            hint="rebuild it: pip install --no-binary :all: --force-reinstall pycuda",
        ) from problem
    driver.init()
    return driver


def device_count() -> int:
    """How many GPUs the driver shows. Raises UserError as `import_pycuda` does."""
    return int(import_pycuda().Device.count())
