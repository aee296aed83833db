"""Random programs with their inputs and what the reference interpreter makes of them.

For any device: launch `Case.text`'s only entry, `random`, with one block of THREADS threads and
one pointer for each of `Case.inputs`; afterwards the buffers must equal `Case.expected`. A device
needs sm_90 for all forms.

    PYTHONPATH=tests/device:tests/reference python -c "from random_programs_cases import cases; ..."
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from random_programs import (
    COMPUTING,
    MEMORY_FORMS,
    THREADS,
    WARP_FORMS,
    Step,
    input_rows,
    rows,
    text_of,
)
from reference_machine import execute

ALL = "GPUWATCH_ALL_FORMS"
"""Environment variable: not empty, every form is tried by itself too."""
_NO_GUARD = 11


@dataclass(frozen=True)
class Case:
    """`inputs` are the buffers before, `expected` after; the second holds the registers' last
    values by row (`rows()`), 8 bytes a thread."""

    name: str
    text: str
    inputs: list[bytes]
    expected: list[bytes]


def case_of(steps: list[Step], seed: int, name: str = "") -> Case:
    """The steps as a program, with inputs drawn by `seed`."""
    random = np.random.default_rng(seed + 1)
    table = input_rows(seed)
    inputs = [
        table.tobytes(),
        bytes(table.nbytes),
        random.integers(0, 256, 64 * THREADS, np.uint8).tobytes(),
        random.integers(0, 256, 64, np.uint8).tobytes(),
    ]
    text = text_of(steps)
    return Case(name, text, inputs, execute(text, 1, THREADS, inputs, 64 * THREADS))


def case_of_forms(forms: list[str], seed: int) -> Case:
    """The forms one after another, on registers drawn by `seed`."""
    random = np.random.default_rng(seed)
    picks = random.integers(0, 1 << 16, (len(forms), 8))
    steps = [
        Step(form, tuple(map(int, pick)), _NO_GUARD)
        for form, pick in zip(forms, picks, strict=True)
    ]
    return case_of(steps, seed, forms[0].split()[0])


def groups() -> list[list[str]]:
    """All forms, in as few programs as compile quickly."""
    sizes = ((COMPUTING, 160), (MEMORY_FORMS, 30), (WARP_FORMS, 10))
    found = [forms[k : k + size] for forms, size in sizes for k in range(0, len(forms), size)]
    if os.environ.get(ALL):
        found += [[form] for forms, _ in sizes for form in forms]
    return found


def is_exact(form: str) -> bool:
    """Whether a GPU must give the same bits: not for floating-point products of matrices."""
    opcodes = (line.split(" ")[0].split(".") for line in form.split(";\n"))
    products = [parts for parts in opcodes if parts[0] == "mma" or parts[:2] == ["wmma", "mma"]]
    return not any(part in ("f16", "f32", "f64") for parts in products for part in parts)


def cases(seeds: int = 1) -> Iterator[Case]:
    """Programs for a GPU: every form of which the bits are claimed, on `seeds` draws of inputs."""
    for seed in range(seeds):
        for forms in groups():
            exact = [form for form in forms if is_exact(form)]
            if exact:
                yield case_of_forms(exact, seed)


def differences(case: Case, found: list[bytes]) -> list[str]:
    """What of the buffers after a run differs from the reference, in words. In f64 registers
    every NaN is alike: their patterns are not claimed."""
    wrong = []
    ours, theirs = (
        np.frombuffer(b, np.uint64).reshape(-1, THREADS) for b in (found[1], case.expected[1])
    )
    for row, (letter, k) in enumerate(rows()):
        unequal = ours[row] != theirs[row]
        if letter == "d":
            unequal &= ~(np.isnan(ours[row].view(float)) & np.isnan(theirs[row].view(float)))
        threads = np.flatnonzero(unequal)
        if threads.size:
            first = threads[0]
            wrong.append(
                f"%{letter}{k} of threads {threads.tolist()}: {ours[row][first]:#x} on the device, "
                f"{theirs[row][first]:#x} by the reference"
            )
    names = (("own memory", 2), ("common memory", 3))
    return wrong + [f"{name} differs" for name, k in names if found[k] != case.expected[k]]
