"""The machine code of a cubin as text, by nvdisasm."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import tempfile
from pathlib import Path

from gpuwatch import cache
from gpuwatch.errors import UserError
from gpuwatch.toolchain.find import version_of
from gpuwatch.toolchain.model import Toolchain
from gpuwatch.toolchain.process import run

SECONDS = 120.0
"""Time limit of one run of nvdisasm."""
PROGRAM = "nvdisasm"
WHEEL = "nvidia-cuda-nvdisasm"
INSTALL_HINT = f"install it with: pip install {WHEEL}"


def find_disassembler(toolchain: Toolchain) -> Path:
    """nvdisasm beside nvcc, on PATH or in its pip wheel. Raises UserError when there is none."""
    for folder in (toolchain.nvcc.parent, toolchain.nvcc.resolve().parent):
        if os.access(folder / PROGRAM, os.X_OK):
            return folder / PROGRAM
    found = shutil.which(PROGRAM) or _in_wheel()
    if found is None:
        raise UserError(f"there is no {PROGRAM}", hint=INSTALL_HINT)
    return Path(found)


def disassemble(toolchain: Toolchain, cubin: bytes) -> str:
    """The code of every function of `cubin` with source lines, inlined ones included; cached by
    content. Raises UserError when there is no disassembler, or it refuses the cubin."""
    tool = find_disassembler(toolchain)
    key = cache.key_of(["disassemble", version_of(tool, INSTALL_HINT), cubin])
    known = cache.load("sass", key)
    if known is not None:
        return known.decode()
    text = _run(tool, cubin)
    cache.store("sass", key, text.encode())
    return text


def _run(tool: Path, cubin: bytes) -> str:
    with tempfile.TemporaryDirectory(prefix="gpuwatch-") as name:
        file = Path(name) / "kernel.cubin"
        file.write_bytes(cubin)
        done = run([tool, "-c", "-gi", file], timeout=SECONDS, environment={"TMPDIR": name})
    if done.timed_out:
        raise UserError(f"{PROGRAM} took longer than {SECONDS:.0f} s", status=1)
    if done.status != 0:
        older = f"{tool} may be older than ptxas; {INSTALL_HINT}"
        raise UserError(f"{PROGRAM} refused the cubin", detail=done.output, hint=older)
    return done.output


def _in_wheel() -> str | None:
    try:
        files = importlib.metadata.distribution(WHEEL).files or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((str(file.locate()) for file in files if file.name == PROGRAM), None)
