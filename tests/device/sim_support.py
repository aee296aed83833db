"""Running small CUDA kernels on the simulated device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpuwatch.device.base import KernelImage
from gpuwatch.device.sim import open_sim
from gpuwatch.launch.model import Dim3, Launch, ParameterSlot, Relocation
from gpuwatch.toolchain import compile_to_ptx, find


@dataclass
class Outcome:
    buffers: list[NDArray[np.generic]]
    seconds: float
    instructions: int | None


def ptx_of(folder: Path, source: str) -> str:
    path = folder / "kernel.cu"
    path.write_text(source)
    return compile_to_ptx(find(), path, "sm_86")


def launch_of(
    kernel: str,
    grid: Dim3,
    block: Dim3,
    arguments: Sequence[NDArray[np.generic] | np.generic],
    shared: int = 0,
) -> Launch:
    """Arrays become buffers, numpy scalars values."""
    parameters = bytearray()
    relocations: list[Relocation] = []
    buffers: list[NDArray[np.uint8]] = []
    slots: list[ParameterSlot] = []
    for argument in arguments:
        is_array = isinstance(argument, np.ndarray)
        size = 8 if is_array else argument.nbytes
        parameters += bytes(-len(parameters) % size)
        slots.append(
            ParameterSlot(f"parameter {len(slots)}", f".b{8 * size}", len(parameters), size)
        )
        if isinstance(argument, np.ndarray):
            relocations.append(Relocation(len(parameters), len(buffers), 0))
            buffers.append(np.ascontiguousarray(argument).reshape(-1).view(np.uint8))
            parameters += bytes(8)
        else:
            parameters += argument.tobytes()
    return Launch(
        kernel, grid, block, shared, tuple(slots), bytes(parameters), tuple(relocations), buffers
    )


def run(
    ptx: str,
    kernel: str,
    grid: Dim3,
    block: Dim3,
    arguments: Sequence[NDArray[np.generic] | np.generic],
    *,
    shared: int = 0,
    threads: int | None = None,
    timeout: float = 10.0,
) -> Outcome:
    device = open_sim("a10", threads=threads, timeout=timeout)
    launch = launch_of(kernel, grid, block, arguments, shared)
    loaded = device.load(KernelImage(kernel, ptx, b"", 32, 0), launch, [])
    try:
        result = loaded.run()
        arrays = [a for a in arguments if isinstance(a, np.ndarray)]
        raw = loaded.read_buffers()
        shaped = [b.view(a.dtype).reshape(a.shape) for b, a in zip(raw, arrays, strict=True)]
        return Outcome(shaped, result.kernel_seconds, result.thread_instructions)
    finally:
        loaded.close()
