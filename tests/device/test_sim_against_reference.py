"""The simulated device against the reference interpreter, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from random_programs import (
    FLOAT_TYPES,
    PLAIN,
    SIZES,
    THREADS,
    WHOLE_WARP,
    Step,
    input_rows,
    programs,
    rows,
    text_of,
)
from reference_machine import execute
from sim_support import run

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)
NO_SHRINKING = (Phase.explicit, Phase.generate)


def compare(text: str, seed: int) -> None:
    """Runs a program of `random_programs` on both and compares all it wrote."""
    inputs = input_rows(seed)
    random = np.random.default_rng(seed + 1)
    arrays = [
        inputs,
        np.zeros_like(inputs),
        random.integers(0, 256, 64 * THREADS, np.uint8),
        random.integers(0, 256, 64, np.uint8),
    ]
    found = run(text, "random", (1, 1, 1), (THREADS, 1, 1), arrays).buffers
    wanted = execute(text, 1, THREADS, [a.tobytes() for a in arrays], 64 * THREADS)
    outputs = np.frombuffer(wanted[1], np.uint64).reshape(inputs.shape)
    for row, (letter, k) in enumerate(rows()):
        ours, theirs = (_normal(letter, table[row]) for table in (found[1], outputs))
        wrong = np.flatnonzero(ours != theirs)
        assert wrong.size == 0, (
            f"%{letter}{k} of threads {wrong.tolist()}: {ours[wrong[0]]:#x} on the simulated "
            f"device, {theirs[wrong[0]]:#x} by the reference\n{text}"
        )
    for name, index in (("own memory", 2), ("common memory", 3)):
        assert found[index].tobytes() == wanted[index], f"{name} differs\n{text}"


def _normal(letter: str, patterns: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    """One pattern for every NaN."""
    if letter not in FLOAT_TYPES:
        return patterns
    width = 8 * SIZES[letter]
    unsigned = patterns.astype(f"u{width // 8}")
    nan = np.isnan(unsigned.view(f"f{width // 8}"))
    return np.where(nan, np.uint64((1 << (width - 1)) - 1), patterns)


def chunks(forms: list[str], size: int) -> list[list[str]]:
    return [forms[k : k + size] for k in range(0, len(forms), size)]


@pytest.mark.parametrize("forms", chunks([*PLAIN, *WHOLE_WARP], 24), ids=lambda f: f[0].split()[0])
def test_every_form(forms: list[str]) -> None:
    """Each form at least once, on 64 threads' patterns."""
    random = np.random.default_rng(len(forms[0]))
    picks = random.integers(0, 1 << 16, (len(forms), 8))
    steps = [Step(f, tuple(map(int, p)), 11) for f, p in zip(forms, picks, strict=True)]
    compare(text_of(steps), len(forms))


@settings(max_examples=12, deadline=None, suppress_health_check=SLOW, phases=NO_SHRINKING)
@given(programs, st.integers(0, 1 << 20))
def test_random_programs(steps: list[Step], seed: int) -> None:
    """Straight and divergent code, loops, barriers, warp instructions and atomics."""
    compare(text_of(steps), seed)
