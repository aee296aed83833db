"""Text of LLVM IR, one warp of 32 lanes to a vector."""

from __future__ import annotations

from collections.abc import Iterable

WARP = 32
MASK_ALL = "splat (i1 true)"

SCALAR = {
    "pred": "i1", "f16": "half", "f32": "float", "f64": "double",
    "b8": "i8", "u8": "i8", "s8": "i8", "b16": "i16", "u16": "i16", "s16": "i16",
    "b32": "i32", "u32": "i32", "s32": "i32", "b64": "i64", "u64": "i64", "s64": "i64",
    "bf16": "i16", "e4m3": "i8", "e5m2": "i8", "e4m3x2": "i16", "e5m2x2": "i16",
    "f16x2": "i32", "bf16x2": "i32", "s16x2": "i32", "u16x2": "i32", "tf32": "i32",
}  # fmt: skip
"""LLVM type of a PTX type."""

BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64,
        "half": 16, "float": 32, "double": 64}  # fmt: skip
SUFFIX = {"half": "f16", "float": "f32", "double": "f64"}


def vector(scalar: str) -> str:
    return f"<{WARP} x {scalar}>"


def splat(scalar: str, value: int | str) -> str:
    return f"splat ({scalar} {value})"


def lanes(scalar: str, step: int = 1) -> str:
    """The constant vector 0, step, 2 step, ..."""
    return constants(scalar, (lane * step for lane in range(WARP)))


def constants(scalar: str, values: Iterable[int]) -> str:
    """A constant vector with one value for each lane."""
    return "<" + ", ".join(f"{scalar} {value}" for value in values) + ">"


def number(scalar: str, bits: int) -> str:
    """A constant vector of a floating type from its bit pattern."""
    width = BITS[scalar]
    bits -= (bits >> (width - 1)) << width
    return f"bitcast (<{WARP} x i{width}> splat (i{width} {bits}) to <{WARP} x {scalar}>)"


class Builder:
    """Collects the lines of one function and the declarations it needs."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self.functions: dict[str, str] = {}
        """Definitions that the emitted code calls, by name."""
        self._count = 0

    def fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def emit(self, line: str) -> None:
        self.lines.append("  " + line)

    def label(self, name: str) -> None:
        self.lines.append(name + ":")

    def value(self, expression: str) -> str:
        name = self.fresh("%t")
        self.emit(f"{name} = {expression}")
        return name

    def jump(self, label: str) -> None:
        self.emit(f"br label %{label}")

    def branch(self, condition: str, then: str, other: str) -> None:
        self.emit(f"br i1 {condition}, label %{then}, label %{other}")

    def load(self, kind: str, pointer: str, align: int = 0) -> str:
        return self.value(f"load {kind}, ptr {pointer}" + (f", align {align}" if align else ""))

    def store(self, kind: str, value: str, pointer: str, align: int = 0) -> None:
        self.emit(f"store {kind} {value}, ptr {pointer}" + (f", align {align}" if align else ""))

    def at(self, pointer: str, offset: int | str) -> str:
        """`pointer` plus a number of bytes."""
        return self.value(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def broadcast(self, scalar: str, value: str) -> str:
        kind = vector(scalar)
        first = self.value(f"insertelement {kind} poison, {scalar} {value}, i32 0")
        return self.value(
            f"shufflevector {kind} {first}, {kind} poison, <{WARP} x i32> zeroinitializer"
        )

    def permute(self, scalar: str, value: str, places: Iterable[int]) -> str:
        """Each lane's value from the lane that `places` names."""
        kind = vector(scalar)
        order = ", ".join(f"i32 {place}" for place in places)
        return self.value(f"shufflevector {kind} {value}, {kind} poison, <{WARP} x i32> <{order}>")

    def bits_of(self, mask: str) -> str:
        """A mask of lanes as an i32."""
        return self.value(f"bitcast <{WARP} x i1> {mask} to i32")

    def binary(self, operation: str, scalar: str, a: str, b: str) -> str:
        return self.value(f"{operation} {vector(scalar)} {a}, {b}")

    def unary(self, operation: str, scalar: str, a: str) -> str:
        return self.value(f"{operation} {vector(scalar)} {a}")

    def select(self, mask: str, scalar: str, a: str, b: str) -> str:
        kind = vector(scalar)
        return self.value(f"select <{WARP} x i1> {mask}, {kind} {a}, {kind} {b}")

    def compare(self, condition: str, scalar: str, a: str, b: str) -> str:
        operation = "fcmp" if scalar in SUFFIX else "icmp"
        return self.value(f"{operation} {condition} {vector(scalar)} {a}, {b}")

    def cast(self, operation: str, source: str, value: str, target: str) -> str:
        return self.value(f"{operation} {vector(source)} {value} to {vector(target)}")

    def call(self, result: str, name: str, arguments: list[tuple[str, str]]) -> str:
        """A call that gives a value; arguments are (type, value)."""
        return self.value(self._call(result, name, arguments))

    def run(self, name: str, arguments: list[tuple[str, str]]) -> None:
        """A call that gives nothing."""
        self.emit(self._call("void", name, arguments))

    def intrinsic(self, name: str, scalar: str, *values: str, extra: str = "") -> str:
        """A vector intrinsic of one type; `extra` is a trailing i1 argument."""
        kind = vector(scalar)
        arguments = [(kind, value) for value in values] + ([("i1", extra)] if extra else [])
        return self.call(kind, f"llvm.{name}.v{WARP}{SUFFIX.get(scalar, scalar)}", arguments)

    def _call(self, result: str, name: str, arguments: list[tuple[str, str]]) -> str:
        kinds = ", ".join(kind for kind, _ in arguments)
        if name.startswith("llvm."):
            self.declarations.add(f"declare {result} @{name}({kinds})")
        given = ", ".join(f"{kind} {value}" for kind, value in arguments)
        return f"call {result} @{name}({given})"
