"""What each opcode computes for one thread, from operand bit patterns to a bit pattern."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import binary_float as bf
import scalar_approximate
import scalar_bits
from scalar_bits import signed

WIDTHS = {f"{letter}{width}": width for letter in "bus" for width in (8, 16, 32, 64)}
WIDTHS |= {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "pred": 1, "tf32": 32, "e4m3": 8, "e5m2": 8}
PACKED = {f"{name}x2": name for name in ("f16", "bf16", "s16", "u16", "e4m3", "e5m2")}
WIDTHS |= {name: 2 * WIDTHS[element] for name, element in PACKED.items()}


@dataclass(frozen=True)
class Form:
    """An opcode with its modifiers; `kind` is the type of its operands."""

    tokens: tuple[str, ...]
    kind: str

    def has(self, token: str) -> bool:
        return token in self.tokens

    @property
    def width(self) -> int:
        return WIDTHS[self.kind]

    @property
    def is_signed(self) -> bool:
        return self.kind.startswith("s")

    @property
    def is_float(self) -> bool:
        return self.kind in bf.FORMATS

    @property
    def mode(self) -> str:
        """The rounding mode's letter."""
        return next((t[1:] for t in self.tokens if t in ("rz", "rm", "rp", "rna")), "n")[-1]

    def number(self, bits: int) -> int:
        """The integer that a pattern stands for in this type."""
        return signed(bits, self.width) if self.is_signed else bits

    @property
    def least(self) -> int:
        return -(1 << (self.width - 1)) if self.is_signed else 0

    @property
    def most(self) -> int:
        return (1 << (self.width - self.is_signed)) - 1


def clamped(form: Form, number: int) -> int:
    return max(form.least, min(form.most, number))


def _floating(compute: Callable[..., int]) -> Callable[..., int]:
    """Puts `.ftz`, `.sat` and `.relu` around a computation on patterns."""

    def run(form: Form, *operands: int) -> int:
        f = bf.FORMATS[form.kind]
        ftz = form.has("ftz") and form.kind in ("f32", "f16")
        given = [bf.flush(f, bits) for bits in operands] if ftz else operands
        result = compute(form, f, *given)
        result = bf.flush(f, result) if ftz else result
        result = bf.saturate(f, result) if form.has("sat") else result
        return bf.clip(f, result) if form.has("relu") else result

    return run


def _rounding(compute: Callable[..., int]) -> Callable[..., int]:
    return _floating(lambda form, f, *operands: compute(f, *operands, mode=form.mode))


def _float_extreme(form: Form, f: bf.Format, a: int, b: int) -> int:
    signs = (a ^ b) & f.sign
    if form.has("xorsign"):
        a, b = bf.magnitude(f, a), bf.magnitude(f, b)
    greatest = form.tokens[0] == "max"
    result = bf.extreme(f, a, b, greatest=greatest, nan_wins=form.has("NaN"))
    return result | signs if form.has("xorsign") and not bf.is_nan(f, result) else result


def _sign_changed(f: bf.Format, before: int, after: int) -> int:
    """Of numbers the pattern; a NaN is computed anew."""
    return f.nan if bf.is_nan(f, before) else after


def _gross(form: Form, f: bf.Format, bits: int) -> int:
    return scalar_approximate.gross(f, bits) if form.has("approx") else bits


def _library(name: str) -> Callable[..., int]:
    return _floating(lambda _, f, a: scalar_approximate.by_library(name, f, a))


_FLOAT: dict[str, Callable[..., int]] = {
    "add": _rounding(bf.add),
    "sub": _rounding(lambda f, a, b, mode: bf.add(f, a, b ^ f.sign, mode)),
    "mul": _rounding(bf.mul),
    "fma": _rounding(bf.fma),
    "mad": _rounding(bf.fma),
    "div": _rounding(bf.div),
    "sqrt": _rounding(bf.sqrt),
    "rcp": _floating(lambda form, f, a: _gross(form, f, bf.div(f, f.one, a, form.mode))),
    "rsqrt": _floating(
        lambda form, f, a: _gross(form, f, scalar_approximate.inverse_root(f, a, form.mode))
    ),
    "ex2": _library("exp2f"),
    "lg2": _library("log2f"),
    "sin": _library("sinf"),
    "cos": _library("cosf"),
    "tanh": _library("tanhf"),
    "neg": _floating(lambda _, f, a: _sign_changed(f, a, a ^ f.sign)),
    "abs": _floating(lambda _, f, a: _sign_changed(f, a, a & ~f.sign)),
    "copysign": _floating(lambda _, f, a, b: (a & f.sign) | bf.magnitude(f, b)),
    "min": _floating(_float_extreme),
    "max": _floating(_float_extreme),
}


def _sum(form: Form, a: int, b: int) -> int:
    total = form.number(a) + (form.number(b) if form.tokens[0] == "add" else -form.number(b))
    return clamped(form, total) if form.has("sat") else total


def _product(form: Form, a: int, b: int, c: int = 0) -> int:
    product = form.number(a) * form.number(b)
    if form.has("hi"):
        product >>= form.width
    wide = Form((), form.kind[0] + str(2 * form.width)) if form.has("wide") else form
    total = product + wide.number(c)
    return clamped(form, total) if form.has("sat") else total


def _product24(form: Form, a: int, b: int, c: int = 0) -> int:
    x, y = (signed(v & 0xFFFFFF, 24) if form.is_signed else v & 0xFFFFFF for v in (a, b))
    product = signed((x * y >> 16 if form.has("hi") else x * y) & 0xFFFFFFFF, 32)
    return clamped(form, product + signed(c, 32)) if form.has("sat") else product + c


def _quotient(form: Form, a: int, b: int) -> int:
    x, y = form.number(a), form.number(b)
    if y == 0:
        return -1
    size = abs(x) // abs(y)
    return size if (x < 0) == (y < 0) else -size


def _remainder(form: Form, a: int, b: int) -> int:
    x, y = form.number(a), form.number(b)
    return x if y == 0 else x - y * _quotient(form, a, b)


def _left(form: Form, a: int, amount: int) -> int:
    return a << min(amount, form.width)


def _right(form: Form, a: int, amount: int) -> int:
    return form.number(a) >> min(amount, form.width)


def _funnel(form: Form, low: int, high: int, amount: int) -> int:
    shift = amount & 31 if form.has("wrap") else min(amount, 32)
    both = high << 32 | low
    return (both << shift) >> 32 if form.tokens[1] == "l" else both >> shift


def _above_zero(form: Form, a: int) -> int:
    return 0 if form.has("relu") and form.number(a) < 0 else a


def _distance(form: Form, a: int, b: int, c: int) -> int:
    return c + abs(form.number(a) - form.number(b))


_INTEGER: dict[str, Callable[..., int]] = {
    "add": _sum,
    "sub": _sum,
    "mul": _product,
    "mad": _product,
    "mul24": _product24,
    "mad24": _product24,
    "div": _quotient,
    "rem": _remainder,
    "min": lambda form, a, b: _above_zero(form, min(a, b, key=form.number)),
    "max": lambda form, a, b: _above_zero(form, max(a, b, key=form.number)),
    "neg": lambda _, a: -a,
    "abs": lambda form, a: abs(form.number(a)),
    "and": lambda _, a, b: a & b,
    "or": lambda _, a, b: a | b,
    "xor": lambda _, a, b: a ^ b,
    "not": lambda _, a: ~a,
    "cnot": lambda _, a: int(a == 0),
    "shl": _left,
    "shr": _right,
    "shf": _funnel,
    **scalar_bits.OPCODES,
    "sad": _distance,
}

_ORDERED: dict[str, Callable[[int], bool]] = {
    "eq": lambda order: order == 0,
    "ne": lambda order: order != 0,
    "lt": lambda order: order < 0,
    "le": lambda order: order <= 0,
    "gt": lambda order: order > 0,
    "ge": lambda order: order >= 0,
}
_UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def holds(name: str, form: Form, a: int, b: int) -> bool:
    """A comparison by its PTX name."""
    if not form.is_float:
        x, y = form.number(a), form.number(b)
        return _ORDERED[_UNSIGNED_NAMES.get(name, name)]((x > y) - (x < y))
    f = bf.FORMATS[form.kind]
    if form.has("ftz") and form.kind in ("f32", "f16"):
        a, b = bf.flush(f, a), bf.flush(f, b)
    order = bf.compare(f, a, b)
    if name in ("num", "nan"):
        return (order is None) == (name == "nan")
    if order is None:
        return name.endswith("u")
    return _ORDERED[name.removesuffix("u")](order)


def compared(form: Form, a: int, b: int) -> list[bool]:
    """The comparison that the opcode names: one truth, or those of the low and high elements."""
    name = form.tokens[1]
    if form.kind not in PACKED:
        return [holds(name, form, a, b)]
    half = Form(form.tokens, PACKED[form.kind])
    ones = (1 << half.width) - 1
    return [holds(name, half, a >> at & ones, b >> at & ones) for at in (0, half.width)]


def truth_pattern(kind: str, truths: list[bool]) -> int:
    """What `set` writes into a result of type `kind`, one element for each truth."""
    element = PACKED.get(kind, kind)
    width = WIDTHS[element]
    yes = bf.FORMATS[element].one if element in bf.FORMATS else (1 << width) - 1
    return sum(yes << (width * k) for k, truth in enumerate(truths) if truth)


def combined(form: Form, first: bool, other: int) -> bool:
    """A comparison joined with a predicate by `.and`, `.or` or `.xor`."""
    results = {
        "and": first and bool(other),
        "or": first or bool(other),
        "xor": first != bool(other),
    }
    return next((results[name] for name in results if form.has(name)), first)


def has_property(form: Form, a: int) -> bool:
    f = bf.FORMATS[form.kind]
    finite = bf.magnitude(f, a) < f.infinity
    results = {
        "finite": finite,
        "infinite": bf.is_infinite(f, a),
        "number": not bf.is_nan(f, a),
        "notanumber": bf.is_nan(f, a),
        "normal": finite and not bf.is_subnormal(f, a) and not bf.is_zero(f, a),
        "subnormal": bf.is_subnormal(f, a),
    }
    return results[form.tokens[1]]


def converted(form: Form, target: str, source: str, *operands: int) -> int:
    """cvt: `form.tokens` holds the rounding and saturation."""
    if target not in PACKED:
        (bits,) = operands
        return _converted(form, target, source, bits)
    if source in PACKED:
        half = WIDTHS[source] // 2
        operands = (operands[0] >> half, operands[0] & (1 << half) - 1)
        source = PACKED[source]
    high, low = (_converted(form, PACKED[target], source, bits) for bits in operands)
    return high << WIDTHS[PACKED[target]] | low


def _converted(form: Form, target: str, source: str, bits: int) -> int:
    to, come = Form(form.tokens, target), Form(form.tokens, source)
    if (target, source) == ("f32", "bf16") and not form.has("sat"):
        return bits << 16
    if come.is_float and form.has("ftz") and source == "f32":
        bits = bf.flush(bf.FORMATS[source], bits)
    if come.is_float:
        return _from_float(to, come, bits)
    number = come.number(bits)
    if to.is_float:
        return _finished(to, bf.encode(bf.FORMATS[target], Fraction(number), mode=form.mode))
    return clamped(to, number) if form.has("sat") else number


def packed(form: Form, target: str, source: str, a: int, b: int, c: int = 0) -> int:
    """cvt.pack: b lowest, a above it, c above both."""
    to, come = Form(form.tokens, target), Form(form.tokens, source)
    ones = (1 << to.width) - 1
    low, high = (clamped(to, come.number(x)) & ones for x in (b, a))
    return c << (2 * to.width) | high << to.width | low


def _from_float(to: Form, come: Form, bits: int) -> int:
    f = bf.FORMATS[come.kind]
    mode = next((t[1] for t in to.tokens if t in ("rni", "rzi", "rmi", "rpi")), None)
    if not to.is_float:
        return _to_integer(to, come, bits, mode or "z")
    if mode:
        bits = bf.integral(f, bits, mode)
    return _finished(to, bf.convert(f, bf.FORMATS[to.kind], bits, to.mode))


def _finished(to: Form, result: int) -> int:
    """A conversion's result after `.ftz`, `.sat`, `.relu` and `.satfinite`."""
    target = bf.FORMATS[to.kind]
    if to.has("ftz") and to.kind == "f32":
        result = bf.flush(target, result)
    if to.has("sat"):
        result = bf.saturate(target, result)
    if to.has("relu"):
        result = bf.clip(target, result)
    if to.has("satfinite") and not bf.is_nan(target, result):
        result = (result & target.sign) | min(bf.magnitude(target, result), target.infinity - 1)
    return result << 13 if to.kind == "tf32" else result


def _to_integer(to: Form, come: Form, bits: int, mode: str) -> int:
    """Out of range gives the nearest; NaN what the PTX manual says under `cvt`."""
    f = bf.FORMATS[come.kind]
    if bf.is_nan(f, bits):
        wide = come.kind == "f64" or to.width == 64
        return 1 << (to.width - 1) if wide else 0
    if bf.is_infinite(f, bits):
        return to.least if bits & f.sign else to.most
    return clamped(to, bf.rounded(bf.value_of(f, bits), mode))


def compute(form: Form, operands: list[int]) -> int:
    """The result of an arithmetic, logic or bit instruction, not yet cut to a register."""
    if form.kind in PACKED:
        half = Form(form.tokens, PACKED[form.kind])
        ones = (1 << half.width) - 1
        low, high = (compute(half, [x >> at & ones for x in operands]) for at in (0, half.width))
        return (high & ones) << half.width | low & ones
    table = _FLOAT if form.is_float else _INTEGER
    return table[form.tokens[0]](form, *operands)
