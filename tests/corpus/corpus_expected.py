"""Kernels of the corpus that the simulated device refuses, with words of the reason."""

from __future__ import annotations

EXPECTED: dict[str, str] = {
    "clusters/neighbour": "cannot execute",
    "textures/fetched": "cannot execute",
    "textures/surface_written": "cannot execute",
}
"""By "program/kernel"."""
