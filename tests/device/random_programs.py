"""Random PTX programs: instruction forms, programs as hypothesis draws them, their text.

A program loads its registers from a buffer of chosen bit patterns, runs straight and divergent
code over them, and stores every register. Registers of each letter have one type; NaN patterns
never reach an integer register, for they are not modelled.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

THREADS = 64
COUNT = 5
"""Registers of each letter."""

TYPES = {"r": "b32", "q": "b64", "h": "b16", "f": "f32", "d": "f64", "g": "b16", "w": "b16",
         "u": "b32", "v": "b32", "p": "pred"}  # fmt: skip
"""`g` holds f16 and `w` bf16 numbers, `u` and `v` pairs of them."""
SIZES = {"r": 4, "q": 8, "h": 2, "f": 4, "d": 8, "g": 2, "w": 2, "u": 4, "v": 4, "p": 4}
FLOAT_TYPES = {"f": "f32", "d": "f64", "g": "f16", "w": "bf16", "u": "f16x2", "v": "bf16x2"}
_LETTER = {"32": "r", "64": "q", "16": "h"}
_INTEGERS = [f"{sign}{width}" for width in ("16", "32", "64") for sign in "us"]


def _integer_forms() -> list[str]:
    forms = []
    for kind in _INTEGERS:
        letter = _LETTER[kind[1:]]
        two = f"{{{letter}}}, {{{letter}}}, {{{letter}}}"
        forms += [f"{name}.{kind} {two}" for name in ("add", "sub", "min", "max", "div", "rem")]
        forms += [f"mul.lo.{kind} {two}", f"mul.hi.{kind} {two}"]
        forms += [f"mad.lo.{kind} {two}, {{{letter}}}", f"sad.{kind} {two}, {{{letter}}}"]
        forms += [f"shr.{kind} {{{letter}}}, {{{letter}}}, {{r}}"]
        forms += [f"add.{kind} {{{letter}}}, {{{letter}}}, {{i}}"]
        for name in ("eq", "ne", "lt", "le", "gt", "ge"):
            forms.append(f"setp.{name}.{kind} {{p}}, {{{letter}}}, {{{letter}}}")
        if kind[0] == "s":
            forms += [f"{name}.{kind} {{{letter}}}, {{{letter}}}" for name in ("neg", "abs")]
        if kind[1:] != "64":
            wide = {"r": "q", "h": "r"}[letter]
            forms.append(f"mul.wide.{kind} {{{wide}}}, {{{letter}}}, {{{letter}}}")
            forms.append(f"mad.wide.{kind} {{{wide}}}, {{{letter}}}, {{{letter}}}, {{{wide}}}")
        if kind[1:] != "16":
            forms.append(f"bfe.{kind} {{{letter}}}, {{{letter}}}, {{r}}, {{r}}")
            forms.append(f"bfe.{kind} {{{letter}}}, {{{letter}}}, {{k}}, {{k}}")
            forms.append(f"bfind.{kind} {{r}}, {{{letter}}}")
            forms.append(f"bfind.shiftamt.{kind} {{r}}, {{{letter}}}")
    return forms


def _logic_forms() -> list[str]:
    forms = []
    for width, letter in _LETTER.items():
        two = f"{{{letter}}}, {{{letter}}}, {{{letter}}}"
        forms += [f"{name}.b{width} {two}" for name in ("and", "or", "xor")]
        forms += [f"{name}.b{width} {{{letter}}}, {{{letter}}}" for name in ("not", "cnot")]
        forms += [f"shl.b{width} {{{letter}}}, {{{letter}}}, {{r}}"]
        forms += [f"shl.b{width} {{{letter}}}, {{{letter}}}, {{k}}"]
        forms += [f"selp.b{width} {two}, {{p}}", f"mov.b{width} {{{letter}}}, {{{letter}}}"]
        forms += [f"slct.b{width}.s32 {two}, {{r}}", f"slct.u{width}.f32 {two}, {{f}}"]
        if width != "16":
            forms += [f"{name}.b{width} {{r}}, {{{letter}}}" for name in ("popc", "clz")]
            forms.append(f"brev.b{width} {{{letter}}}, {{{letter}}}")
            forms.append(f"bfi.b{width} {two}, {{r}}, {{r}}")
            forms.append(f"bfi.b{width} {two}, {{k}}, {{k}}")
    forms += [f"{name}.pred {{p}}, {{p}}, {{p}}" for name in ("and", "or", "xor")]
    return [*forms, "not.pred {p}, {p}"]


_SINGLE = [
    "add.sat.s32 {r}, {r}, {r}",
    "sub.sat.s32 {r}, {r}, {r}",
    "mul24.lo.s32 {r}, {r}, {r}",
    "mad24.lo.u32 {r}, {r}, {r}, {r}",
    "shf.l.wrap.b32 {r}, {r}, {r}, {r}",
    "shf.l.clamp.b32 {r}, {r}, {r}, {r}",
    "shf.r.wrap.b32 {r}, {r}, {r}, {r}",
    "shf.r.clamp.b32 {r}, {r}, {r}, {r}",
    "prmt.b32 {r}, {r}, {r}, {r}",
    "lop3.b32 {r}, {r}, {r}, {r}, 0x96",
    "lop3.b32 {r}, {r}, {r}, {r}, 0xca",
    "dp4a.s32.s32 {r}, {r}, {r}, {r}",
    "dp4a.u32.s32 {r}, {r}, {r}, {r}",
    "mov.b64 {q}, {{{r}, {r}}}",
    "mov.b64 {{{r}, {r2}}}, {q}",
    "mov.b32 {r}, {{{h}, {h}}}",
    "mov.b32 {{{h}, {h2}}}, {r}",
    "set.lt.u32.s32 {r}, {r}, {r}",
    "set.ge.and.u32.u32 {r}, {r}, {r}, {p}",
    "set.lt.f32.f32 {f}, {f}, {f}",
    "setp.lt.and.s32 {p}, {r}, {r}, {p}",
    "setp.hi.or.u32 {p}|{p2}, {r}, {r}, {p}",
    "setp.gt.xor.f32 {p}|{p2}, {f}, {f}, !{p}",
    "setp.lt.ftz.f32 {p}, {f}, {f}",
]


def _float_forms() -> list[str]:
    forms = []
    for letter, kind in FLOAT_TYPES.items():
        one, two = f"{{{letter}}}, {{{letter}}}", f"{{{letter}}}, {{{letter}}}, {{{letter}}}"
        wide = kind in ("f32", "f64")
        for rounding in (".rn", ".rz", ".rm", ".rp") if wide else ("",):
            forms += [f"{name}{rounding}.{kind} {two}" for name in ("add", "sub", "mul")]
        forms += [f"{name}.{kind} {two}" for name in ("min", "max")]
        forms += [f"{name}.{kind} {one}" for name in ("neg", "abs")]
        forms += [f"fma.rn.{kind} {two}, {{{letter}}}"] * 3
        if not kind.endswith("x2"):
            for name in ("eq", "ne", "lt", "ge", "equ", "neu", "ltu", "geu", "num", "nan"):
                forms.append(f"setp.{name}.{kind} {{p}}, {{{letter}}}, {{{letter}}}")
        if wide:
            for mode in ("rn", "rz", "rm", "rp"):
                forms += [f"div.{mode}.{kind} {two}", f"fma.{mode}.{kind} {two}, {{{letter}}}"]
                forms += [f"sqrt.{mode}.{kind} {one}", f"rcp.{mode}.{kind} {one}"]
            forms += [f"copysign.{kind} {two}", f"selp.{kind} {two}, {{p}}"]
            for name in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
                forms.append(f"testp.{name}.{kind} {{p}}, {{{letter}}}")
        if kind != "f64":
            forms += [f"{name}.NaN.{kind} {two}" for name in ("min", "max")]
            forms += [f"{name}.xorsign.abs.{kind} {two}" for name in ("min", "max")]
    for modifiers in (".ftz", ".sat", ".ftz.sat"):
        for mode in ("rn", "rz"):
            forms += [
                f"{name}.{mode}{modifiers}.f32 {{f}}, {{f}}, {{f}}" for name in ("add", "mul")
            ]
            forms.append(f"fma.{mode}{modifiers}.f32 {{f}}, {{f}}, {{f}}, {{f}}")
        for letter, kind in (("g", "f16"), ("u", "f16x2")):
            two = f"{{{letter}}}, {{{letter}}}, {{{letter}}}"
            forms += [f"{name}{modifiers}.{kind} {two}" for name in ("add", "sub", "mul")]
            forms.append(f"fma.rn{modifiers}.{kind} {two}, {{{letter}}}")
    return [*forms, "min.ftz.f32 {f}, {f}, {f}", *_half_forms()]


def _half_forms() -> list[str]:
    """What only the 16-bit types have."""
    forms = [
        "fma.rn.ftz.relu.f16 {g}, {g}, {g}, {g}",
        "neg.ftz.f16 {g}, {g}",
        "abs.ftz.f16x2 {u}, {u}",
    ]
    for letter, kind in (("g", "f16"), ("w", "bf16"), ("u", "f16x2"), ("v", "bf16x2")):
        two = f"{{{letter}}}, {{{letter}}}, {{{letter}}}"
        forms.append(f"fma.rn.relu.{kind} {two}, {{{letter}}}")
        for name in ("eq", "lt", "geu", "nan"):
            forms.append(f"set.{name}.{kind}.{kind} {two}")
            forms.append(f"set.{name}.u32.{kind} {{r}}, {{{letter}}}, {{{letter}}}")
        if kind.endswith("x2"):
            forms.append(f"setp.le.{kind} {{p}}|{{p2}}, {{{letter}}}, {{{letter}}}")
            forms.append(f"setp.gtu.and.{kind} {{p}}|{{p2}}, {{{letter}}}, {{{letter}}}, {{p}}")
        else:
            forms.append(f"set.ne.u16.{kind} {{h}}, {{{letter}}}, {{{letter}}}")
    forms += ["setp.lt.ftz.f16 {p}, {g}, {g}", "set.eq.ftz.f32.f32 {f}, {f}, {f}"]
    for kind in ("s16x2", "u16x2"):
        forms += [f"{name}.{kind} {{r}}, {{r}}, {{r}}" for name in ("add", "min", "max")]
    return [*forms, "min.s16x2.relu {r}, {r}, {r}", "max.s32.relu {r}, {r}, {r}"]


def _conversion_forms() -> list[str]:
    forms = []
    for to in ("u16", "s16", "u32", "s32", "u64", "s64"):
        for come in ("u16", "s16", "u32", "s32", "u64", "s64"):
            dot = f"{to}.{come} {{{_LETTER[to[1:]]}}}, {{{_LETTER[come[1:]]}}}"
            forms += [f"cvt.{dot}"] if to != come else []
            forms += [f"cvt.sat.{dot}"]
    for narrow in ("u8", "s8"):
        forms += [f"cvt.{narrow}.s32 {{r}}, {{r}}", f"cvt.sat.{narrow}.s32 {{r}}, {{r}}"]
        forms += [f"cvt.s32.{narrow} {{r}}, {{r}}", f"cvt.u64.{narrow} {{q}}, {{r}}"]
        forms += [f"cvt.rzi.{narrow}.f16 {{h}}, {{g}}", f"cvt.rni.{narrow}.f32 {{h}}, {{f}}"]
        forms += [f"cvt.rn.f16.{narrow} {{g}}, {{h}}"]
    for letter, kind in FLOAT_TYPES.items():
        if kind.endswith("x2"):
            continue
        for width in ("16", "32", "64"):
            for sign in "us":
                integer = f"{sign}{width}"
                for mode in ("rn", "rz", "rm", "rp"):
                    forms.append(f"cvt.{mode}.{kind}.{integer} {{{letter}}}, {{{_LETTER[width]}}}")
                for mode in ("rni", "rzi", "rmi", "rpi"):
                    forms.append(f"cvt.{mode}.{integer}.{kind} {{{_LETTER[width]}}}, {{{letter}}}")
        for mode in ("rni", "rzi", "rmi", "rpi"):
            forms.append(f"cvt.{mode}.{kind}.{kind} {{{letter}}}, {{{letter}}}")
    for mode in ("rn", "rz", "rm", "rp"):
        forms += [f"cvt.{mode}.f32.f64 {{f}}, {{d}}", f"cvt.{mode}.f16.f32 {{g}}, {{f}}"]
        forms += [f"cvt.{mode}.f16.f64 {{g}}, {{d}}", f"cvt.{mode}.bf16.f32 {{w}}, {{f}}"]
        forms += [f"cvt.{mode}.bf16.f64 {{w}}, {{d}}"]
    for mode in ("rn", "rz"):
        forms += [
            f"cvt.{mode}.f16x2.f32 {{u}}, {{f}}, {{f}}",
            f"cvt.{mode}.bf16x2.f32 {{v}}, {{f}}, {{f}}",
        ]
        forms += [
            f"cvt.{mode}.relu.f16.f32 {{g}}, {{f}}",
            f"cvt.{mode}.relu.bf16x2.f32 {{v}}, {{f}}, {{f}}",
        ]
    for narrow in ("e4m3x2", "e5m2x2"):
        forms += [
            f"cvt.rn.satfinite{relu}.{narrow}.f32 {{h}}, {{f}}, {{f}}" for relu in ("", ".relu")
        ]
        forms += [f"cvt.rn.satfinite{relu}.{narrow}.f16x2 {{h}}, {{u}}" for relu in ("", ".relu")]
        forms += [f"cvt.rn{relu}.f16x2.{narrow} {{u}}, {{h}}" for relu in ("", ".relu")]
    return [
        *forms,
        "cvt.f64.f32 {d}, {f}",
        "cvt.f32.f16 {f}, {g}",
        "cvt.f64.f16 {d}, {g}",
        "cvt.f32.bf16 {f}, {w}",
        "cvt.f64.bf16 {d}, {w}",
        "cvt.sat.f32.f32 {f}, {f}",
        "cvt.sat.f16.f32 {g}, {f}",
        "cvt.ftz.f64.f32 {d}, {f}",
        "cvt.rn.ftz.f16.f32 {g}, {f}",
        "cvt.rn.ftz.f32.f64 {f}, {d}",
        "cvt.rm.ftz.f32.f64 {f}, {d}",
        "cvt.rna.tf32.f32 {f}, {f}",
        "cvt.rn.tf32.f32 {f}, {f}",
        "cvt.rz.relu.tf32.f32 {f}, {f}",
        "cvt.pack.sat.u16.s32 {r}, {r}, {r}",
        "cvt.pack.sat.s8.s32.b32 {r}, {r}, {r}, {r}",
    ]


def _memory_forms() -> list[str]:
    """Of the thread's own 64 bytes in global, shared and local memory."""
    forms = []
    for space, base in (("global", "%own"), ("shared", "%near"), ("local", "%deep")):
        for kind, letter, size in (("u8", "r", 8), ("s8", "r", 8), ("u16", "h", 8), ("s16", "r", 8),
                                   ("u32", "r", 8), ("b64", "q", 8), ("s32", "q", 8)):  # fmt: skip
            if kind != "s32":
                forms.append(f"st.{space}.{kind} [{base}+{{o{size}}}], {{{letter}}}")
            forms.append(f"ld.{space}.{kind} {{{letter}}}, [{base}+{{o{size}}}]")
        forms.append(f"ld.{space}.v2.u32 {{{{{{r}}, {{r2}}}}}}, [{base}+{{o8}}]")
        forms.append(f"st.{space}.v4.u32 [{base}+{{o16}}], {{{{{{r}}, {{r}}, {{r}}, {{r}}}}}}")
        if space == "local":
            continue
        for name, kind in (("add", "u32"), ("min", "s32"), ("max", "u32"), ("exch", "b32"),
                           ("xor", "b32"), ("inc", "u32"), ("dec", "u32")):  # fmt: skip
            forms.append(f"atom.{space}.{name}.{kind} {{r}}, [{base}+{{o8}}], {{r}}")
        forms.append(f"atom.{space}.cas.b64 {{q}}, [{base}+{{o8}}], {{q}}, {{q}}")
    for name, kind in (("add", "u32"), ("or", "b32"), ("min", "s32"), ("max", "u32")):
        forms.append(f"red.global.{name}.{kind} [%all+{{o8}}], {{r}}")
    return [*forms, "red.global.add.u64 [%all+{o8}], {q}"]


PLAIN = [
    *_integer_forms(),
    *_logic_forms(),
    *_SINGLE,
    *_float_forms(),
    *_conversion_forms(),
    *_memory_forms(),
]
"""Instructions for anywhere; `{r2}` differs from `{r}`, `{i}` is an immediate, `{k}` a small one,
`{o8}` an offset in 8-byte steps."""

WHOLE_WARP = [
    *(f"shfl.sync.{mode}.b32 {{r}}|{{p}}, {{r}}, {{k}}, {{c}}, -1" for mode in
      ("up", "down", "bfly", "idx")),
    "shfl.sync.idx.b32 {r}, {r}, {r}, 31, -1",
    *(f"vote.sync.{mode}.pred {{p}}, {{p}}, -1" for mode in ("all", "any", "uni")),
    "vote.sync.ballot.b32 {r}, {p}, -1",
    "match.any.sync.b32 {r}, {r}, -1",
    "match.any.sync.b64 {r}, {q}, -1",
    "match.all.sync.b32 {r}|{p}, {r}, -1",
    *(f"redux.sync.{name}.{kind} {{r}}, {{r}}, -1" for name, kind in
      (("add", "u32"), ("min", "s32"), ("max", "u32"), ("and", "b32"), ("xor", "b32"))),
    "bar.sync 0;\nld.shared.u32 {r}, [%other+{o8}];\nbar.sync 0",
]  # fmt: skip
"""Instructions that all threads must reach together."""

CONTROL = ["if", "else", "loop", "end"]


@dataclass(frozen=True)
class Step:
    form: str
    picks: tuple[int, ...]
    """Which registers and immediates fill the form's places, in order."""
    guard: int
    """0 to 3: predicate, negated from 2 on; none above."""


_STEPS = st.builds(
    Step,
    st.one_of(
        st.sampled_from(PLAIN),
        st.sampled_from(PLAIN),
        st.sampled_from(WHOLE_WARP),
        st.sampled_from(CONTROL),
    ),
    st.lists(st.integers(0, 1 << 16), min_size=8, max_size=8).map(tuple),
    st.integers(0, 11),
)
programs = st.lists(_STEPS, min_size=1, max_size=60)

_IMMEDIATES = [0, 1, -1, 2, 7, -128, 255, 1000, 32767, -32768]
_PLACE = re.compile(r"\{([a-z])(\d*)\}")


def instruction(step: Step) -> str:
    """The text of a step that is no control flow, without guard."""
    picks = iter(step.picks)
    last: dict[str, int] = {}

    def fill(match: re.Match[str]) -> str:
        letter, number = match[1], match[2]
        if letter == "o":
            return str(next(picks) % (64 // int(number)) * int(number))
        pick = next(picks)
        if letter == "i":
            return str(_IMMEDIATES[pick % len(_IMMEDIATES)])
        if letter in "kc":
            return str(pick % 70 if letter == "k" else [31, 0, 0x1C1F, 0x101F, 0x181F][pick % 5])
        index = (last[letter] + 1) % COUNT if number else pick % COUNT
        last[letter] = index
        return f"%{letter}{index}"

    body = step.form.replace("{{", "\x01").replace("}}}", "}\x02").replace("}}", "\x02")
    return _PLACE.sub(fill, body).replace("\x01", "{").replace("\x02", "}") + ";"


def text_of(steps: list[Step]) -> str:
    """The program as PTX: registers in from `inputs`, out to `outputs`."""
    lines: list[str] = []
    nest: list[tuple[str, int]] = []
    for number, step in enumerate(steps):
        if step.form in CONTROL:
            _control(lines, nest, step, number)
        elif step.form in WHOLE_WARP:
            lines += [instruction(step)] if not nest else []
        else:
            guard = f"@{'!' if step.guard > 1 else ''}%p{step.guard % 2} " if step.guard < 4 else ""
            lines.append(guard + instruction(step))
    while nest:
        _close(lines, nest)
    return _HEAD + _transfer("ld") + "\n".join(lines) + "\n" + _transfer("st") + "ret;\n}\n"


def _control(lines: list[str], nest: list[tuple[str, int]], step: Step, number: int) -> None:
    """`if` runs for the lanes of a predicate, `loop` 1 to 4 times, by the lane."""
    if step.form == "if" and len(nest) < 3:
        nest.append(("if", number))
        lines.append(f"@{'!' if step.guard > 5 else ''}%p{step.picks[0] % COUNT} bra E{number};")
    elif step.form == "loop" and len(nest) < 3:
        counter = f"%count{len(nest)}"
        nest.append(("loop", number))
        lines += [f"and.b32 {counter}, %lane, {step.picks[0] % 4};", f"L{number}:"]
    elif step.form == "else" and nest and nest[-1][0] == "if":
        start = nest.pop()[1]
        nest.append(("else", start))
        lines += [f"bra F{start};", f"E{start}:"]
    elif step.form == "end" and nest:
        _close(lines, nest)


def _close(lines: list[str], nest: list[tuple[str, int]]) -> None:
    kind, number = nest.pop()
    if kind == "loop":
        counter = f"%count{len(nest)}"
        lines += [f"sub.s32 {counter}, {counter}, 1;", f"setp.ge.s32 %again, {counter}, 0;",
                  f"@%again bra L{number};"]  # fmt: skip
    else:
        lines.append(f"{'E' if kind == 'if' else 'F'}{number}:")


_HEAD = f""".version 8.0
.target sm_86
.address_size 64
.visible .entry random(.param .u64 inputs, .param .u64 outputs, .param .u64 own, .param .u64 all)
{{
.reg .b32 %r<{COUNT}>; .reg .b64 %q<{COUNT}>; .reg .b16 %h<{COUNT}>; .reg .b16 %g<{COUNT}>; .reg .b16 %w<{COUNT}>; .reg .b32 %u<{COUNT}>; .reg .b32 %v<{COUNT}>;
.reg .f32 %f<{COUNT}>; .reg .f64 %d<{COUNT}>; .reg .pred %p<{COUNT}>; .reg .pred %again;
.reg .b32 %count<3>; .reg .b32 %thread; .reg .b32 %lane; .reg .b32 %flag;
.reg .b64 %in; .reg .b64 %out; .reg .b64 %own; .reg .b64 %all; .reg .b64 %wide;
.reg .b64 %deep; .reg .b32 %near; .reg .b32 %other; .reg .b32 %step;
.shared .align 16 .b8 near[{64 * THREADS}];
.local .align 16 .b8 deep[64];
mov.u32 %thread, %tid.x;
mov.u32 %lane, %laneid;
ld.param.u64 %in, [inputs];
ld.param.u64 %out, [outputs];
ld.param.u64 %own, [own];
ld.param.u64 %all, [all];
mov.u32 %step, %ctaid.x;
mov.u32 %flag, %ntid.x;
mad.lo.u32 %step, %step, %flag, %thread;
mul.wide.u32 %wide, %step, 8;
add.u64 %in, %in, %wide;
add.u64 %out, %out, %wide;
mul.wide.u32 %wide, %step, 64;
add.u64 %own, %own, %wide;
mov.u32 %near, near;
mad.lo.u32 %near, %thread, 64, %near;
xor.b32 %other, %near, 64;
mov.u64 %deep, deep;
"""


def rows() -> list[tuple[str, int]]:
    """The registers in the order of their rows in the buffers; a row is 8 bytes a thread."""
    return [(letter, k) for letter in TYPES for k in range(COUNT)]


def _transfer(opcode: str) -> str:
    lines = []
    for row, (letter, k) in enumerate(rows()):
        offset = row * 8 * THREADS
        if opcode == "ld":
            place, value = "[%in+" + str(offset) + "]", f"%{letter}{k}"
            if letter == "p":
                lines += [f"ld.global.u32 %flag, {place};", f"setp.ne.u32 {value}, %flag, 0;"]
            else:
                lines.append(f"ld.global.b{8 * SIZES[letter]} {value}, {place};")
        else:
            place, value = "[%out+" + str(offset) + "]", f"%{letter}{k}"
            if letter == "p":
                lines.append(f"selp.u32 %flag, 1, 0, {value};")
                value = "%flag"
            lines.append(f"st.global.b{8 * SIZES[letter]} {place}, {value};")
    return "\n".join(lines) + "\n"


def _pairs(patterns: list[int]) -> list[int]:
    return [
        low | high << 16 for low, high in zip(patterns, patterns[5:] + patterns[:5], strict=True)
    ]


_FLOAT_PATTERNS = {
    "f": [0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000, 0xBF800000,
          0x3EAAAAAB, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x4F000000,
          0x4EFFFFFF, 0xCF000000, 0x5F000000, 0x3F000000, 0x3FC00000, 0x4B800001],
    "d": [0, 1 << 63, 1, (1 << 63) | 1, 0x000FFFFFFFFFFFFF, 0x0010000000000000,
          0x3FF0000000000000, 0xBFF0000000000000, 0x3FD5555555555555, 0x7FEFFFFFFFFFFFFF,
          0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000, 0x41E0000000000000,
          0x43E0000000000000, 0x3FE0000000000000, 0x47EFFFFFF0000000, 0x36A0000000000000],
    "g": [0, 0x8000, 1, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x3555, 0x7BFF, 0xFBFF, 0x7C00,
          0xFC00, 0x7E00, 0x3800],
    "w": [0, 0x8000, 1, 0x8001, 0x007F, 0x0080, 0x3F80, 0xBF80, 0x3EAB, 0x7F7F, 0xFF7F, 0x7F80,
          0xFF80, 0x7FC0, 0x3F00],
}  # fmt: skip
_FLOAT_PATTERNS |= {"u": _pairs(_FLOAT_PATTERNS["g"]), "v": _pairs(_FLOAT_PATTERNS["w"])}


def input_rows(seed: int) -> NDArray[np.uint64]:
    """Bit patterns for each register and thread: extremes, small numbers, and any."""
    random = np.random.default_rng(seed)
    table = np.zeros((len(rows()), THREADS), np.uint64)
    for row, (letter, _) in enumerate(rows()):
        width = 8 * SIZES[letter]
        if letter == "p":
            table[row] = random.integers(0, 2, THREADS)
            continue
        edge = 1 << (width - 1)
        special = _FLOAT_PATTERNS.get(
            letter, [0, 1, 2, 31, 32, 33, 63, 64, 255, edge, edge - 1, 2 * edge - 1, 2 * edge - 2]
        )
        chosen = np.array(special, np.uint64)[random.integers(0, len(special), THREADS)]
        anything = random.integers(0, 2 * edge - 1, THREADS, np.uint64, endpoint=True)
        table[row] = np.where(random.random(THREADS) < 0.6, chosen, anything)
    return table
