"""Instruction forms for random programs: memory, atomics, and what a whole warp does together."""

from __future__ import annotations

import re

_SPACES = {"global": "%own", "shared": "%near", "local": "%deep"}
_LOADS = (("u8", "r"), ("s8", "r"), ("u16", "h"), ("s16", "r"), ("u32", "r"), ("b64", "q"),
          ("f32", "f"), ("b16", "g"), ("f64", "d"))  # fmt: skip


def _plain(space: str, base: str) -> list[str]:
    found = []
    for kind, x in _LOADS:
        found.append(f"st.{space}.{kind} [{base}+{{o8}}], {{{x}}}")
        found.append(f"ld.{space}.{kind} {{{x}}}, [{base}+{{o8}}]")
    found.append(f"ld.{space}.s32 {{q}}, [{base}+{{o8}}]")
    found.append(f"ld.{space}.v2.u32 <{{r}}, {{r2}}>, [{base}+{{o8}}]")
    found.append(f"ld.{space}.v4.f32 <{{f}}, {{f2}}, {{f2}}, {{f2}}>, [{base}+{{o16}}]")
    found.append(f"st.{space}.v4.u32 [{base}+{{o16}}], <{{r}}, {{r}}, {{r}}, {{r}}>")
    return found


def _hinted() -> list[str]:
    """Cache operators, hints and orders change nothing that a single thread sees."""
    loads = ("ca", "cg", "cs", "lu", "cv", "volatile", "relaxed.gpu", "acquire.sys", "weak",
             "L1::no_allocate.L2::128B")  # fmt: skip
    stores = ("wb", "cg", "cs", "wt", "volatile", "relaxed.cta", "release.gpu", "L1::evict_last")
    found = []
    for hint in loads:
        order = hint.split(".")[0] in ("volatile", "relaxed", "acquire", "weak")
        opcode = f"ld.{hint}.global" if order else f"ld.global.{hint}"
        found.append(f"{opcode}.u32 {{r}}, [%own+{{o8}}]")
    for hint in stores:
        order = hint.split(".")[0] in ("volatile", "relaxed", "release")
        opcode = f"st.{hint}.global" if order else f"st.global.{hint}"
        found.append(f"{opcode}.u32 [%own+{{o8}}], {{r}}")
    return found


def _atomics(space: str, base: str) -> list[str]:
    found = []
    for kind, x in (("u32", "r"), ("s32", "r"), ("u64", "q"), ("s64", "q")):
        names = ["min", "max"] if kind == "s64" else ["add", "min", "max"]
        found += [f"atom.{space}.{name}.{kind} {{{x}}}, [{base}+{{o8}}], {{{x}}}" for name in names]
    for width, x in (("32", "r"), ("64", "q")):
        for name in ("and", "or", "xor", "exch"):
            found.append(f"atom.{space}.{name}.b{width} {{{x}}}, [{base}+{{o8}}], {{{x}}}")
        found.append(f"atom.{space}.cas.b{width} {{{x}}}, [{base}+{{o8}}], {{{x}}}, {{{x}}}")
    found.append(f"atom.{space}.cas.b16 {{h}}, [{base}+{{o2}}], {{h}}, {{h}}")
    found += [f"atom.{space}.{n}.u32 {{r}}, [{base}+{{o8}}], {{r}}" for n in ("inc", "dec")]
    found += [f"atom.{space}.add.{kind} {{{x}}}, [{base}+{{o8}}], {{{x}}}"
              for kind, x in (("f32", "f"), ("f64", "d"))]  # fmt: skip
    for kind, x in (("f16", "g"), ("bf16", "w"), ("f16x2", "u"), ("bf16x2", "v")):
        found.append(f"atom.{space}.add.noftz.{kind} {{{x}}}, [{base}+{{o8}}], {{{x}}}")
    return found


def _reductions() -> list[str]:
    """Of words that all threads share, one for each operation: their order must not show."""
    kinds = ("add.u32", "or.b32", "min.s32", "max.u32", "add.u64", "max.s64", "xor.b64", "and.b32")
    found = []
    for place, kind in enumerate(kinds):
        x = "q" if kind.endswith("64") else "r"
        found.append(f"red.relaxed.gpu.global.{kind} [%all+{8 * place}], {{{x}}}")
    vectors = (("v2.f32", "{f}, {f}", 8), ("v4.f32", "{f}, {f}, {f}, {f}", 16),
               ("v2.f16x2", "{u}, {u}", 8), ("v4.bf16", "{w}, {w}, {w}, {w}", 8))  # fmt: skip
    for kind, values, size in vectors:
        noftz = "" if "f32" in kind else ".noftz"
        found.append(f"red.global.add{noftz}.{kind} [%own+{{o{size}}}], <{values}>")
    found.append("red.global.max.noftz.v2.f16 [%own+{o8}], <{g}, {g}>")
    return found


def _copies() -> list[str]:
    end = "cp.async.commit_group;\ncp.async.wait_all"
    found = []
    for size in (4, 8, 16):
        to, come = f"[%near+{{o{size}}}]", f"[%own+{{o{size}}}]"
        found.append(f"cp.async.ca.shared.global {to}, {come}, {size};\n{end}")
        copy = f"cp.async.ca.shared.global {to}, {come}, {size}"
        found += [f"{copy}, {given};\n{end}" for given in (0, 3, size)]
    found.append(f"cp.async.cg.shared.global.L2::128B [%near+{{o16}}], [%own+{{o16}}], 16;\n{end}")
    return found


MEMORY_FORMS = [
    *(f for space, base in _SPACES.items() for f in _plain(space, base)),
    *_hinted(),
    *(f for space in ("global", "shared") for f in _atomics(space, _SPACES[space])),
    *_reductions(),
    *_copies(),
]


def _registers(letter: str, count: int, *, apart: bool) -> str:
    """A vector of registers, all different where they are written."""
    rest = [f"{{{letter}2}}" if apart else f"{{{letter}}}"] * (count - 1)
    return "<" + ", ".join([f"{{{letter}}}", *rest]) + ">"


def _mma(shape: str, kinds: str, letters: str, counts: tuple[int, int, int], *, end: str = "",
         start: str = "") -> str:  # fmt: skip
    """`letters` of d and c, a, b; `counts` of registers of them."""
    d, a, b = letters
    c_count, a_count, b_count = counts
    operands = [
        _registers(d, c_count, apart=True),
        _registers(a, a_count, apart=False),
        _registers(b, b_count, apart=False),
        _registers(d, c_count, apart=False),
    ]
    return f"mma.sync.aligned.{shape}.row.col{start}.{kinds}{end} " + ", ".join(operands)


_PRODUCTS = [
    _mma("m16n8k8", "f32.f16.f16.f32", "fuu", (4, 2, 1)),
    _mma("m16n8k16", "f32.f16.f16.f32", "fuu", (4, 4, 2)),
    _mma("m16n8k8", "f16.f16.f16.f16", "uuu", (2, 2, 1)),
    _mma("m16n8k16", "f16.f16.f16.f16", "uuu", (2, 4, 2)),
    _mma("m16n8k8", "f32.bf16.bf16.f32", "fvv", (4, 2, 1)),
    _mma("m16n8k16", "f32.bf16.bf16.f32", "fvv", (4, 4, 2)),
    _mma("m16n8k4", "f32.tf32.tf32.f32", "frr", (4, 2, 1)),
    _mma("m16n8k8", "f32.tf32.tf32.f32", "frr", (4, 4, 2)),
    _mma("m16n8k32", "f32.e4m3.e5m2.f32", "frr", (4, 4, 2)),
    _mma("m8n8k4", "f64.f64.f64.f64", "ddd", (2, 1, 1)),
    _mma("m16n8k8", "f64.f64.f64.f64", "ddd", (4, 4, 2)),
    _mma("m8n8k16", "s32.s8.u8.s32", "rrr", (2, 1, 1)),
    _mma("m16n8k16", "s32.u8.u8.s32", "rrr", (4, 2, 1)),
    _mma("m16n8k32", "s32.s8.s8.s32", "rrr", (4, 4, 2), start=".satfinite"),
    _mma("m8n8k32", "s32.s4.s4.s32", "rrr", (2, 1, 1)),
    _mma("m16n8k64", "s32.u4.s4.s32", "rrr", (4, 4, 2)),
    _mma("m8n8k128", "s32.b1.b1.s32", "rrr", (2, 1, 1), end=".xor.popc"),
    _mma("m16n8k256", "s32.b1.b1.s32", "rrr", (4, 4, 2), end=".and.popc"),
]


def _wmma(
    shape: str,
    kinds: tuple[str, str],
    layouts: tuple[str, str, str],
    counts: tuple[int, int, int],
    places: tuple[int, int],
) -> str:
    """Loads A, B and C from the warp's 2048 bytes, multiplies, stores D over C.

    `kinds` of the factors and of the sums, `layouts` and `counts` of registers of A, B and C,
    `places` in bytes of B and C.
    """
    factor, total = kinds
    m, n, k = re.findall(r"\d+", shape)
    a, b, c = (_fixed(kind, 8 * j, count) for j, (kind, count) in enumerate(
        zip((factor, factor, total), counts, strict=True)))  # fmt: skip
    lines = ((k, m), (n, k), (n, m))
    strides = [by_row if lay == "row" else by_column
               for lay, (by_row, by_column) in zip(layouts, lines, strict=True)]  # fmt: skip
    types = f"{total}.{total}" if factor == "f16" else f"{total}.{factor}.{factor}.{total}"
    end = ".rn" if factor == "f64" else ""
    where = ["[%tile]", *(f"[%tile+{place}]" for place in places)]
    loads = []
    for name, layout, kind, registers, place, stride in zip(
        "abc", layouts, (factor, factor, total), (a, b, c), where, strides, strict=True
    ):
        opcode = f"wmma.load.{name}.sync.aligned.{layout}.{shape}.global.{kind}"
        loads.append(f"{opcode} {registers}, {place}, {stride}")
    combination = ".xor.popc" if factor == "b1" else ""
    product = f"wmma.mma{combination}.sync.aligned.{layouts[0]}.{layouts[1]}.{shape}.{types}{end}"
    store = f"wmma.store.d.sync.aligned.{layouts[2]}.{shape}.global.{total}"
    return ";\n".join([*loads, f"{product} {c}, {a}, {b}, {c}",
                       f"{store} {where[2]}, {c}, {strides[2]}"])  # fmt: skip


def _fixed(kind: str, first: int, count: int) -> str:
    """A vector of registers that only these forms use."""
    name = {"f32": "%mf", "f64": "%md"}.get(kind, "%m")
    return "<" + ", ".join(f"{name}{first + k}" for k in range(count)) + ">"


_MATRICES = [
    _wmma("m16n16k16", ("f16", "f32"), ("row", "col", "row"), (8, 8, 8), (512, 1024)),
    _wmma("m16n16k16", ("f16", "f16"), ("col", "row", "col"), (8, 8, 4), (512, 1024)),
    _wmma("m32n8k16", ("f16", "f32"), ("row", "row", "row"), (8, 8, 8), (1024, 1024)),
    _wmma("m8n32k16", ("f16", "f16"), ("col", "col", "row"), (8, 8, 4), (256, 1280)),
    _wmma("m16n16k16", ("bf16", "f32"), ("col", "col", "row"), (4, 4, 8), (512, 1024)),
    _wmma("m16n16k16", ("s8", "s32"), ("row", "row", "col"), (2, 2, 8), (256, 512)),
    _wmma("m32n8k16", ("u8", "s32"), ("col", "col", "row"), (4, 1, 8), (512, 1024)),
    _wmma("m16n16k8", ("tf32", "f32"), ("row", "col", "row"), (4, 4, 8), (512, 1024)),
    _wmma("m8n8k32", ("s4", "s32"), ("row", "col", "row"), (1, 1, 2), (128, 256)),
    _wmma("m8n8k128", ("b1", "s32"), ("row", "col", "row"), (1, 1, 2), (128, 256)),
    _wmma("m8n8k4", ("f64", "f64"), ("col", "row", "row"), (1, 1, 2), (256, 512)),
]
_TILES = [
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 <{r}>, [%near+{o16}]",
    "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 <{r}, {r2}>, [%near+{o16}]",
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16 <{r}, {r2}, {r2}, {r2}>, [%near+{o16}]",
    "ldmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 <{r}, {r2}, {r2}, {r2}>, [%near+{o16}]",
    "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%near+{o16}], <{r}, {r}>",
    "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%near+{o16}], <{r}, {r}, {r}, {r}>",
    "movmatrix.sync.aligned.m8n8.trans.b16 {r}, {r}",
]

WARP_FORMS = [
    *(f"shfl.sync.{mode}.b32 {{r}}|{{p}}, {{r}}, {{k}}, {{c}}, -1" for mode in
      ("up", "down", "bfly", "idx")),
    "shfl.sync.idx.b32 {r}, {r}, {r}, 31, -1",
    *(f"vote.sync.{mode}.pred {{p}}, {{p}}, -1" for mode in ("all", "any", "uni")),
    "vote.sync.ballot.b32 {r}, {p}, -1",
    "match.any.sync.b32 {r}, {r}, -1",
    "match.any.sync.b64 {r}, {q}, -1",
    "match.all.sync.b32 {r}|{p}, {r}, -1",
    "match.all.sync.b64 {r}|{p}, {q}, -1",
    *(f"redux.sync.{name}.{kind} {{r}}, {{r}}, -1" for kind in ("u32", "s32")
      for name in ("add", "min", "max")),
    *(f"redux.sync.{name}.b32 {{r}}, {{r}}, -1" for name in ("and", "or", "xor")),
    "elect.sync {r}|{p}, -1",
    *_TILES,
    *_PRODUCTS,
    *_MATRICES,
    "bar.sync 0;\nld.shared.u32 {r}, [%other+{o8}];\nbar.sync 0",
]  # fmt: skip
"""Instructions that all threads must reach together."""
