"""What a captured program is told, and what it leaves behind, as files of one folder.

`runtime.c` is the other side of this exchange and says what the files hold.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from gpuwatch.launch.model import DeviceAnswers, Launch
from gpuwatch.launch.parameters import parameter_slots, relocate
from gpuwatch.ptx.model import Function
from gpuwatch.toolchain.model import Assembled

_BLOCKS_PER_SM = {(7, 5): 16, (8, 6): 16, (8, 7): 16, (8, 9): 24, (12, 0): 24, (12, 1): 24}
"""Maximum resident blocks where it is not 32 (CUDA programming guide, compute capabilities)."""

_THREAD_LIMIT = re.compile(r"\.(?:maxntid|reqntid)\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?")


def request(answers: DeviceAnswers, kernels: list[tuple[Function, Assembled]]) -> str:
    """The text of the request: the device's answers and each kernel's parameter layout."""
    blocks = _BLOCKS_PER_SM.get((answers.compute_major, answers.compute_minor), 32)
    numbers = {k: v for k, v in dataclasses.asdict(answers).items() if k != "name"}
    lines = [f"name {answers.name}"]
    lines += [
        f"answer {key} {value}" for key, value in {**numbers, "blocks_per_sm": blocks}.items()
    ]
    for function, assembled in kernels:
        slots = parameter_slots(function)
        numbers_of = [assembled.registers, assembled.shared_bytes, _threads(function, answers)]
        numbers_of += [len(slots), *(n for slot in slots for n in (slot.offset, slot.size))]
        lines.append(" ".join(["kernel", function.name, *map(str, numbers_of)]))
    return "\n".join(lines) + "\n"


def counts(folder: Path, kernels: list[Function]) -> dict[str, int]:
    """How often each launched kernel was launched."""
    path = folder / "counts"
    numbers = np.fromfile(path, np.uint64) if path.exists() else np.zeros(0, np.uint64)
    pairs = zip(kernels, numbers.tolist(), strict=False)
    return {kernel.name: int(number) for kernel, number in pairs if number}


def launches(folder: Path, kernels: list[Function]) -> Iterator[Launch]:
    """The first launch of each kernel, in order. One cut short by a crash is left out."""
    path = folder / "launches"
    text = path.read_text() if path.exists() else ""
    by_name = {kernel.name: kernel for kernel in kernels}
    for part in text.split("end\n")[:-1]:
        lines = [line.split() for line in part.splitlines()]
        yield _launch(folder, lines, by_name)


def _launch(folder: Path, lines: list[list[str]], kernels: dict[str, Function]) -> Launch:
    _, index, name, *shape = lines[0]
    gx, gy, gz, bx, by, bz, shared = map(int, shape)
    places = [(int(line[1]), int(line[2])) for line in lines if line[0] == "buffer"]
    variables = [(line[1], int(line[2])) for line in lines if line[0] == "global"]
    block, relocations = relocate((folder / f"{index}.parameters").read_bytes(), places)
    contents = np.fromfile(folder / f"{index}.buffers", np.uint8)
    ends = np.cumsum([0, *(size for _, size in places)]).tolist()
    raw = (folder / f"{index}.globals").read_bytes()
    values = {}
    for variable, size in variables:
        values[variable], raw = raw[:size], raw[size:]
    return Launch(
        kernel=name,
        grid=(gx, gy, gz),
        block=(bx, by, bz),
        shared_bytes=shared,
        slots=parameter_slots(kernels[name]),
        parameters=block,
        relocations=relocations,
        buffers=[contents[a:b] for a, b in itertools.pairwise(ends)],
        globals=values,
        index=int(index),
    )


def _threads(function: Function, answers: DeviceAnswers) -> int:
    for directive in function.directives:
        match = _THREAD_LIMIT.match(directive)
        if match:
            x, y, z = (int(number or 1) for number in match.groups())
            return min(x * y * z, answers.threads_per_block)
    return answers.threads_per_block
