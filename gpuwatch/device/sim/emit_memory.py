"""Loads, stores and address conversions."""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.device.sim.access import Access, effective_address, space_of
from gpuwatch.device.sim.emitter import Emitter, UnsupportedError, items_of, type_of
from gpuwatch.device.sim.ir import BITS, MASK_ALL, SCALAR, SUFFIX, WARP, splat, vector
from gpuwatch.device.sim.layout import ARENA_BASE, WINDOW_BYTES, WINDOWS, LaunchField
from gpuwatch.ptx.model import Address, Instruction, Operand, Symbol


def load(access: Access) -> list[str]:
    """Loads; one vector per element."""
    return access.patterns(
        lambda first: _load_line(access, first),
        lambda first: _load_uniform(access, first),
        lambda: gather(access),
    )


def store(access: Access, values: list[str]) -> None:
    """Stores one vector per element."""
    access.patterns(
        lambda first: _store_line(access, first, values), None, lambda: scatter(access, values)
    )


def _load_line(access: Access, first: str) -> list[str]:
    ir, count = access.e.ir, access.count
    access.check_one(first, WARP * access.width)
    access.charge_line(first, WARP * access.width)
    whole = f"<{WARP * count} x {access.scalar}>"
    loaded = ir.load(whole, access.host_of(first), access.element)
    if count == 1:
        return [loaded]
    return [_every(access, whole, loaded, k) for k in range(count)]


def _every(access: Access, whole: str, loaded: str, index: int) -> str:
    places = ", ".join(f"i32 {lane * access.count + index}" for lane in range(WARP))
    return access.e.ir.value(
        f"shufflevector {whole} {loaded}, {whole} poison, <{WARP} x i32> <{places}>"
    )


def _load_uniform(access: Access, first: str) -> list[str]:
    ir, scalar = access.e.ir, access.scalar
    access.check_one(first, access.width)
    if access.cached:
        access.charge_line(first, access.width)
    host = access.host_of(first)
    places = [ir.at(host, k * access.element) for k in range(access.count)]
    return [ir.broadcast(scalar, ir.load(scalar, p, access.element)) for p in places]


def gather(access: Access) -> list[str]:
    ir, scalar = access.e.ir, access.scalar
    access.check_all()
    access.charge_all()
    host = access.host()
    kind, mask = vector(scalar), access.mask or MASK_ALL
    name = f"llvm.masked.gather.v{WARP}{SUFFIX.get(scalar, scalar)}.v{WARP}p0"
    results = []
    for k in range(access.count):
        arguments = [
            (vector("ptr"), access.pointers(host, k)),
            ("i32", str(access.element)),
            (vector("i1"), mask),
            (kind, "zeroinitializer"),
        ]
        results.append(ir.call(kind, name, arguments))
    return results


def _store_line(access: Access, first: str, values: list[str]) -> list[str]:
    ir, count = access.e.ir, access.count
    access.traffic = LaunchField.WRITTEN_CYCLES
    access.check_one(first, WARP * access.width)
    access.charge_line(first, WARP * access.width)
    host = access.host_of(first)
    whole, size = values[0], WARP
    if count > 1:
        whole, size = _interleave(access, values), WARP * count
    ir.store(f"<{size} x {access.scalar}>", whole, host, access.element)
    return []


def _interleave(access: Access, values: list[str]) -> str:
    """Lane by lane, the elements side by side (2 or 4 of them)."""
    if len(values) == 4:
        values = [_zip(access, WARP, *values[0::2]), _zip(access, WARP, *values[1::2])]
        return _zip(access, 2 * WARP, *values)
    return _zip(access, WARP, *values)


def _zip(access: Access, size: int, a: str, b: str) -> str:
    kind = f"<{size} x {access.scalar}>"
    order = ", ".join(f"i32 {k // 2 + (k % 2) * size}" for k in range(2 * size))
    return access.e.ir.value(f"shufflevector {kind} {a}, {kind} {b}, <{2 * size} x i32> <{order}>")


def scatter(access: Access, values: list[str]) -> list[str]:
    ir, scalar = access.e.ir, access.scalar
    access.traffic = LaunchField.WRITTEN_CYCLES
    access.check_all()
    access.charge_all()
    host = access.host()
    name = f"llvm.masked.scatter.v{WARP}{SUFFIX.get(scalar, scalar)}.v{WARP}p0"
    for k, value in enumerate(values):
        arguments = [
            (vector(scalar), value),
            (vector("ptr"), access.pointers(host, k)),
            ("i32", str(access.element)),
            (vector("i1"), access.mask or MASK_ALL),
        ]
        ir.run(name, arguments)
    return []


def _ld(e: Emitter, instruction: Instruction) -> None:
    kind, space = type_of(instruction), space_of(instruction)
    target, source = instruction.operands[:2]
    targets = items_of(target)
    if space == "param" and isinstance(source, Address) and isinstance(source.base, Symbol):
        _load_parameter(e, targets, source, kind)
        return
    access = Access(e, space, SCALAR[kind], len(targets), effective_address(e, source, space))
    for register, value in zip(targets, load(access), strict=True):
        e.write(register, value, kind)


def _load_parameter(e: Emitter, targets: tuple[Operand, ...], source: Address, kind: str) -> None:
    """All lanes load the same place, which is known."""
    assert isinstance(source.base, Symbol)
    if source.base.name not in e.program.parameters:
        raise UnsupportedError(f"parameter {source.base.name}")
    offset = e.program.parameters[source.base.name] + source.base.offset + source.offset
    scalar = SCALAR[kind]
    for k, register in enumerate(targets):
        place = e.ir.at("%parameters", offset + k * BITS[scalar] // 8)
        e.write(register, e.ir.broadcast(scalar, e.ir.load(scalar, place, 1)), kind)


def _st(e: Emitter, instruction: Instruction) -> None:
    if not _UNLIKE_STORES.isdisjoint(instruction.tokens):
        raise UnsupportedError("stores to other blocks, and bulk stores")
    kind, space = type_of(instruction), space_of(instruction)
    target, source = instruction.operands[:2]
    sources = items_of(source)
    access = Access(e, space, SCALAR[kind], len(sources), effective_address(e, target, space))
    store(access, [e.value(item, kind) for item in sources])


def _cvta(e: Emitter, instruction: Instruction) -> None:
    kind, space = type_of(instruction), space_of(instruction)
    address = e.value(instruction.operands[1], kind)
    if space in WINDOWS:
        operation = "sub" if "to" in instruction.tokens else "add"
        address = e.ir.binary(operation, "i64", address, splat("i64", WINDOWS[space]))
    e.write(instruction.operands[0], address, kind)


def _isspacep(e: Emitter, instruction: Instruction) -> None:
    """Whether a generic address lies in a space; constants lie among the global variables."""
    space = space_of(instruction)
    ir, address = e.ir, e.value(instruction.operands[1], "u64")
    if space == "global":
        inside = ir.compare("uge", "i64", address, splat("i64", ARENA_BASE))
    elif space in WINDOWS:
        moved = ir.binary("sub", "i64", address, splat("i64", WINDOWS[space]))
        inside = ir.compare("ult", "i64", moved, splat("i64", WINDOW_BYTES))
    else:
        raise UnsupportedError(f"isspacep.{space}")
    e.write(instruction.operands[0], inside, "pred")


def _createpolicy(e: Emitter, instruction: Instruction) -> None:
    """A cache policy is a hint: its value is never looked at."""
    e.write(instruction.operands[0], splat("i64", 0), "b64")


def _nothing(_: Emitter, __: Instruction) -> None:
    """Order and hints: the simulator's memory is always in order."""


_UNLIKE_STORES = frozenset(("async", "bulk"))
OPCODES: dict[str, Callable[[Emitter, Instruction], None]] = {
    "ld": _ld,
    "ldu": _ld,
    "st": _st,
    "cvta": _cvta,
    "isspacep": _isspacep,
    "createpolicy": _createpolicy,
    **dict.fromkeys(
        (
            *("membar", "fence", "prefetch", "prefetchu", "discard", "applypriority"),
            *("nanosleep", "setmaxnreg"),
        ),
        _nothing,
    ),
}
