"""Instruction forms for random programs: floating-point arithmetic and conversions."""

from __future__ import annotations

from random_programs_forms import FLOAT_TYPES, LETTERS, form, forms

_MODES = ("rn", "rz", "rm", "rp")
_TO_INTEGRAL = ("rni", "rzi", "rmi", "rpi")
_SINGLE = {x: kind for x, kind in FLOAT_TYPES.items() if not kind.endswith("x2")}
_COMPARISONS = ("eq", "ne", "lt", "ge", "equ", "neu", "ltu", "geu", "num", "nan")


def _wide(x: str, kind: str) -> list[str]:
    """f32 and f64: every rounding mode."""
    found = []
    for mode in _MODES:
        found += forms("add sub mul div", f".{mode}.{kind}", f"{x} {x} {x}")
        found += forms("sqrt rcp", f".{mode}.{kind}", f"{x} {x}")
        found += forms("fma mad", f".{mode}.{kind}", f"{x} {x} {x} {x}")
    found += [form(f"copysign.{kind}", f"{x} {x} {x}"), form(f"selp.{kind}", f"{x} {x} {x} p")]
    classes = ("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    return [*found, *(form(f"testp.{name}.{kind}", f"p {x}") for name in classes)]


def _half(x: str, kind: str) -> list[str]:
    """f16 and bf16, single and packed."""
    found = [
        *forms("add sub mul", f".{kind}", f"{x} {x} {x}"),
        *forms("fma.rn fma.rn.relu", f".{kind}", f"{x} {x} {x} {x}"),
    ]
    for name in ("eq", "lt", "geu", "nan"):
        found += [form(f"set.{name}.{kind}.{kind}", f"{x} {x} {x}")]
        found += [form(f"set.{name}.u32.{kind}", f"r {x} {x}")]
    if kind.endswith("x2"):
        found += [f"setp.le.{kind} {{p}}|{{p2}}, {{{x}}}, {{{x}}}"]
        found += [f"setp.gtu.and.{kind} {{p}}|{{p2}}, {{{x}}}, {{{x}}}, {{p}}"]
    else:
        found += [form(f"set.ne.u16.{kind}", f"h {x} {x}")]
    return found


def _extremes(x: str, kind: str) -> list[str]:
    found = forms("min max", f".{kind}", f"{x} {x} {x}")
    if kind != "f64":
        names = "min.NaN max.NaN min.xorsign.abs max.xorsign.abs"
        found += forms(names, f".{kind}", f"{x} {x} {x}")
    return found


def _modified() -> list[str]:
    """`.ftz` and `.sat`."""
    found = []
    for modifiers in (".ftz", ".sat", ".ftz.sat"):
        for mode in ("rn", "rz"):
            found += forms("add mul", f".{mode}{modifiers}.f32", "f f f")
            found += [form(f"fma.{mode}{modifiers}.f32", "f f f f")]
        for x, kind in (("g", "f16"), ("u", "f16x2")):
            found += forms("add sub mul", f"{modifiers}.{kind}", f"{x} {x} {x}")
            found += [form(f"fma.rn{modifiers}.{kind}", f"{x} {x} {x} {x}")]
    return [
        *found,
        form("min.ftz.f32", "f f f"),
        form("fma.rn.ftz.relu.f16", "g g g g"),
        form("neg.ftz.f16", "g g"),
        form("abs.ftz.f16x2", "u u"),
        form("setp.lt.ftz.f16", "p g g"),
        form("set.eq.ftz.f32.f32", "f f f"),
    ]


def _arithmetic() -> list[str]:
    found = []
    for x, kind in FLOAT_TYPES.items():
        found += _wide(x, kind) if kind in ("f32", "f64") else _half(x, kind)
        found += _extremes(x, kind)
        found += forms("neg abs", f".{kind}", f"{x} {x}")
        if x in _SINGLE:
            found += [form(f"setp.{name}.{kind}", f"p {x} {x}") for name in _COMPARISONS]
    return found + _modified()


def _holds(to: str, come: str) -> bool:
    """Whether an integer type has all numbers of another, so that there is nothing to saturate."""
    wider = int(to[1:]) - int(come[1:])
    return wider >= 0 if to[0] == come[0] else to[0] == "s" and wider > 0


def _between_integers() -> list[str]:
    kinds = ("u16", "s16", "u32", "s32", "u64", "s64")
    found = []
    for to in kinds:
        for come in kinds:
            places = f"{LETTERS[to[1:]]} {LETTERS[come[1:]]}"
            found += [form(f"cvt.{to}.{come}", places)] if to != come else []
            if not _holds(to, come):
                found += [form(f"cvt.sat.{to}.{come}", places)]
    for small in ("u8", "s8"):
        found += forms(f"cvt.{small}.s32 cvt.sat.{small}.s32 cvt.s32.{small}", "", "r r")
        found += [form(f"cvt.u64.{small}", "q r"), form(f"cvt.rzi.{small}.f16", "h g")]
        found += [form(f"cvt.rni.{small}.f32", "h f"), form(f"cvt.rn.f16.{small}", "g h")]
    return [
        *found,
        "cvt.pack.sat.u16.s32 {r}, {r}, {r}",
        "cvt.pack.sat.s8.s32.b32 {r}, {r}, {r}, {r}",
    ]


def _across() -> list[str]:
    """Between integers and floating types, in every mode."""
    found = []
    for x, kind in _SINGLE.items():
        for width, letter in LETTERS.items():
            for integer in (f"u{width}", f"s{width}"):
                found += [form(f"cvt.{mode}.{kind}.{integer}", f"{x} {letter}") for mode in _MODES]
                found += [
                    form(f"cvt.{mode}.{integer}.{kind}", f"{letter} {x}") for mode in _TO_INTEGRAL
                ]
        found += [form(f"cvt.{mode}.{kind}.{kind}", f"{x} {x}") for mode in _TO_INTEGRAL]
    return found


def _between_floats() -> list[str]:
    found = []
    for mode in _MODES:
        found += [form(f"cvt.{mode}.f32.f64", "f d"), form(f"cvt.{mode}.f16.f32", "g f")]
        found += [form(f"cvt.{mode}.f16.f64", "g d"), form(f"cvt.{mode}.bf16.f32", "w f")]
        found += [form(f"cvt.{mode}.bf16.f64", "w d")]
    for mode in ("rn", "rz"):
        found += [form(f"cvt.{mode}.f16x2.f32", "u f f"), form(f"cvt.{mode}.bf16x2.f32", "v f f")]
        found += [form(f"cvt.{mode}.relu.f16.f32", "g f")]
        found += [form(f"cvt.{mode}.relu.bf16x2.f32", "v f f")]
    for relu in ("", ".relu"):
        for small in ("e4m3x2", "e5m2x2"):
            found += [form(f"cvt.rn.satfinite{relu}.{small}.f32", "h f f")]
            found += [form(f"cvt.rn.satfinite{relu}.{small}.f16x2", "h u")]
            found += [form(f"cvt.rn{relu}.f16x2.{small}", "u h")]
    return [
        *found,
        *forms("cvt.f64 cvt.ftz.f64", ".f32", "d f"),
        *forms("cvt.f32 cvt.sat.f32", ".f16", "f g"),
        form("cvt.f64.f16", "d g"),
        form("cvt.f32.bf16", "f w"),
        form("cvt.f64.bf16", "d w"),
        form("cvt.sat.f32.f32", "f f"),
        *forms("cvt.rn.sat.f16 cvt.rn.ftz.f16", ".f32", "g f"),
        *forms("cvt.rn.ftz.f32 cvt.rm.ftz.f32", ".f64", "f d"),
        *forms("cvt.rna.tf32 cvt.rn.tf32 cvt.rz.relu.tf32", ".f32", "r f"),
    ]


FLOAT_FORMS = [*_arithmetic(), *_between_integers(), *_across(), *_between_floats()]

APPROXIMATE_FORMS = [
    *forms("ex2 lg2 sin cos rcp rsqrt sqrt", ".approx.f32", "f f"),
    *forms("ex2 lg2 sin cos rcp rsqrt sqrt", ".approx.ftz.f32", "f f"),
    form("tanh.approx.f32", "f f"),
    *forms("div.approx div.approx.ftz div.full div.full.ftz", ".f32", "f f f"),
    *forms("rcp.approx.ftz rsqrt.approx.ftz rsqrt.approx", ".f64", "d d"),
    *forms("ex2.approx tanh.approx", ".f16", "g g"),
    *forms("ex2.approx tanh.approx", ".f16x2", "u u"),
    *forms("ex2.approx.ftz tanh.approx", ".bf16", "w w"),
    *forms("ex2.approx.ftz tanh.approx", ".bf16x2", "v v"),
]
"""Not compared bit for bit: the hardware's own approximations."""
