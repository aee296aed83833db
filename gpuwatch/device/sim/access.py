"""One memory access of a warp, by the pattern that its addresses form.

Lanes at consecutive addresses and lanes at one address take short ways; any other pattern
gathers or scatters. The cycles count distinct 32-byte sectors, four to a wavefront, and, in
shared memory, the most distinct words in one bank.
"""

from __future__ import annotations

from collections.abc import Callable

from gpuwatch.device.sim.emitter import Emitter, UnsupportedError
from gpuwatch.device.sim.ir import BITS, MASK_ALL, lanes, splat, vector
from gpuwatch.device.sim.layout import (
    ARENA_BASE,
    LINE_BYTES,
    SCATTERED_ATOMIC_TURNS,
    SECTOR_BYTES,
    WAVEFRONT_BYTES,
    WAVEFRONT_SECTORS,
    WIDE_BYTES,
    WINDOW_BYTES,
    WINDOWS,
    FaultKind,
    LaunchField,
)
from gpuwatch.ptx.model import Address, Immediate, Instruction, Operand, Symbol

SPACES = ("param", "global", "shared", "local", "const")
ADDRESSES = vector("i64")


def space_of(instruction: Instruction) -> str:
    """The state space that the opcode names, or "generic"; `shared::cta` counts as shared."""
    for token in instruction.tokens[1:]:
        name = token.split("::")[0]
        if name in SPACES:
            return name
    return "generic"


def effective_address(e: Emitter, operand: Operand, space: str) -> str:
    """The lanes' addresses in `space` as a vector of i64."""
    if not isinstance(operand, Address):
        raise UnsupportedError("this form of address")
    base, offset = operand.base, operand.offset
    if isinstance(base, Symbol):
        return splat("i64", e.symbol(base) + offset)
    if isinstance(base, Immediate):
        return splat("i64", int(base.value) + offset)
    wide = e.program.registers.get(base.name, "u64").endswith("64")
    address = e.value(base, "u64" if wide else "u32")
    if not wide:
        address = e.ir.cast("zext", "i32", address, "i64")
    if offset:
        address = e.ir.binary("add", "i64", address, splat("i64", offset))
    if space == "shared" and wide:
        address = e.ir.binary("and", "i64", address, splat("i64", WINDOW_BYTES * 256 - 1))
    return address


class Access:
    """One access: `count` elements of LLVM type `scalar` per lane, side by side."""

    def __init__(self, e: Emitter, space: str, scalar: str, count: int, address: str) -> None:
        self.e = e
        self.space = space
        self.scalar = scalar
        self.count = count
        self.address = address
        self.element = BITS[scalar] // 8
        self.width = self.element * count
        self.mask = e.mask()
        self.traffic: int | None = None
        """The field with the cycles of a sector that a store or an atomic sends to the L2; None
        for loads, which look in the L1 first."""
        self._host: str | None = None

    @property
    def cached(self) -> bool:
        return self.space in ("global", "generic")

    def limit(self, space: str) -> str:
        """Bytes of a space, as a scalar."""
        if space == "shared":
            return self.e.launch_value("i64", LaunchField.SHARED_BYTES)
        if space == "local":
            return str(self.e.program.local_bytes)
        if space == "param":
            return str(self.e.program.parameter_bytes)
        return self.e.launch_value("i64", LaunchField.ARENA_BYTES)

    def base(self) -> int:
        return 0 if self.space in WINDOWS else ARENA_BASE

    def check_one(self, address: str, extent: int) -> None:
        """Faults unless `extent` bytes at the scalar `address` are inside and aligned."""
        ir = self.e.ir
        inside = ir.value(f"sub i64 {address}, {self.base()}")
        room = ir.value(f"sub i64 {self.limit(self.space)}, {extent}")
        fits = ir.value(f"icmp sle i64 {inside}, {room}")
        above = ir.value(f"icmp sge i64 {inside}, 0")
        low = ir.value(f"and i64 {address}, {self.width - 1}")
        aligned = ir.value(f"icmp eq i64 {low}, 0")
        good = ir.value(f"and i1 {ir.value(f'and i1 {fits}, {above}')}, {aligned}")
        self.e.fault_unless(good, FaultKind.ADDRESS, self.address, self.mask or MASK_ALL)

    def check_all(self) -> None:
        """Faults unless the address of every lane in the mask is inside and aligned."""
        ir = self.e.ir
        if self.space == "generic":
            bad = self._outside_all_windows()
        else:
            bad = self._outside(self.base(), self.limit(self.space))
        low = ir.binary("and", "i64", self.address, splat("i64", self.width - 1))
        bad = ir.binary("or", "i1", bad, ir.compare("ne", "i64", low, splat("i64", 0)))
        if self.mask is not None:
            bad = ir.binary("and", "i1", bad, self.mask)
        good = ir.value(f"icmp eq i32 {ir.bits_of(bad)}, 0")
        self.e.fault_unless(good, FaultKind.ADDRESS, self.address, self.mask or MASK_ALL)

    def _outside(self, base: int, limit: str) -> str:
        ir = self.e.ir
        inside = ir.binary("sub", "i64", self.address, splat("i64", base))
        room = ir.broadcast("i64", ir.value(f"sub i64 {limit}, {self.width}"))
        return ir.binary(
            "or",
            "i1",
            ir.compare("sgt", "i64", inside, room),
            ir.compare("slt", "i64", inside, splat("i64", 0)),
        )

    def _outside_all_windows(self) -> str:
        outside = self._outside(ARENA_BASE, self.limit("global"))
        for space in self._generic_windows():
            beside = self._outside(WINDOWS[space], self.limit(space))
            outside = self.e.ir.binary("and", "i1", outside, beside)
        return outside

    def _generic_windows(self) -> list[str]:
        return [space for space in WINDOWS if space != "param" or self.e.generic_parameters]

    def host_of(self, address: str) -> str:
        """Host pointer of a scalar global or shared address."""
        ir = self.e.ir
        if self.space == "shared":
            return ir.at("%shared", address)
        delta = self.e.launch_value("i64", LaunchField.ARENA_DELTA)
        return ir.value(f"inttoptr i64 {ir.value(f'add i64 {address}, {delta}')} to ptr")

    def host(self) -> str:
        """Host addresses of all lanes, as a vector of i64."""
        ir = self.e.ir
        if self.space in WINDOWS:
            return ir.binary("add", "i64", self.address, self._start(self.space))
        delta = ir.broadcast("i64", self.e.launch_value("i64", LaunchField.ARENA_DELTA))
        if self.space == "generic":
            for space in self._generic_windows():
                delta = self._window(delta, WINDOWS[space], self._start(space))
        return ir.binary("add", "i64", self.address, delta)

    def _start(self, space: str) -> str:
        """Host addresses of the first bytes of a space, as a vector of i64."""
        ir = self.e.ir
        if space == "local":
            return ir.load(ADDRESSES, "%local.base")
        place = "%shared" if space == "shared" else "%parameters"
        return ir.broadcast("i64", ir.value(f"ptrtoint ptr {place} to i64"))

    def _window(self, delta: str, window: int, base: str) -> str:
        ir = self.e.ir
        moved = ir.binary("sub", "i64", self.address, splat("i64", window))
        inside = ir.compare("ult", "i64", moved, splat("i64", WINDOW_BYTES))
        shifted = ir.binary("sub", "i64", base, splat("i64", window))
        return ir.select(inside, "i64", shifted, delta)

    def pointers(self, host: str, index: int) -> str:
        """Pointers to element `index` of each lane."""
        ir = self.e.ir
        if index:
            host = ir.binary("add", "i64", host, splat("i64", index * self.element))
        return ir.value(f"inttoptr {ADDRESSES} {host} to {vector('ptr')}")

    def charge_line(self, address: str, extent: int) -> None:
        """Cycles of `extent` consecutive bytes."""
        passes = extent // WAVEFRONT_BYTES - self._counted_passes()
        if self.space == "shared":
            if passes > 0:
                self.e.cost(LaunchField.CONFLICT_CYCLES, str(passes))
        elif self.cached:
            if passes > 0:
                self.e.cost(LaunchField.WAVEFRONT_CYCLES, str(passes))
            sectors = str(max(1, extent // SECTOR_BYTES))
            if self.traffic is not None:
                self.e.cost(self.traffic, sectors)
            else:
                self._miss(self._touch(address, extent), sectors)

    def _counted_passes(self) -> int:
        """Those that the cost of the basic block holds."""
        return 2 if self.width >= WIDE_BYTES else 1

    def _touch(self, address: str, extent: int) -> str:
        """Whether one of the lines was not in the L1."""
        ir = self.e.ir
        places = [address]
        places += [ir.value(f"add i64 {address}, {k}") for k in range(LINE_BYTES, extent, 128)]
        if extent > SECTOR_BYTES:
            places.append(ir.value(f"add i64 {address}, {extent - 1}"))
        missed = "false"
        for place in places:
            found = ir.call("i1", "touch_line", [("ptr", "%worker"), ("i64", place)])
            missed = ir.value(f"or i1 {missed}, {found}")
        return missed

    def _miss(self, missed: str, sectors: str) -> None:
        """Cycles of fetching `sectors` when `missed`."""
        e, ir = self.e, self.e.ir
        index = len(e.program.blocks) + e.block
        late = e.launch_value("i64", LaunchField.COSTS + 8 * index)
        each = e.launch_value("i64", LaunchField.SECTOR_CYCLES)
        cycles = ir.value(f"add i64 {late}, {ir.value(f'mul i64 {each}, {sectors}')}")
        e.add_cycles(ir.value(f"select i1 {missed}, i64 {cycles}, i64 0"))

    def charge_all(self) -> None:
        """Cycles of any pattern, counted lane by lane."""
        e, ir = self.e, self.e.ir
        if self.space not in ("global", "generic", "shared"):
            return
        ir.store(ADDRESSES, self.address, "%scratch", 64)
        bits = ir.bits_of(self.mask or MASK_ALL)
        arguments = [("ptr", "%scratch"), ("i32", bits)]
        if self.space == "shared":
            e.cost(LaunchField.CONFLICT_CYCLES, ir.call("i64", "bank_conflicts", arguments))
            return
        sectors = ir.call("i64", "distinct_sectors", arguments)
        wavefronts = ir.value(f"lshr i64 {sectors}, {WAVEFRONT_SECTORS.bit_length() - 1}")
        e.cost(LaunchField.WAVEFRONT_CYCLES, wavefronts)
        if self.traffic is not None:
            e.cost(self.traffic, sectors)
            if self.traffic == LaunchField.ATOMIC_CYCLES:
                one = ir.value(f"icmp eq i64 {sectors}, 1")
                turns = ir.value(f"select i1 {one}, i64 1, i64 {SCATTERED_ATOMIC_TURNS}")
                ir.run("count_atomics", [("ptr", "%worker"), *arguments, ("i64", turns)])
            return
        lines = ir.call("i64", "touch_lines", [("ptr", "%worker"), *arguments])
        fetched = ir.call("i64", "missed_sectors", [("i64", sectors), ("i64", lines)])
        self._miss(ir.value(f"icmp ne i64 {fetched}, 0"), fetched)

    def patterns(
        self,
        line: Callable[[str], list[str]],
        uniform: Callable[[str], list[str]] | None,
        scattered: Callable[[], list[str]],
    ) -> list[str]:
        """Branches on the pattern and merges what the ways give (vectors of `scalar`)."""
        if self.mask is not None or self.space not in ("global", "shared", "const"):
            return scattered()
        ir = self.e.ir
        first = ir.value(f"extractelement {ADDRESSES} {self.address}, i32 0")
        apart = ir.binary("sub", "i64", self.address, ir.broadcast("i64", first))
        tests = [(lanes("i64", self.width), line)]
        if uniform is not None:
            tests.append((splat("i64", 0), uniform))
        results, ends = [], []
        done = ir.fresh("merged")
        for pattern, emit in tests:
            bits = ir.bits_of(ir.compare("eq", "i64", apart, pattern))
            hit, miss = ir.fresh("pattern"), ir.fresh("other")
            ir.branch(ir.value(f"icmp eq i32 {bits}, -1"), hit, miss)
            ir.label(hit)
            results.append(emit(first))
            ends.append(self._end(done))
            ir.label(miss)
        results.append(scattered())
        ends.append(self._end(done))
        ir.label(done)
        return [self._merge([r[k] for r in results], ends) for k in range(len(results[0]))]

    def _end(self, done: str) -> str:
        ir = self.e.ir
        end = ir.fresh("end")
        ir.jump(end)
        ir.label(end)
        ir.jump(done)
        return end

    def _merge(self, values: list[str], ends: list[str]) -> str:
        sources = ", ".join(f"[{v}, %{end}]" for v, end in zip(values, ends, strict=True))
        return self.e.ir.value(f"phi {vector(self.scalar)} {sources}")
