"""Random programs with their inputs and what the reference interpreter makes of them.

For any device: launch `Case.text`'s only entry, `random`, with one block of THREADS threads and
one pointer for each of `Case.inputs`; afterwards the buffers must equal `Case.expected`. A device
needs sm_90 for all forms.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
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
_NAN_KEPT = re.compile(r"cvt\.\S*\.(f32|f16|bf16)\.f64 |cvt\.r[nzmp]i\.bf16\.bf16 ")
"""Conversions that may keep what a NaN holds."""
_ADDING_IN_MEMORY = re.compile(r"(atom|red)\.\S*add\.f64 ")
_INFINITIES = {
    "d": (64, 0x7FF << 52),
    "f": (32, 0x7F800000),
    "g": (16, 0x7C00),
    "w": (16, 0x7F80),
}
"""Width and pattern of infinity by letter of a register."""


@dataclass(frozen=True)
class Case:
    """`inputs` are the buffers before, `expected` after; the second holds the registers' last
    values by row (`rows()`), 8 bytes a thread. In rows of the letters `nans_alike` the pattern of
    a NaN is not claimed, nor with `nans_in_memory` in 8 bytes of the threads' own memory."""

    name: str
    text: str
    inputs: list[bytes]
    expected: list[bytes]
    nans_alike: str = "d"
    nans_in_memory: bool = False


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


@dataclass(frozen=True)
class Claim:
    """Forms of which a GPU must give the reference's bits, but for NaN as `Case` says."""

    forms: list[str]
    nans_alike: str = "d"
    nans_in_memory: bool = False

    def __str__(self) -> str:
        return f"{self.forms[0].split()[0]}-{self.nans_alike}"

    def case(self, seed: int) -> Case:
        case = case_of_forms(self.forms, seed)
        return replace(case, nans_alike=self.nans_alike, nans_in_memory=self.nans_in_memory)


def claims() -> Iterator[Claim]:
    """Every form of which the bits are claimed, in the groups of `groups()`."""
    for forms in groups():
        exact = [form for form in forms if is_exact(form)]
        keeping = [form for form in exact if _NAN_KEPT.match(form)]
        adding = [form for form in exact if _ADDING_IN_MEMORY.match(form)]
        if plain := [form for form in exact if form not in (*keeping, *adding)]:
            yield Claim(plain)
        if keeping:
            yield Claim(keeping, "dfgw")
        if adding:
            yield Claim(adding, nans_in_memory=True)


def _is_nan(letter: str, patterns: NDArray[np.uint64]) -> NDArray[np.bool_]:
    bits, infinity = _INFINITIES[letter]
    return (patterns & np.uint64((1 << (bits - 1)) - 1)) > np.uint64(infinity)


def differences(case: Case, found: list[bytes]) -> list[str]:
    """What of the buffers after a run differs from the reference, in words."""
    wrong = []
    ours, theirs = (
        np.frombuffer(b, np.uint64).reshape(-1, THREADS) for b in (found[1], case.expected[1])
    )
    for row, (letter, k) in enumerate(rows()):
        unequal = ours[row] != theirs[row]
        if letter in case.nans_alike:
            unequal &= ~(_is_nan(letter, ours[row]) & _is_nan(letter, theirs[row]))
        threads = np.flatnonzero(unequal)
        if threads.size:
            first = threads[0]
            wrong.append(
                f"%{letter}{k} of threads {threads.tolist()}: {ours[row][first]:#x} on the device, "
                f"{theirs[row][first]:#x} by the reference"
            )
    ours, theirs = (np.frombuffer(b, np.uint64) for b in (found[2], case.expected[2]))
    unequal = ours != theirs
    if case.nans_in_memory:
        unequal &= ~(_is_nan("d", ours) & _is_nan("d", theirs))
    if unequal.any():
        wrong.append("own memory differs")
    if found[3] != case.expected[3]:
        wrong.append("common memory differs")
    return wrong
