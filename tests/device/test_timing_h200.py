"""Modelled kernel times against those measured on an H200, for kernels that run quickly here.

All kernels and the elapsed cycles are in tests/benchmarks/timing.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sim_support import launch_of

from gpuwatch import ptx
from gpuwatch.device.base import KernelImage
from gpuwatch.device.sim import open_sim
from gpuwatch.toolchain import compile_to_ptx, find

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
KERNELS = BENCHMARKS / "kernels"
MEASURED = {
    kernel["name"]: kernel
    for kernel in json.loads((BENCHMARKS / "h200_timing.json").read_text())["kernels"]
}
Arguments = Sequence[NDArray[np.generic] | np.generic]
MEGA = 1 << 20


def floats(count: int) -> NDArray[np.float32]:
    return np.random.default_rng(1).random(count, np.float32)


def words(count: int, below: int) -> NDArray[np.uint32]:
    return np.random.default_rng(1).integers(0, below, count, np.uint32)


def zeros(count: int) -> NDArray[np.float32]:
    return np.zeros(count, np.float32)


def image(side: int) -> Arguments:
    return [floats(side * side), zeros(side * side), np.int32(side)]


ARGUMENTS: dict[str, Callable[[], Arguments]] = {
    "gemm": lambda: [*(floats(MEGA) for _ in range(3)), *[np.int32(1024)] * 3],
    "atomics_global": lambda: [words(MEGA, 4096), zeros(4096)],
    "collatz": lambda: [zeros(MEGA // 2)],
    "exponentials": lambda: [floats(MEGA), zeros(MEGA)],
    "gather": lambda: [words(8 * MEGA, 8 * MEGA), zeros(MEGA // 4)],
    "histogram_shared": lambda: [words(4 * MEGA, MEGA), zeros(256), np.int32(4 * MEGA)],
    "low_occupancy": lambda: [floats(8192), zeros(528 * 64), np.int32(1000)],
    "mandelbrot": lambda: [zeros(MEGA), *map(np.int32, (1024, 1024, 256))],
    "nbody": lambda: [floats(4 * 16384), zeros(4 * 16384), np.int32(16384)],
    "polynomial_fp64": lambda: [floats(MEGA), zeros(2 * MEGA)],
    "reduce_shared": lambda: [floats(8 * MEGA), zeros(8192)],
    "reduce_shuffle": lambda: [words(8 * MEGA, 100), zeros(1), np.int32(8 * MEGA)],
    "saxpy_strided": lambda: [
        np.float32(1.5), floats(4 * MEGA), floats(4 * MEGA), *map(np.int32, (4 * MEGA, 8))
    ],
    "stencil": lambda: image(2048),
    "transpose_naive": lambda: image(2048),
    "transpose_shared": lambda: image(2048),
    "vector_add": lambda: [*(floats(8 * MEGA) for _ in range(3)), np.int32(8 * MEGA)],
}  # fmt: skip
SHARED = {"low_occupancy": 100 * 1024}


def source_of(name: str) -> Path:
    own = KERNELS / f"{name}.cu"
    return own if own.exists() else Path(__file__).parents[2] / "kernels" / f"{name}.cu"


def modelled_seconds(name: str) -> float:
    measured = MEASURED[name]
    text = compile_to_ptx(find(), source_of(name), "sm_90")
    entry = ptx.parse(text).entries()[0].name
    launch = launch_of(
        entry, measured["grid"], measured["block"], ARGUMENTS[name](), SHARED.get(name, 0)
    )
    plain = KernelImage(entry, text, b"", measured["registers_plain"], 0)
    loaded = open_sim("h200", timeout=60.0).load(plain, launch, [])
    try:
        return loaded.run().kernel_seconds
    finally:
        loaded.close()


@pytest.fixture(scope="module")
def times() -> NDArray[np.float64]:
    """A row a kernel: measured and modelled seconds."""
    return np.array([[MEASURED[n]["seconds_plain"], modelled_seconds(n)] for n in ARGUMENTS])


def test_kernels_rank_as_on_the_device(times: NDArray[np.float64]) -> None:
    measured, modelled = np.argsort(np.argsort(times, axis=0), axis=0).T
    assert np.corrcoef(measured, modelled)[0, 1] >= 0.95


def test_times_are_near_those_of_the_device(times: NDArray[np.float64]) -> None:
    errors = np.abs(times[:, 1] / times[:, 0] - 1)
    assert np.median(errors) <= 0.2
    assert errors.max() <= 0.8
