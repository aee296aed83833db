"""Instruction forms for random programs: integers, bits, carries, SIMD video.

A form is an instruction with places for operands: `{r}` is a register of that letter, `{r2}` the
one after the last of its letter, `{i}` an immediate, `{k}` a small one, `{o8}` an offset in steps
of 8 bytes; `<` and `>` stand for braces. A form of several lines is kept together and takes no
guard.
"""

from __future__ import annotations

TYPES = {"r": "b32", "q": "b64", "h": "b16", "f": "f32", "d": "f64", "g": "b16", "w": "b16",
         "u": "b32", "v": "b32", "p": "pred"}  # fmt: skip
"""Types of registers: `g` holds f16 and `w` bf16 numbers, `u` and `v` pairs of them."""
SIZES = {"r": 4, "q": 8, "h": 2, "f": 4, "d": 8, "g": 2, "w": 2, "u": 4, "v": 4, "p": 4}
FLOAT_TYPES = {"f": "f32", "d": "f64", "g": "f16", "w": "bf16", "u": "f16x2", "v": "bf16x2"}
LETTERS = {"32": "r", "64": "q", "16": "h"}
"""Letters of integer registers by width."""
_INTEGERS = [f"{sign}{width}" for width in ("16", "32", "64") for sign in "us"]


def form(opcode: str, operands: str) -> str:
    """`form("add.u32", "r r i")` is "add.u32 {r}, {r}, {i}"."""
    return f"{opcode} " + ", ".join(f"{{{operand}}}" for operand in operands.split())


def forms(names: str, suffix: str, operands: str) -> list[str]:
    """One form for each of the names in a list with blanks."""
    return [form(name + suffix, operands) for name in names.split()]


def _arithmetic(kind: str) -> list[str]:
    x = LETTERS[kind[1:]]
    found = [
        *forms("add sub min max div rem mul.lo mul.hi", f".{kind}", f"{x} {x} {x}"),
        *forms("mad.lo mad.hi sad", f".{kind}", f"{x} {x} {x} {x}"),
        form(f"shr.{kind}", f"{x} {x} r"),
        form(f"add.{kind}", f"{x} {x} i"),
        *forms("setp.eq setp.ne setp.lt setp.le setp.gt setp.ge", f".{kind}", f"p {x} {x}"),
    ]
    if kind[0] == "s":
        found += forms("neg abs", f".{kind}", f"{x} {x}")
    else:
        found += forms("setp.lo setp.ls setp.hi setp.hs", f".{kind}", f"p {x} {x}")
    if kind[1:] != "64":
        wide = {"r": "q", "h": "r"}[x]
        found += [form(f"mul.wide.{kind}", f"{wide} {x} {x}")]
        found += [form(f"mad.wide.{kind}", f"{wide} {x} {x} {wide}")]
    if kind[1:] != "16":
        found += [form(f"bfe.{kind}", f"{x} {x} r r"), form(f"bfe.{kind}", f"{x} {x} k k")]
        found += forms("bfind bfind.shiftamt", f".{kind}", f"r {x}")
        found += _carries(kind, x)
    return found


def _carries(kind: str, x: str) -> list[str]:
    """Chains that are kept together: the carry has no register."""
    two = f"{x} {x} {x}"
    chains = [
        [form(f"add.cc.{kind}", two), form(f"addc.cc.{kind}", two), form(f"addc.{kind}", two)],
        [form(f"sub.cc.{kind}", two), form(f"subc.cc.{kind}", two), form(f"subc.{kind}", two)],
    ]
    three = f"{two} {x}"
    chains.append([form(f"mad.lo.cc.{kind}", three), form(f"madc.hi.cc.{kind}", three),
                   form(f"madc.lo.{kind}", three)])  # fmt: skip
    return [";\n".join(chain) for chain in chains]


def _logic() -> list[str]:
    found = []
    for width, x in LETTERS.items():
        two = f"{x} {x} {x}"
        found += forms("and or xor", f".b{width}", two)
        found += forms("not cnot", f".b{width}", f"{x} {x}")
        found += [form(f"shl.b{width}", f"{x} {x} r"), form(f"shl.b{width}", f"{x} {x} k")]
        found += [form(f"selp.b{width}", f"{two} p"), form(f"mov.b{width}", f"{x} {x}")]
        found += [form(f"slct.b{width}.s32", f"{two} r"), form(f"slct.u{width}.f32", f"{two} f")]
        if width != "16":
            found += forms("popc clz", f".b{width}", f"r {x}")
            found += [form(f"brev.b{width}", f"{x} {x}")]
            found += [form(f"bfi.b{width}", f"{two} r r"), form(f"bfi.b{width}", f"{two} k k")]
    return [*found, *forms("and or xor", ".pred", "p p p"), form("not.pred", "p p")]


def _video() -> list[str]:
    """SIMD video, which GPUs since sm_50 emulate but for vabsdiff4."""
    found = []
    for name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vavrg"):
        found += [f"{name}4.u32.u32.u32 {{r}}, {{r}}, {{r}}, {{r}}"]
        found += [f"{name}4.u32.u32.u32.add {{r}}, {{r}}, {{r}}, {{r}}"]
        found += [f"{name}2.s32.s32.s32.sat {{r}}, {{r}}, {{r}}, {{r}}"]
    return [*found, "vset4.u32.u32.gt {r}, {r}, {r}, {r}", "vset2.s32.u32.le {r}, {r}, {r}, {r}"]


_SINGLE = [
    *forms("add.sat.s32 sub.sat.s32 max.s32.relu", "", "r r r"),
    *forms("mul24.lo.s32 mul24.lo.u32 mul24.hi.s32 mul24.hi.u32", "", "r r r"),
    *forms("mad24.lo.u32 mad24.hi.s32 mad24.hi.sat.s32 mad.hi.sat.s32", "", "r r r r"),
    *forms("shf.l.wrap shf.l.clamp shf.r.wrap shf.r.clamp", ".b32", "r r r r"),
    *forms("prmt.b32 prmt.b32.f4e prmt.b32.b4e prmt.b32.rc8", "", "r r r r"),
    *forms("prmt.b32.ecl prmt.b32.ecr prmt.b32.rc16", "", "r r r r"),
    "lop3.b32 {r}, {r}, {r}, {r}, 0x96",
    "lop3.b32 {r}, {r}, {r}, {r}, 0xca",
    *forms("dp4a.s32.s32 dp4a.u32.s32 dp4a.u32.u32", "", "r r r r"),
    *forms("dp2a.lo.s32.s32 dp2a.hi.u32.s32 dp2a.lo.u32.u32", "", "r r r r"),
    *forms("bmsk.wrap.b32 bmsk.clamp.b32", "", "r r r"),
    form("bmsk.clamp.b32", "r k k"),
    *forms("szext.wrap.s32 szext.clamp.s32 szext.clamp.u32", "", "r r r"),
    form("szext.clamp.s32", "r r k"),
    form("fns.b32", "r r k k"),
    "fns.b32 {r}, {r}, {k}, -3",
    "mov.b64 {q}, <{r}, {r}>",
    "mov.b64 <{r}, {r2}>, {q}",
    "mov.b64 {q}, <{h}, {h}, {h}, {h}>",
    "mov.b64 <{h}, {h2}, {h2}, _>, {q}",
    "mov.b32 {r}, <{h}, {h}>",
    "mov.b32 <{h}, {h2}>, {r}",
    form("set.lt.u32.s32", "r r r"),
    form("set.ge.and.u32.u32", "r r r p"),
    form("set.lt.f32.f32", "f f f"),
    form("setp.lt.and.s32", "p r r p"),
    "setp.hi.or.u32 {p}|{p2}, {r}, {r}, {p}",
    "setp.gt.xor.f32 {p}|{p2}, {f}, {f}, !{p}",
    form("setp.lt.ftz.f32", "p f f"),
    *(f for kind in ("s16x2", "u16x2") for f in forms("add min max", f".{kind}", "r r r")),
    form("min.s16x2.relu", "r r r"),
]

INTEGER_FORMS = [*(f for kind in _INTEGERS for f in _arithmetic(kind)), *_logic(), *_SINGLE,
                 *_video()]  # fmt: skip
