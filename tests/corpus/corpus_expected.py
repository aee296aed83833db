"""Kernels of the corpus that the simulated device refuses, with words of the reason."""

from __future__ import annotations

EXPECTED: dict[str, str] = {
    "clusters/neighbour": "no clusters of several blocks",
    "textures/fetched": "cannot execute",
    "textures/surface_written": "cannot execute",
}
"""By "program/kernel"."""

LARGE = frozenset(
    {
        "algorithms/random_walk", "algorithms/tiled_product", "between_blocks/grid_barrier",
        "control/collatz", "control/interpreter", "control/state_machine",
        "doubles/double_library", "doubles/nbody", "floats/library_functions",
        "floats/mandelbrot", "halves/half_shared_sum", "registers/many_registers",
        "registers/spilling", "shapes/all_but_one", "shapes/cuboid",
        "shared_memory/opted_in", "shared_memory/transposed",
    }
)  # fmt: skip
"""Those that execute more than LARGE_INSTRUCTIONS thread instructions, too many for the reference
interpreter in every test run; by "program/kernel"."""
LARGE_INSTRUCTIONS = 50_000
