"""A launch by the reference interpreter, and its threads: registers, calls, memory.

A thread executes one instruction after another by itself; which thread is next is the warp's
choice (`reference_schedule.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reference_memory import Memory, Spaces, Stack, located, space_named
from reference_printing import formatted
from reference_program import Code, Program, aligned, laid_out, read_program, size_of
from reference_schedule import run_blocks
from reference_steps import step
from reference_thread import WARP
from scalar_bits import signed
from scalar_opcodes import WIDTHS

from gpuwatch.ptx.model import (
    Address,
    Group,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    Symbol,
)

GLOBAL_BASE = 0x1000_0000
WINDOW = 1 << 20  # buffers of `execute` start at multiples of this
Dim3 = tuple[int, int, int]


@dataclass
class Launch:
    """`memory` holds buffers and variables by their addresses, `symbols` the addresses of
    variables and functions by name. `workspace` is the address of a grid's barrier."""

    program: Program
    entry: str
    grid: Dim3
    block: Dim3
    parameters: bytes
    memory: Mapping[int, bytes]
    symbols: Mapping[str, int] = field(default_factory=dict)
    shared_bytes: int = 0
    workspace: int = 0


@dataclass
class Outcome:
    memory: dict[int, bytes]
    output: str
    thread_instructions: int


def execute(
    text: str, grid: int, block: int, buffers: list[bytes], shared_bytes: int = 4096
) -> list[bytes]:
    """Launches the text's entry with one pointer parameter per buffer; the buffers afterwards."""
    program = read_program(text)
    (entry,) = program.entries
    places = [GLOBAL_BASE + k * WINDOW for k in range(len(buffers))]
    parameters = b"".join(place.to_bytes(8, "little") for place in places)
    memory = dict(zip(places, buffers, strict=True))
    shape = (grid, 1, 1), (block, 1, 1)
    launch = Launch(program, entry, *shape, parameters, memory, shared_bytes=shared_bytes)
    found = run(launch).memory
    return [found[place] for place in places]


def run(launch: Launch) -> Outcome:
    memory, output = Memory(launch.memory), list[str]()
    entry = launch.program.functions[launch.entry]
    shared, shared_bytes = _shared_variables(launch)
    common = _Common(launch, entry, shared, output)
    blocks = []
    for z in range(launch.grid[2]):
        for y in range(launch.grid[1]):
            for x in range(launch.grid[0]):
                spaces = {"global": memory, "const": memory}
                spaces["shared"] = Memory({0: bytes(shared_bytes)})
                blocks.append(_threads_of(common, spaces, (x, y, z)))
    executed = run_blocks(launch.program, launch.entry, blocks)
    contents = {start: bytes(content) for start, content in memory.pieces.items()}
    return Outcome(contents, "".join(output), executed)


@dataclass
class _Common:
    """What all threads share: the launch, its kernel, offsets of shared variables, output."""

    launch: Launch
    entry: Code
    shared: Mapping[str, int]
    output: list[str]


def _shared_variables(launch: Launch) -> tuple[dict[str, int], int]:
    """Offsets of all shared variables, and the bytes that a block has."""
    program = launch.program
    groups = [program.variables, *(code.variables for code in program.functions.values())]
    found = [v for group in groups for v in group if v.space == "shared"]
    fixed = laid_out([v for v in found if v.linkage != "extern"])
    end = aligned(fixed.pop(""), 16)
    dynamic = {v.name: end for v in found if v.linkage == "extern"}
    return fixed | dynamic, end + launch.shared_bytes


def _threads_of(common: _Common, spaces: Spaces, block: Dim3) -> list[_Thread]:
    nx, ny, nz = common.launch.block
    places = [(x, y, z) for z in range(nz) for y in range(ny) for x in range(nx)]
    return [_Thread(common, spaces, block, k, place) for k, place in enumerate(places)]


class _Frame:
    """A function in progress: its registers, its own variables, the next instruction."""

    def __init__(self, code: Code, local: Stack, param: Stack) -> None:
        self.code = code
        self.registers = dict.fromkeys(code.widths, 0)
        self.place = 0
        self.bottoms = local.top, param.top
        self.variables: dict[str, int] = {}
        for space, stack in (("local", local), ("param", param)):
            own = [v for v in code.variables if v.space == space]
            places = laid_out(own, aligned(stack.top, 16))
            stack.grow(places.pop(""))
            self.variables |= places


class _Thread:
    """Registers of one thread and what it does at each instruction."""

    def __init__(
        self, common: _Common, spaces: Spaces, block: Dim3, index: int, place: Dim3
    ) -> None:
        launch = common.launch
        self._common = common
        self.index = index
        self.lane = index % WARP
        self.carry = 0
        self._local, self._param = Stack(), Stack(launch.parameters)
        self._spaces = {**spaces, "local": self._local, "param": self._param}
        self._specials = _specials(launch, block, index, place)
        self.frames = [_Frame(common.entry, self._local, self._param)]
        parameters = laid_out(common.entry.parameters)
        self._symbols = {**launch.symbols, **common.shared, **parameters}
        self._registers = self.frames[-1].registers

    @property
    def exited(self) -> bool:
        return not self.frames

    @property
    def position(self) -> tuple[int, int, int]:
        """Lanes of a warp with the smallest go first: those in called functions, then those that
        are behind."""
        frame = self.frames[-1]
        return -len(self.frames), frame.code.number, frame.place

    @property
    def next(self) -> Instruction | None:
        """The instruction that comes next; None behind the last one."""
        frame = self.frames[-1]
        code = frame.code.instructions
        return code[frame.place] if frame.place < len(code) else None

    def step(self, instruction: Instruction) -> None:
        """Executes the next instruction, one that needs no other thread."""
        frame = self.frames[-1]
        frame.place += 1
        if not self._is_chosen(instruction):
            return
        opcode = instruction.opcode
        if opcode in ("bra", "brx"):
            frame.place = frame.code.labels[self._target(frame.code, instruction)]
        elif opcode == "exit":
            self.leave_all()
        elif opcode == "ret":
            self.leave()
        elif opcode == "call":
            self._call(instruction)
        elif opcode == "trap":
            raise AssertionError(f"thread {self.index} ran into a trap")
        else:
            step(self, instruction)

    def passes(self, instruction: Instruction) -> bool:
        """Goes behind an instruction that needs other threads; whether it takes part in it."""
        self.frames[-1].place += 1
        return self._is_chosen(instruction)

    def _is_chosen(self, instruction: Instruction) -> bool:
        guard = instruction.guard
        return guard is None or bool(self._registers[guard.register]) != guard.negated

    def _target(self, code: Code, instruction: Instruction) -> str:
        *index, last = instruction.operands
        assert isinstance(last, Symbol)
        return code.targets[last.name][self.read(index[0], "u32")] if index else last.name

    def leave_all(self) -> None:
        self.frames.clear()

    def leave(self) -> None:
        """Returns: the caller gets the results, and the function's variables are no more."""
        frame = self.frames.pop()
        if not self.frames:
            return
        values = [
            self._param.read(frame.variables[result.name], size_of(result))
            for result in frame.code.results
        ]
        self._local.shrink(frame.bottoms[0])
        self._param.shrink(frame.bottoms[1])
        caller = self.frames[-1]
        self._registers = caller.registers
        call = caller.code.instructions[caller.place - 1]
        for target, result, value in zip(_results(call), frame.code.results, values, strict=True):
            self._give(target, value, size_of(result))

    def _call(self, instruction: Instruction) -> None:
        callee = next(o for o in instruction.operands if not isinstance(o, Group))
        name = self._callee(callee)
        code = self._common.launch.program.functions.get(name)
        if code is None:
            self._call_builtin(name, instruction)
            return
        arguments = _arguments(instruction)
        values = [
            self._argument(argument, size_of(formal))
            for argument, formal in zip(arguments, code.parameters, strict=True)
        ]
        frame = _Frame(code, self._local, self._param)
        formals = laid_out(code.parameters + code.results, aligned(self._param.top, 16))
        self._param.grow(formals.pop(""))
        frame.variables |= formals
        for formal, value in zip(code.parameters, values, strict=True):
            self._param.write(formals[formal.name], size_of(formal), value)
        self.frames.append(frame)
        self._registers = frame.registers

    def _callee(self, operand: Operand) -> str:
        if isinstance(operand, Symbol):
            return operand.name
        address = self.read(operand, "b64")
        functions = self._common.launch.program.functions
        return next(n for n in functions if self._common.launch.symbols.get(n) == address)

    def _call_builtin(self, name: str, instruction: Instruction) -> None:
        """vprintf and __assertfail, which have no body in PTX."""
        first, second = (self._argument(one, 8) for one in _arguments(instruction)[:2])
        if name == "__assertfail":
            raise AssertionError(f"assertion failed: {self._text(first)}")
        assert name == "vprintf", f"nothing defines {name}"

        def take(address: int, size: int) -> int:
            memory, place = located(self._spaces, "", address)
            return memory.read(place, size)

        self._common.output.append(formatted(self._text(first), second, take, self._text))
        for target in _results(instruction):
            self._give(target, 0, 4)

    def _text(self, address: int) -> str:
        memory, place = located(self._spaces, "", address)
        return memory.text(place)

    def _argument(self, operand: Operand, size: int) -> int:
        """The bytes of an argument: a `.param` variable, or a value."""
        if isinstance(operand, Symbol) and operand.name in self.frames[-1].variables:
            return self._param.read(self.frames[-1].variables[operand.name], size)
        return self.read(operand, f"b{8 * size}")

    def _give(self, target: Operand, value: int, size: int) -> None:
        if isinstance(target, Symbol):
            self._param.write(self.frames[-1].variables[target.name], size, value)
        else:
            self.write(target, value, f"b{8 * size}")

    def read(self, operand: Operand, kind: str) -> int:
        mask = (1 << WIDTHS[kind]) - 1
        if isinstance(operand, Register):
            value = self._registers.get(operand.name)
            return (self._specials[operand.name] if value is None else value) & mask
        if isinstance(operand, Immediate):
            return _immediate(operand, kind) & mask
        if isinstance(operand, Negated):
            return 1 - self._registers[operand.register.name]
        assert isinstance(operand, Symbol)
        own = self.frames[-1].variables.get(operand.name)
        return (self._symbols[operand.name] if own is None else own) + operand.offset

    def write(self, operand: Operand, value: int, kind: str) -> None:
        """Cuts a result to its type, then extends it to the register by the type's sign."""
        assert isinstance(operand, Register)
        if operand.name == "_":
            return
        width = WIDTHS[kind]
        value &= (1 << width) - 1
        if kind[0] == "s":
            value = signed(value, width)
        widths = self.frames[-1].code.widths
        self._registers[operand.name] = value & (1 << widths[operand.name]) - 1

    def width(self, register: Register) -> int:
        return self.frames[-1].code.widths[register.name]

    def address(self, operand: Address) -> int:
        return (self.read(operand.base, "b64") + operand.offset) & 0xFFFFFFFF_FFFFFFFF

    def place(self, instruction: Instruction, operand: Operand) -> tuple[Memory, int]:
        """The memory that an operand points into, and where."""
        assert isinstance(operand, Address)
        space = space_named(instruction.tokens, self._spaces)
        return located(self._spaces, space, self.address(operand))

    def space(self, name: str) -> Memory:
        return self._spaces[name]


def _specials(launch: Launch, block: Dim3, index: int, place: Dim3) -> dict[str, int]:
    """The special registers of a thread."""
    bit = 1 << index % WARP
    found = {
        "%laneid": index % WARP,
        "%warpid": index // WARP,
        "%dynamic_smem_size": launch.shared_bytes,
        "%lanemask_eq": bit,
        "%lanemask_lt": bit - 1,
        "%lanemask_le": 2 * bit - 1,
        "%lanemask_gt": -2 * bit & 0xFFFFFFFF,
        "%lanemask_ge": -bit & 0xFFFFFFFF,
        "%envreg1": launch.workspace >> 32,
        "%envreg2": launch.workspace & 0xFFFFFFFF,
    }
    vectors = {"tid": place, "ntid": launch.block, "ctaid": block, "nctaid": launch.grid}
    for name, values in vectors.items():
        found |= {f"%{name}.{axis}": value for axis, value in zip("xyz", values, strict=True)}
    return found


def _results(call: Instruction) -> tuple[Operand, ...]:
    first = call.operands[0]
    return first.items if isinstance(first, Group) else ()


def _arguments(call: Instruction) -> tuple[Operand, ...]:
    groups = [o for o in call.operands[1:] if isinstance(o, Group)]
    return groups[0].items if groups else ()


def _immediate(operand: Immediate, kind: str) -> int:
    """Integers, and the bit patterns of `0f` and `0d`; no other literals are used."""
    assert isinstance(operand.value, int) and (operand.is_float or not kind.startswith("f"))
    return operand.value
