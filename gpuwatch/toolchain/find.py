"""Where nvcc and ptxas are."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from gpuwatch.errors import UserError
from gpuwatch.toolchain.model import Toolchain
from gpuwatch.toolchain.process import run

WHEEL = "nvidia-cuda-nvcc"
INSTALL_HINT = (
    'install the compiler with: pip install "cuda-toolkit[nvcc,cudart,cccl]==13.0.*"; '
    "or set CUDA_HOME to a CUDA installation"
)
_VERSION_SECONDS = 30.0


def find(cuda_home: str | Path | None = None) -> Toolchain:
    """The first of: `cuda_home` or the CUDA_HOME variable, PATH, the pip wheels.

    A folder that was named must hold nvcc and ptxas; the other places may lack them. Raises
    UserError when no place has both.
    """
    named = cuda_home or os.environ.get("CUDA_HOME")
    if named:
        return _from_home(Path(named), "argument" if cuda_home else "CUDA_HOME")
    places: tuple[tuple[str, Callable[[], Iterator[Path]]], ...] = (
        ("PATH", _on_path),
        ("pip", _in_wheels),
    )
    for origin, candidates in places:
        for nvcc in candidates():
            ptxas = _ptxas_beside(nvcc)
            if ptxas is not None:
                return Toolchain(nvcc, ptxas, version_of(nvcc), origin)
    raise UserError(
        "no CUDA compiler: neither nvcc with ptxas on PATH nor in the pip wheels", hint=INSTALL_HINT
    )


def require_host_compiler() -> str:
    """The host C++ compiler that nvcc would find; raises UserError when there is none."""
    named = os.environ.get("NVCC_CCBIN")
    if named:
        return named
    missing = [name for name in ("gcc", "g++") if shutil.which(name) is None]
    if missing:
        raise UserError(
            f"nvcc needs a host C++ compiler, and PATH has no {' and no '.join(missing)}",
            hint="install it (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++), "
            "or set NVCC_CCBIN to one",
        )
    return str(shutil.which("g++"))


def _from_home(home: Path, origin: str) -> Toolchain:
    nvcc, ptxas = home / "bin" / "nvcc", home / "bin" / "ptxas"
    missing = [tool.name for tool in (nvcc, ptxas) if not os.access(tool, os.X_OK)]
    if missing:
        raise UserError(
            f"{home / 'bin'} has no {' and no '.join(missing)}",
            hint="name the folder of a CUDA installation (the one that holds bin/nvcc), "
            "or name none",
        )
    return Toolchain(nvcc, ptxas, version_of(nvcc), origin)


def _on_path() -> Iterator[Path]:
    found = shutil.which("nvcc")
    if found:
        yield Path(found)


def _in_wheels() -> Iterator[Path]:
    try:
        files = importlib.metadata.distribution(WHEEL).files or []
    except importlib.metadata.PackageNotFoundError:
        return
    for file in files:
        if file.name == "nvcc" and file.parent.name == "bin":
            yield Path(str(file.locate())).resolve()


def _ptxas_beside(nvcc: Path) -> Path | None:
    for folder in (nvcc.parent, nvcc.resolve().parent):
        if os.access(folder / "ptxas", os.X_OK):
            return folder / "ptxas"
    found = shutil.which("ptxas")
    return Path(found) if found else None


@functools.cache
def version_of(tool: Path, hint: str = INSTALL_HINT) -> str:
    """The tool's own version, like "13.0.88". Raises UserError with `hint` when it tells none."""
    said = run([tool, "--version"], timeout=_VERSION_SECONDS, hint=hint)
    match = re.search(r"\bV(\d+(?:\.\d+)+)", said.output)
    if said.status != 0 or match is None:
        raise UserError(f"{tool} does not tell its version", detail=said.output, hint=hint)
    return match[1]
