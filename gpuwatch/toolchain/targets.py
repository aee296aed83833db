"""Which GPU architectures a toolkit makes code for."""

from __future__ import annotations

import functools
import re
from pathlib import Path

from gpuwatch.errors import UserError
from gpuwatch.toolchain.model import Toolchain
from gpuwatch.toolchain.process import run

_SECONDS = 30.0
_TARGET = re.compile(r"^sm_(\d+)$", re.M)


def require_target(toolchain: Toolchain, arch: str) -> None:
    """Raises UserError when nvcc makes no code for `arch`, like "sm_70" or "70"."""
    problem = target_problem(arch, _targets(toolchain.nvcc), toolchain.version)
    if problem is not None:
        raise problem


def target_problem(arch: str, targets: tuple[int, ...], version: str) -> UserError | None:
    """Why `arch` is not one of nvcc's `targets` (75 for sm_75), if it is not; unknown targets
    count as all."""
    number = int("".join(c for c in arch if c.isdigit()))
    if not targets or number in targets:
        return None
    if number < min(targets):
        return UserError(
            f"nvcc {version} no longer makes code for sm_{number}: its oldest is sm_{min(targets)}",
            hint="use an older toolkit: --cuda-home DIR, or CUDA_HOME=DIR",
        )
    return UserError(
        f"nvcc {version} does not know sm_{number} yet: its newest is sm_{max(targets)}",
        hint="use a newer toolkit: --cuda-home DIR, or CUDA_HOME=DIR",
    )


@functools.cache
def _targets(nvcc: Path) -> tuple[int, ...]:
    done = run([nvcc, "--list-gpu-code"], timeout=_SECONDS)
    return tuple(map(int, _TARGET.findall(done.output)))
