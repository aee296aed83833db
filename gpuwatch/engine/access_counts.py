"""How many loads, stores and floating-point operations a kernel has per source line: in its PTX,
and in its machine code."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from gpuwatch.instrument.calls import reached
from gpuwatch.instrument.source_lines import SourceLines, main_file
from gpuwatch.ptx.access import memory_access
from gpuwatch.ptx.classes import class_of, operations
from gpuwatch.ptx.loops import block_starts
from gpuwatch.ptx.model import Function, Instruction, Loc, Module
from gpuwatch.toolchain.machine_code import MachineInstruction

Place = tuple[str, int]
"""Linker name of the called function, "" in the kernel itself, and the source line, as sites have
them; 0 for none."""
Widths = Counter[int]
"""Number of instructions by the bytes that each lane moves; of FLOP the operations, by 1."""
Blocks = dict[int, Widths]
"""By basic block, numbered in order."""
Counts = defaultdict[str, defaultdict[Place, Blocks]]
"""By kind of access, for KINDS the name of the map that counts it in the presets."""

LOADS, STORES = "global_loads", "global_stores"
SHARED_LOADS, SHARED_STORES = "shared_loads", "shared_stores"
KINDS = (LOADS, STORES, SHARED_LOADS, SHARED_STORES)
FLOP = "blocks_run"
"""Operations of a thread on f32 and f64, under the name of the map of `instr_mix`."""
GUARDED = {SHARED_LOADS: "guarded shared loads", SHARED_STORES: "guarded shared stores"}
"""Kinds of those with a guard: counters of instructions also count the warps of which it holds in
no lane. Those of global memory count requests, which such a warp does not make."""
GENERIC, MATRIX, BARRIER, SHARED_ATOMICS = "generic", "matrix", "barrier", "shared_atomics"
_OF_PTX = {
    ("load", "global"): LOADS,
    ("store", "global"): STORES,
    ("load", "shared"): SHARED_LOADS,
    ("store", "shared"): SHARED_STORES,
    ("load", "generic"): GENERIC,
    ("store", "generic"): GENERIC,
}
_ARITHMETIC = ("ADD", "MUL", "FMA")
_OF_MACHINE = {
    "LDG": LOADS,
    "STG": STORES,
    "LDS": SHARED_LOADS,
    "STS": SHARED_STORES,
    "ATOMS": SHARED_ATOMICS,
}
_OPERATIONS = {
    **{f"{kind}{name}": 2 if name == "FMA" else 1 for kind in "FD" for name in _ARITHMETIC},
    **{f"F{name}2": 4 if name == "FMA" else 2 for name in _ARITHMETIC},
}
"""Those of machine instructions; packed ones end in 2."""
_EACH_LANE = frozenset(("ld", "ldu", "st"))
_TOGETHER = {"wmma": MATRIX, "ldmatrix": MATRIX, "stmatrix": MATRIX, "mbarrier": BARRIER}
"""Opcodes of which lanes access memory for each other."""
_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
_WORD_BYTES = 4


def ptx_counts(module: Module, kernel: Function) -> Counts:
    """Of a kernel and the functions that it calls."""
    found = _empty()
    file, block = main_file(kernel), 0
    for function in (kernel, *reached(module, kernel)):
        name = "" if function is kernel else function.name
        starts = {id((function.body or ())[index]) for index in block_starts(function.body or ())}
        for one, line in with_lines(function, file):
            block += id(one) in starts
            kind, width = ptx_access(one)
            if kind:
                _add(found, kind, (name, line), block, width)
                if one.guard is not None and kind in GUARDED:
                    _add(found, GUARDED[kind], (name, line), block, width)
            elif flop := operations(one) if class_of(one) in ("fp32", "fp64") else 0:
                _add(found, FLOP, (name, line), block, 1, flop)
    return found


def _empty() -> Counts:
    return defaultdict(lambda: defaultdict(dict))


def _add(counts: Counts, kind: str, place: Place, block: int, width: int, number: int = 1) -> None:
    counts[kind][place].setdefault(block, Counter())[width] += number


def with_lines(function: Function, file: int) -> Iterator[tuple[Instruction, int]]:
    """The instructions of a body, each with the line that its site would have."""
    source = SourceLines(file)
    for one in function.body or ():
        if isinstance(one, Loc):
            source.see(one)
        elif isinstance(one, Instruction):
            yield one, source.lines[0] if source.lines else one.line


def ptx_access(one: Instruction) -> tuple[str, int]:
    """Kind, "" for none that is compared, and bytes."""
    if one.opcode in _TOGETHER:
        return _TOGETHER[one.opcode], 1
    access = memory_access(one) if one.opcode in _EACH_LANE else None
    if access is None or not access.bytes or access.window == "cluster":
        return "", 0
    return _OF_PTX.get((access.kind, access.space), ""), access.bytes


def machine_counts(
    code: Iterable[MachineInstruction], module: Module, kernel: Function
) -> tuple[Counts, frozenset[str]]:
    """Of the same, and the functions that have machine code of their own."""
    found = _empty()
    source = Path(module.files.get(main_file(kernel), "")).name
    called = {one.name for one in reached(module, kernel)}
    seen = set()
    for one in code:
        if one.section != kernel.name and one.section not in called:
            continue
        name = "" if one.function not in called else one.function
        seen.add(name)
        kind = _OF_MACHINE.get(one.tokens[0], "")
        if kind:
            _add(found, kind, (name, _line(one, source)), one.block, _width(one))
            if one.guard and kind in GUARDED:
                _add(found, GUARDED[kind], (name, _line(one, source)), one.block, _width(one))
        elif flop := _OPERATIONS.get(one.tokens[0], 0):
            _add(found, FLOP, (name, _line(one, source)), one.block, 1, flop)
    return found, frozenset(seen)


def _line(one: MachineInstruction, source: str) -> int:
    """The innermost line in the kernel's own file, else the innermost of all."""
    own = (line for file, line in one.places if Path(file).name == source)
    return next(own, one.places[0][1] if one.places else 0)


def _width(one: MachineInstruction) -> int:
    return next((_BYTES[token] for token in one.tokens[1:] if token in _BYTES), _WORD_BYTES)
