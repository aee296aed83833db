"""What emitting one instruction needs: operands as vectors, writes under the lane mask."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

from gpuwatch.device.sim.ir import BITS, SCALAR, SUFFIX, WARP, Builder, splat, vector
from gpuwatch.device.sim.layout import LaunchField
from gpuwatch.device.sim.nans import canonical, is_blind, nans_of
from gpuwatch.device.sim.program import Program
from gpuwatch.ptx.model import Immediate, Instruction, Negated, Operand, Register, Symbol, Vector


class UnsupportedError(Exception):
    """An instruction that the simulator cannot execute; the text says what part of it."""


class Emitter:
    """Emits into `ir`. `full` is the copy of a block in which all 32 lanes are active."""

    def __init__(self, program: Program, symbols: Mapping[str, int]) -> None:
        self.ir = Builder()
        self.program = program
        self.symbols = symbols
        self.full = True
        self.block = 0
        self.position = 0
        """Index of the instruction being emitted."""
        self.guard: str | None = None
        self.nans = nans_of(program)
        self._blind = False
        self.generic_parameters = any(
            i.tokens[:2] == ("cvta", "param") for i in program.instructions
        )
        """Whether generic addresses may be those of parameters."""
        self.specials: Mapping[str, Callable[[Emitter], tuple[str, str]]] = {}
        """Special registers: what emits (LLVM scalar type, vector value)."""

    def begin(self, instruction: Instruction) -> None:
        """Reads the guard of the next instruction."""
        self.guard = None
        self._blind = is_blind(instruction)
        if instruction.guard is not None:
            self.guard = self.value(Register(instruction.guard.register), "pred")
            if instruction.guard.negated:
                self.guard = self.invert(self.guard)

    def invert(self, mask: str) -> str:
        return self.ir.binary("xor", "i1", mask, splat("i1", "true"))

    def mask(self) -> str | None:
        """The lanes that execute the instruction; None for all."""
        active = None if self.full else self.ir.load(vector("i1"), "%mask")
        if self.guard is None or active is None:
            return self.guard or active
        return self.ir.binary("and", "i1", active, self.guard)

    def mask_or_all(self) -> str:
        return self.mask() or splat("i1", "true")

    def launch_value(self, kind: str, field: int) -> str:
        return self.ir.load(kind, self.ir.at("%launch", field))

    def scalar_of(self, register: str) -> str:
        return SCALAR[self.program.registers[register]]

    def value(self, operand: Operand, kind: str) -> str:
        """The operand as a vector of PTX type `kind`."""
        if isinstance(operand, Immediate):
            return constant(operand, kind)
        if isinstance(operand, Negated):
            return self.invert(self.value(operand.register, "pred"))
        if isinstance(operand, Symbol):
            return splat(SCALAR[kind], self.symbol(operand))
        if not isinstance(operand, Register):
            raise UnsupportedError("this form of operand")
        if operand.name in self.program.registers:
            held = self.scalar_of(operand.name)
            loaded = self.ir.load(vector(held), register_slot(operand.name))
            computed = self.nans.at_read.get(operand.name)
            if computed and not (self._blind and kind == computed):
                loaded = self.resize(loaded, held, SCALAR[computed])
                loaded, held = canonical(self.ir, loaded, SCALAR[computed]), SCALAR[computed]
            return self.resize(loaded, held, SCALAR[kind])
        if operand.name not in self.specials:
            raise UnsupportedError(f"register {operand.name}")
        held, loaded = self.specials[operand.name](self)
        return self.resize(loaded, held, SCALAR[kind])

    def symbol(self, symbol: Symbol) -> int:
        """A variable's address within its own space."""
        program = self.program
        for table in (program.shared, program.local, program.parameters, self.symbols):
            if symbol.name in table:
                return table[symbol.name] + symbol.offset
        raise UnsupportedError(f"symbol {symbol.name}")

    def resize(self, value: str, held: str, wanted: str, *, signed: bool = False) -> str:
        """The bits of `value` cut or extended to another LLVM type."""
        if held == wanted:
            return value
        have, want = BITS[held], BITS[wanted]
        if held in SUFFIX:
            value = self.ir.cast("bitcast", held, value, f"i{have}")
        if have != want:
            extension = "sext" if signed else "zext"
            operation = "trunc" if have > want else extension
            value = self.ir.cast(operation, f"i{have}", value, f"i{want}")
        if wanted in SUFFIX:
            value = self.ir.cast("bitcast", f"i{want}", value, wanted)
        return value

    def write(self, operand: Operand, value: str, kind: str) -> None:
        """Writes a value of PTX type `kind`, in the lanes that execute the instruction."""
        if not isinstance(operand, Register):
            raise UnsupportedError("this form of destination")
        name = operand.name
        if name in ("_", "%_"):
            return
        if name not in self.program.registers:
            raise UnsupportedError(f"destination {name}")
        held = self.scalar_of(name)
        value = self.resize(value, SCALAR[kind], held, signed=kind.startswith("s"))
        slot = register_slot(name)
        mask = self.mask() if self._must_merge(name) else None
        if mask is not None:
            value = self.ir.select(mask, held, value, self.ir.load(vector(held), slot))
        self.ir.store(vector(held), value, slot)

    def _must_merge(self, name: str) -> bool:
        if self.guard is not None:
            return True
        return not self.full and name in self.program.spanning

    def add_cycles(self, cycles: str) -> None:
        self.ir.store("i64", self.ir.value(f"add i64 {self.ir.load('i64', '%cycles')}, {cycles}"),
                      "%cycles")  # fmt: skip

    def cost(self, field: int, count: str) -> None:
        """Adds `count` times a cost of the launch."""
        each = self.launch_value("i64", field)
        self.add_cycles(self.ir.value(f"mul i64 {each}, {count}"))

    def fault_unless(self, condition: str, kind: int, addresses: str, mask: str) -> None:
        """Ends the run with a fault at this instruction when the scalar `condition` is false."""
        ir = self.ir
        good, bad = ir.fresh("ok"), ir.fresh("bad")
        ir.emit(f"br i1 {condition}, label %{good}, label %{bad}, !prof !0")
        ir.label(bad)
        self.fault(kind, addresses, mask)
        ir.label(good)

    def fault(self, kind: int, addresses: str, mask: str) -> None:
        self.ir.run("record_fault", [("ptr", "%worker"), ("i32", str(self.position + 1)),
                    ("i32", str(kind)), ("i32", self.ir.bits_of(mask)),
                    (vector("i64"), addresses)])  # fmt: skip
        self.ir.jump("fault")


def register_slot(name: str) -> str:
    return f'%"r.{name}"'


def constant(immediate: Immediate, kind: str) -> str:
    """An immediate as a constant vector of PTX type `kind`."""
    scalar = SCALAR[kind]
    if kind == "pred":
        return splat("i1", "true" if immediate.value else "false")
    bits = BITS[scalar]
    raw = immediate.value
    if isinstance(raw, float):
        packed = struct.pack("<d" if bits == 64 else "<f", raw)
        raw = int.from_bytes(packed, "little")
    elif not immediate.is_float and scalar in SUFFIX:
        packed = struct.pack("<d" if bits == 64 else "<f", float(raw))
        raw = int.from_bytes(packed, "little")
    raw &= (1 << bits) - 1
    raw -= (raw >> (bits - 1)) << bits
    if scalar in SUFFIX:
        return f"bitcast (<{WARP} x i{bits}> splat (i{bits} {raw}) to <{WARP} x {scalar}>)"
    return splat(scalar, raw)


def type_of(instruction: Instruction) -> str:
    """The last type among the opcode's parts."""
    for token in reversed(instruction.tokens[1:]):
        if token in SCALAR:
            return token
    raise UnsupportedError("no supported type")


def items_of(operand: Operand) -> tuple[Operand, ...]:
    """The parts of a vector; any other operand alone."""
    return operand.items if isinstance(operand, Vector) else (operand,)


def _three(table: dict[str, Callable[[Emitter], tuple[str, str]]], name: str, field: int) -> None:
    for k, axis in enumerate("xyz"):
        table[f"%{name}.{axis}"] = _of_launch(field + 4 * k)


def _of_launch(field: int) -> Callable[[Emitter], tuple[str, str]]:
    return lambda e: ("i32", e.ir.broadcast("i32", e.launch_value("i32", field)))


def _of_slot(name: str) -> Callable[[Emitter], tuple[str, str]]:
    return lambda e: ("i32", e.ir.load(vector("i32"), name))


def _of_argument(name: str) -> Callable[[Emitter], tuple[str, str]]:
    return lambda e: ("i32", e.ir.broadcast("i32", name))


def _constant(value: str) -> Callable[[Emitter], tuple[str, str]]:
    return lambda _: ("i32", value)


def _lane_mask(bits: Callable[[int], int]) -> Callable[[Emitter], tuple[str, str]]:
    values = (bits(lane) & 0xFFFFFFFF for lane in range(WARP))
    return _constant("<" + ", ".join(f"i32 {v - ((v >> 31) << 32)}" for v in values) + ">")


def _clock(e: Emitter) -> tuple[str, str]:
    return "i64", e.ir.broadcast("i64", e.ir.load("i64", "%cycles"))


def _global_timer(e: Emitter) -> tuple[str, str]:
    ir = e.ir
    cycles = ir.value(f"uitofp i64 {ir.load('i64', '%cycles')} to double")
    scale = e.launch_value("double", LaunchField.TIMER_SCALE)
    elapsed = ir.value(f"fptoui double {ir.value(f'fmul double {cycles}, {scale}')} to i64")
    base = e.launch_value("i64", LaunchField.TIMER_BASE)
    return "i64", ir.broadcast("i64", ir.value(f"add i64 {base}, {elapsed}"))


def _upper_half(
    whole: Callable[[Emitter], tuple[str, str]],
) -> Callable[[Emitter], tuple[str, str]]:
    def emit(e: Emitter) -> tuple[str, str]:
        shifted = e.ir.binary("lshr", "i64", whole(e)[1], splat("i64", 32))
        return "i32", e.ir.cast("trunc", "i64", shifted, "i32")

    return emit


def _dynamic_shared(e: Emitter) -> tuple[str, str]:
    total = e.launch_value("i32", LaunchField.SHARED_BYTES)
    return "i32", e.ir.broadcast("i32", e.ir.value(f"sub i32 {total}, {e.program.shared_bytes}"))


def special_registers() -> dict[str, Callable[[Emitter], tuple[str, str]]]:
    """What emits each special register."""
    table: dict[str, Callable[[Emitter], tuple[str, str]]] = {
        "%laneid": _constant("<" + ", ".join(f"i32 {k}" for k in range(WARP)) + ">"),
        "%warpid": _of_argument("%warp"),
        "%nwarpid": _of_launch(LaunchField.WARPS),
        "%smid": _of_argument("%sm"),
        "%nsmid": _of_launch(LaunchField.SM_COUNT),
        "%gridid": _constant(splat("i32", 0)),
        "%clock": _clock,
        "%clock64": _clock,
        "%clock_hi": _upper_half(_clock),
        "%globaltimer": _global_timer,
        "%globaltimer_lo": _global_timer,
        "%globaltimer_hi": _upper_half(_global_timer),
        "%total_smem_size": _of_launch(LaunchField.SHARED_BYTES),
        "%dynamic_smem_size": _dynamic_shared,
        "%lanemask_eq": _lane_mask(lambda k: 1 << k),
        "%lanemask_lt": _lane_mask(lambda k: (1 << k) - 1),
        "%lanemask_le": _lane_mask(lambda k: (2 << k) - 1),
        "%lanemask_gt": _lane_mask(lambda k: -(2 << k)),
        "%lanemask_ge": _lane_mask(lambda k: -(1 << k)),
    }
    _three(table, "ntid", LaunchField.BLOCK)
    _three(table, "nctaid", LaunchField.GRID)
    for register, part in (("%envreg1", 4), ("%envreg2", 0)):
        table[register] = _of_launch(LaunchField.GRID_STATE + part)
    table |= _one_block_clusters(table)
    for axis in "xyz":
        table[f"%tid.{axis}"] = _of_slot(f"%tid.{axis}")
        table[f"%ctaid.{axis}"] = _of_argument(f"%block.{axis}")
    return table


_Special = Callable[[Emitter], tuple[str, str]]


def _one_block_clusters(table: Mapping[str, _Special]) -> dict[str, _Special]:
    """Registers of clusters, each of one block."""
    zero, one = _constant(splat("i32", 0)), _constant(splat("i32", 1))
    found: dict[str, _Special] = {
        "%cluster_ctarank": zero,
        "%cluster_nctarank": one,
        "%is_explicit_cluster": _constant_pred,
    }
    for axis in "xyz":
        found[f"%clusterid.{axis}"] = _of_argument(f"%block.{axis}")
        found[f"%nclusterid.{axis}"] = table[f"%nctaid.{axis}"]
        found[f"%cluster_ctaid.{axis}"] = zero
        found[f"%cluster_nctaid.{axis}"] = one
    return found


def _constant_pred(_: Emitter) -> tuple[str, str]:
    return "i1", splat("i1", "false")
