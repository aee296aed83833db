"""IEEE 754 arithmetic on bit patterns: exact rationals, rounded once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    exponent_bits: int
    fraction_bits: int
    finite_only: bool = False
    """No infinities: numbers go on up to the one NaN, all ones."""

    @property
    def width(self) -> int:
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def sign(self) -> int:
        return 1 << (self.width - 1)

    @property
    def infinity(self) -> int:
        """The first pattern above the numbers."""
        if self.finite_only:
            return self.nan
        return ((1 << self.exponent_bits) - 1) << self.fraction_bits

    @property
    def nan(self) -> int:
        """What arithmetic gives: all ones, but in f64 only the top bits."""
        if self.width == 64:
            return self.sign | self.infinity | 1 << (self.fraction_bits - 1)
        return self.sign - 1

    @property
    def one(self) -> int:
        return self.bias << self.fraction_bits


FORMATS = {
    "f16": Format(5, 10),
    "bf16": Format(8, 7),
    "f32": Format(8, 23),
    "f64": Format(11, 52),
    "tf32": Format(8, 10),
    "e4m3": Format(4, 3, finite_only=True),
    "e5m2": Format(5, 2),
}
_ROOT_BITS = 640
"""Binary places of a root that are enough to round that of any f64."""


def magnitude(f: Format, bits: int) -> int:
    return bits & (f.sign - 1)


def is_nan(f: Format, bits: int) -> bool:
    return magnitude(f, bits) + f.finite_only > f.infinity


def is_infinite(f: Format, bits: int) -> bool:
    return not f.finite_only and magnitude(f, bits) == f.infinity


def is_zero(f: Format, bits: int) -> bool:
    return magnitude(f, bits) == 0


def is_subnormal(f: Format, bits: int) -> bool:
    return 0 < magnitude(f, bits) < 1 << f.fraction_bits


def value_of(f: Format, bits: int) -> Fraction:
    """The number that a finite pattern stands for."""
    exponent = magnitude(f, bits) >> f.fraction_bits
    fraction = bits & ((1 << f.fraction_bits) - 1)
    if exponent:
        fraction |= 1 << f.fraction_bits
    scale = max(exponent, 1) - f.bias - f.fraction_bits
    number = Fraction(fraction) * Fraction(2) ** scale
    return -number if bits & f.sign else number


def rounded(value: Fraction, mode: str) -> int:
    """An integer near a value of any sign: "n" to even, "a" ties away, "z", "m" down, "p" up."""
    low = math.floor(value)
    rest = value - low
    if mode == "a":
        half = Fraction(1, 2)
        return low + (rest > half or (rest == half and value > 0))
    if mode == "n":
        half = Fraction(1, 2)
        return low + (rest > half or (rest == half and low % 2 == 1))
    up = {"m": False, "p": True, "z": value < 0}[mode]
    return low + (up and rest > 0)


def encode(f: Format, value: Fraction, *, zero_sign: int = 0, mode: str = "n") -> int:
    """The pattern nearest to an exact value; `zero_sign` is the sign bit of an exact zero."""
    if value == 0:
        return zero_sign
    sign = f.sign if value < 0 else 0
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    exponent = max(exponent, 1 - f.bias)
    quantum = Fraction(2) ** (exponent - f.fraction_bits)
    steps = abs(rounded(value / quantum, mode))
    bits = ((exponent + f.bias - 1) << f.fraction_bits) + steps
    if bits < f.infinity:
        return sign | bits
    to_largest = (
        f.finite_only or mode == "z" or (mode == "m" and not sign) or (mode == "p" and bool(sign))
    )
    return sign | (f.infinity - 1 if to_largest else f.infinity)


def fma(f: Format, a: int, b: int, c: int, mode: str = "n") -> int:
    product_sign = (a ^ b) & f.sign
    if any(is_nan(f, x) for x in (a, b, c)):
        return f.nan
    if is_infinite(f, a) or is_infinite(f, b):
        undefined = is_zero(f, a) or is_zero(f, b)
        opposed = is_infinite(f, c) and (c & f.sign) != product_sign
        return f.nan if undefined or opposed else product_sign | f.infinity
    if is_infinite(f, c):
        return c
    exact = value_of(f, a) * value_of(f, b) + value_of(f, c)
    both = is_zero(f, c) and product_sign == c & f.sign
    zero_sign = product_sign if both else f.sign if mode == "m" else 0
    return encode(f, exact, zero_sign=zero_sign, mode=mode)


def add(f: Format, a: int, b: int, mode: str = "n") -> int:
    return fma(f, a, f.one, b, mode)


def mul(f: Format, a: int, b: int, mode: str = "n") -> int:
    return fma(f, a, b, (a ^ b) & f.sign, mode)


def div(f: Format, a: int, b: int, mode: str = "n") -> int:
    sign = (a ^ b) & f.sign
    both_zero = is_zero(f, a) and is_zero(f, b)
    both_infinite = is_infinite(f, a) and is_infinite(f, b)
    if is_nan(f, a) or is_nan(f, b) or both_zero or both_infinite:
        return f.nan
    if is_infinite(f, a) or is_zero(f, b):
        return sign | f.infinity
    if is_infinite(f, b):
        return sign
    return encode(f, value_of(f, a) / value_of(f, b), zero_sign=sign, mode=mode)


def sqrt(f: Format, a: int, mode: str = "n") -> int:
    if is_nan(f, a) or (a & f.sign and not is_zero(f, a)):
        return f.nan
    if is_zero(f, a) or is_infinite(f, a):
        return a
    value = value_of(f, a)
    scaled = value * 4**_ROOT_BITS
    root = math.isqrt(math.floor(scaled))
    exact = root * root == scaled
    nearby = Fraction(root) if exact else root + Fraction(1, 2)
    return encode(f, nearby / 2**_ROOT_BITS, mode=mode)


def extreme(f: Format, a: int, b: int, *, greatest: bool, nan_wins: bool) -> int:
    """min or max: a number beats a NaN, unless `nan_wins`; -0 is below +0."""
    nans = [is_nan(f, a), is_nan(f, b)]
    if all(nans) or (nan_wins and any(nans)):
        return f.nan
    if any(nans):
        return b if nans[0] else a
    low, high = sorted((a, b), key=lambda bits: order(f, bits))
    return high if greatest else low


def order(f: Format, bits: int) -> int:
    """Ascends with the number; -0 comes before +0."""
    return -magnitude(f, bits) - 1 if bits & f.sign else magnitude(f, bits)


def compare(f: Format, a: int, b: int) -> int | None:
    """-1, 0 or 1; None when a NaN takes part."""
    if is_nan(f, a) or is_nan(f, b):
        return None
    if is_zero(f, a) and is_zero(f, b):
        return 0
    x, y = order(f, a), order(f, b)
    return (x > y) - (x < y)


def flush(f: Format, bits: int) -> int:
    return bits & f.sign if is_subnormal(f, bits) else bits


def saturate(f: Format, bits: int) -> int:
    """Into 0 .. 1; NaN and everything below become +0."""
    if is_nan(f, bits) or bits & f.sign:
        return 0
    return min(bits, f.one)


def clip(f: Format, bits: int) -> int:
    """Numbers below 0 become +0."""
    return bits if is_nan(f, bits) or not bits & f.sign else 0


def integral(f: Format, bits: int, mode: str) -> int:
    """The nearest integral number."""
    if is_nan(f, bits):
        return f.nan
    if is_infinite(f, bits):
        return bits
    return encode(f, Fraction(rounded(value_of(f, bits), mode)), zero_sign=bits & f.sign)


def convert(source: Format, target: Format, bits: int, mode: str = "n") -> int:
    if is_nan(source, bits):
        return target.nan
    sign = target.sign if bits & source.sign else 0
    if is_infinite(source, bits):
        return sign | (target.infinity - target.finite_only)
    return encode(target, value_of(source, bits), zero_sign=sign, mode=mode)
