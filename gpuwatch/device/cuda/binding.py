"""PyCUDA: imported, every failure told with what mends it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuwatch.device.cuda.driver import load_libcuda
from gpuwatch.errors import UserError

INSTALL = "install it: make cuda; or, with a CUDA toolkit on PATH: pip install '.[cuda]'"
REBUILD = (
    "build it again: make cuda; or, with a CUDA toolkit on PATH: "
    "pip install --force-reinstall --no-cache-dir --no-binary pycuda pycuda"
)
_IMPORT_PROBLEMS: tuple[tuple[str, str], ...] = (
    ("undefined symbol: cu", "PyCUDA was built for a newer CUDA than the driver's, {driver}"),
    ("libcurand", "PyCUDA was built with the cuRAND of another toolkit"),
    ("undefined symbol: _Py", "PyCUDA was built for another Python"),
    ("undefined symbol: Py", "PyCUDA was built for another Python"),
    ("numpy", "PyCUDA was built for another numpy"),
    ("libstdc++", "PyCUDA was built with a newer C++ library than is here"),
)
"""What the loader says, and what it means."""


def import_pycuda() -> Any:
    """PyCUDA's driver module, initialised.

    Raises UserError when PyCUDA is missing, or does not fit the driver on this machine.
    """
    version = load_libcuda()
    try:
        import pycuda.driver as driver
    except ImportError as problem:
        raise import_problem(problem, version) from problem
    require_fit(driver.get_version(), version)
    driver.init()
    return driver


def import_problem(problem: ImportError, driver: str) -> UserError:
    """Why PyCUDA cannot be imported beside a driver for CUDA `driver`."""
    words = str(problem)
    missing = problem.name if isinstance(problem, ModuleNotFoundError) else None
    if missing == "pycuda":
        return UserError("PyCUDA is not installed", hint=INSTALL)
    if missing is not None and missing.startswith("pycuda."):
        return UserError("PyCUDA was built for another Python", detail=words, hint=REBUILD)
    if missing is not None and missing != "numpy":
        return UserError(f"PyCUDA lacks {missing}", hint=f"pip install {missing}")
    for sign, message in _IMPORT_PROBLEMS:
        if sign in words:
            return UserError(message.format(driver=driver), detail=words, hint=REBUILD)
    return UserError(
        "PyCUDA does not load: it was built against something else", detail=words, hint=REBUILD
    )


def require_fit(built: Sequence[int], driver: str) -> None:
    """Raises UserError when PyCUDA, built for CUDA `built`, like (13, 0, 0), is of a later major
    version than the driver, like "12.4"."""
    if built[0] > int(driver.partition(".")[0]):
        raise UserError(
            f"PyCUDA was built for CUDA {built[0]}.{built[1]}, and the driver is for {driver}",
            hint="update the driver, or build it with headers of that version: "
            "make cuda CUDA_HOME=DIR",
        )
