"""Kernels of the corpus on the simulated device and on the reference interpreter.

    python tests/corpus/corpus_reference.py [PROGRAM...]

prints a line for each kernel: thread instructions on the device, seconds of the interpreter, and
whether all buffers, module variables and the output are equal bit for bit. Ends with status 1 when
one is not.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "reference"))

import corpus_harness as corpus
import reference_machine as reference
from reference_program import Program, read_program

from gpuwatch.device.base import KernelImage
from gpuwatch.device.sim import open_sim
from gpuwatch.device.sim.kernel import SimKernel
from gpuwatch.device.sim.linking import code_addresses
from gpuwatch.engine.program import WatchedProgram
from gpuwatch.errors import UserError
from gpuwatch.launch import Launch

_REGISTERS = 32
"""Registers of a thread; how many blocks are resident shows in no value."""


@dataclass
class Comparison:
    """A kernel, "program/kernel", on both: the thread instructions that the device executed or why
    it refused, the seconds of the interpreter, and what differs, in words."""

    kernel: str
    instructions: int = 0
    refused: str = ""
    seconds: float = 0.0
    differences: list[str] = field(default_factory=list)


def comparisons(name: str, chosen: Callable[[str], bool] = lambda _: True) -> Iterator[Comparison]:
    """The kernels of a program of the corpus that are chosen by "program/kernel". Raises UserError
    when the program cannot be captured."""
    with corpus.watched(name) as (watched, _):
        program = read_program(watched.module.text)
        for kernel, mangled in corpus.kernels(watched).items():
            key = f"{name}/{kernel}"
            if not chosen(key):
                continue
            try:
                yield _compared(watched, program, key, mangled)
            except UserError as problem:
                yield Comparison(key, refused=problem.message)
            except corpus.BUGS as bug:
                yield Comparison(key, differences=[f"all, for {type(bug).__name__}: {bug}"])


def _compared(watched: WatchedProgram, program: Program, key: str, mangled: str) -> Comparison:
    launch = watched.launch(mangled)
    profile = corpus.DEVICE.removeprefix("sim:")
    image = KernelImage(mangled, watched.module.text, b"", _REGISTERS, 0)
    loaded = open_sim(profile, timeout=corpus.LAUNCH_SECONDS).load(image, launch, ())
    try:
        result = loaded.run()
        started = time.monotonic()
        outcome = reference.run(_for_reference(watched, program, launch, loaded))
        seconds = time.monotonic() - started
        differences = _differences(loaded, result.output, outcome)
        return Comparison(key, result.thread_instructions or 0, "", seconds, differences)
    finally:
        loaded.close()


def _for_reference(
    watched: WatchedProgram, program: Program, launch: Launch, loaded: SimKernel
) -> reference.Launch:
    """The same launch with everything at the same addresses, so that pointers are equal too."""
    variables = {name: place.address for name, place in loaded._variables.items()}
    symbols = {**code_addresses(watched.module), **variables}
    places = [place.address for place in loaded._buffers]
    memory: dict[int, bytes] = {}
    for k, (place, content) in enumerate(zip(places, launch.buffers, strict=True)):
        pointers = launch.buffer_relocations.get(k)
        memory[place] = (pointers.written(content, places) if pointers else content).tobytes()
    for name, first in program.first_contents(symbols).items():
        given = launch.globals.get(name, b"")
        content = np.frombuffer(given + first[len(given) :], np.uint8)
        pointers = launch.global_relocations.get(name)
        content = pointers.written(content, places) if pointers else content
        memory[variables[name]] = content.tobytes()
    workspace = loaded._grid_state.address if loaded._grid_state else 0
    if workspace:
        memory[workspace] = bytes(64)
    return reference.Launch(
        program,
        launch.kernel,
        launch.grid,
        launch.block,
        _parameters(launch, places, variables),
        memory,
        symbols,
        launch.shared_bytes,
        workspace,
    )


def _parameters(launch: Launch, places: list[int], variables: dict[str, int]) -> bytes:
    block = bytearray(launch.parameters)
    pointers = {r.offset: places[r.buffer] + r.addend for r in launch.relocations}
    pointers |= {r.offset: variables[r.variable] + r.addend for r in launch.symbol_relocations}
    for offset, address in pointers.items():
        block[offset : offset + 8] = address.to_bytes(8, "little")
    return bytes(block)


def _differences(loaded: SimKernel, output: str, outcome: reference.Outcome) -> list[str]:
    """What the two left behind differently, in words."""
    found = [
        (f"buffer {k}", content.tobytes(), outcome.memory[place.address])
        for k, (content, place) in enumerate(
            zip(loaded.read_buffers(), loaded._buffers, strict=True)
        )
    ]
    found += [
        (name, content.tobytes(), outcome.memory[loaded._variables[name].address])
        for name, content in loaded.read_variables().items()
    ]
    lines = [
        f"{name} from byte {_first_difference(device, wanted)}"
        for name, device, wanted in found
        if device != wanted
    ]
    return lines if output == outcome.output else [*lines, "the output"]


def _first_difference(one: bytes, other: bytes) -> int:
    return next(k for k, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1])


def _line(one: Comparison) -> str:
    if one.refused:
        return f"{one.kernel:54} {'':17}  refused: {one.refused}"
    verdict = "differs: " + ", ".join(one.differences) if one.differences else "equal"
    return f"{one.kernel:54} {one.instructions:9} {one.seconds:6.1f}s  {verdict}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("programs", nargs="*")
    counts = {"equal": 0, "different": 0, "refused": 0}
    for program in parser.parse_args().programs or corpus.programs():
        for one in comparisons(program):
            print(_line(one), flush=True)
            kind = "refused" if one.refused else "different" if one.differences else "equal"
            counts[kind] += 1
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
