"""What a captured program is told, and what it leaves behind, as files of one folder.

`runtime/runtime.h` is the other side of this exchange and says what the files hold.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gpuwatch.errors import UserError
from gpuwatch.launch.initial import initial_bytes
from gpuwatch.launch.memory import Piece, untie
from gpuwatch.launch.model import Capture, DeviceAnswers, Launch, LaunchRecord
from gpuwatch.launch.parameters import parameter_slots, shape_directive
from gpuwatch.ptx.model import Function, Module
from gpuwatch.toolchain.model import Assembled
from gpuwatch.toolchain.process import Finished

_BLOCKS_PER_SM = {(7, 5): 16, (8, 6): 16, (8, 7): 16, (8, 9): 24, (12, 0): 24, (12, 1): 24}
"""Maximum resident blocks where it is not 32 (CUDA programming guide, compute capabilities)."""


def request(
    answers: DeviceAnswers,
    module: Module,
    kernels: Sequence[tuple[Function, Assembled]],
    keep: int | None,
) -> str:
    """The text of the request: the device's answers, the variables' first contents, each
    kernel's limits and parameter layout."""
    capability = answers.compute_major, answers.compute_minor
    blocks = answers.blocks_per_sm or _BLOCKS_PER_SM.get(capability, 32)
    numbers = dataclasses.asdict(answers) | {"blocks_per_sm": blocks}
    lines = [f"name {numbers.pop('name')}"]
    lines += [f"answer {key} {value}" for key, value in numbers.items()]
    lines += [] if keep is None else [f"keep {keep}"]
    for variable in module.variables:
        if variable.space in ("global", "const") and variable.initial:
            lines.append(f"variable {variable.name} {initial_bytes(variable).hex()}")
    most = answers.threads_per_block
    for function, assembled in kernels:
        slots = parameter_slots(function)
        block = shape_directive(function, "maxntid", "reqntid")
        threads = min(math.prod(block), most) if block else most
        cluster = shape_directive(function, "reqnctapercluster") or (0, 0, 0)
        numbers_of = [assembled.registers, assembled.shared_bytes, threads, *cluster, len(slots)]
        numbers_of += [number for slot in slots for number in (slot.offset, slot.size)]
        lines.append(" ".join(["kernel", function.name, *map(str, numbers_of)]))
    return "\n".join(lines) + "\n"


@dataclasses.dataclass(slots=True)
class _Noted:
    """One launch line and, where its memory was kept, the lines behind it."""

    record: LaunchRecord
    buffers: list[tuple[int, int]] = dataclasses.field(default_factory=list)
    variables: list[tuple[int, int, bool, str]] = dataclasses.field(default_factory=list)
    kept: bool = False


def read_capture(
    folder: Path, kernels: Sequence[Function], keep: int | None, done: Finished
) -> Capture:
    """What the program left in `folder` when it was `done`.

    A launch cut short by a crash has no contents.
    """
    noted, refused = _read_lines(folder / "launches")
    by_name = {kernel.name: kernel for kernel in kernels}
    launches: dict[str, Launch] = {}
    failures: dict[int, str] = {}
    for one in noted:
        name = one.record.kernel
        if one.kept and (name not in launches or one.record.index == keep):
            try:
                launches[name] = _launch(folder, one, by_name[name])
            except UserError as problem:
                failures[one.record.index] = problem.message
    numbers = _counts(folder)
    records = [
        dataclasses.replace(one.record, error=failures.get(one.record.index, one.record.error))
        for one in noted
    ]
    pairs = zip(kernels, numbers, strict=False)
    return Capture(
        launches=tuple(sorted(launches.values(), key=lambda launch: launch.index)),
        counts={kernel.name: number for kernel, number in pairs if number},
        output=done.output,
        status=done.status,
        timed_out=done.timed_out,
        listed=tuple(records),
        total=numbers[-1] if numbers else 0,
        refused_calls=tuple(dict.fromkeys(refused)),
    )


def _read_lines(path: Path) -> tuple[list[_Noted], list[str]]:
    noted: list[_Noted] = []
    refused = []
    text = path.read_text(errors="replace") if path.exists() else ""
    for line in text.splitlines():
        kind, *words = line.split()
        if kind == "launch":
            noted.append(_Noted(_record(words)))
        elif kind == "buffer":
            noted[-1].buffers.append((int(words[0]), int(words[1])))
        elif kind == "variable":
            noted[-1].variables.append((int(words[0]), int(words[1]), words[2] == "1", words[3]))
        elif kind == "kept":
            noted[-1].kept = True
        elif kind == "refused":
            refused.append(" ".join(words))
    return noted, refused


def _record(words: list[str]) -> LaunchRecord:
    index, kernel, *numbers = words[:13]
    gx, gy, gz, bx, by, bz, shared, cooperative, cx, cy, cz = map(int, numbers)
    error, why = words[13], " ".join(words[14:])
    return LaunchRecord(
        index=int(index),
        kernel=kernel,
        grid=(gx, gy, gz),
        block=(bx, by, bz),
        shared_bytes=shared,
        cooperative=cooperative == 1,
        cluster=(cx, cy, cz) if cx * cy * cz > 1 else None,
        error="" if error == "cudaSuccess" else f"{error}, {why}",
    )


def _launch(folder: Path, noted: _Noted, kernel: Function) -> Launch:
    record = noted.record
    contents = np.fromfile(folder / f"{record.index}.buffers", np.uint8)
    values = np.fromfile(folder / f"{record.index}.variables", np.uint8)
    for name, found, listed in (
        ("buffers", contents, noted.buffers),
        ("variables", values, noted.variables),
    ):
        if len(found) != (whole := sum(one[1] for one in listed)):
            raise UserError(
                f"{folder / f'{record.index}.{name}'} has {len(found):,} bytes of the {whole:,} "
                "that were stored",
                hint="store the launch again",
            )
    pieces, at = [], 0
    for address, size in noted.buffers:
        pieces.append(Piece("", address, contents[at : at + size]))
        at += size
    at = 0
    for address, size, is_set, name in noted.variables:
        pieces.append(Piece(name, address, values[at : at + size], is_set))
        at += size
    block = (folder / f"{record.index}.parameters").read_bytes()
    untied = untie(block, pieces)
    return Launch(
        kernel=record.kernel,
        grid=record.grid,
        block=record.block,
        shared_bytes=record.shared_bytes,
        slots=parameter_slots(kernel),
        parameters=untied.parameters,
        relocations=untied.relocations,
        buffers=untied.buffers,
        globals=untied.globals,
        index=record.index,
        cooperative=record.cooperative,
        cluster=record.cluster,
        buffer_relocations=untied.buffer_relocations,
        global_relocations=untied.global_relocations,
        symbol_relocations=untied.symbol_relocations,
    )


def _counts(folder: Path) -> list[int]:
    path = folder / "counts"
    return [int(n) for n in np.fromfile(path, np.uint64)] if path.exists() else []
