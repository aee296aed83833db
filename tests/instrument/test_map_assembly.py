"""ptxas takes what every kind of map and every operator becomes, for old and new GPUs."""

from __future__ import annotations

import pytest
from weaving import kernel

from gpuwatch.instrument import weave
from gpuwatch.probe import parse_python, parse_toml, verify
from gpuwatch.ptx import parse
from gpuwatch.toolchain import assemble, find

WORK = kernel("\tst.global.u32 [%a1], %i10;\n\tret;\n")
LEVELS = ("thread", "warp", "block", "sm", "site", "kernel")
TYPES = ("u32", "u64", "s32", "s64", "f32", "pred")
ANY = ["+", "-", "*", "//", "/", "==", "!=", "<", "and", "or"]
WHOLE_ONLY = ["%", "&", "|", "^"]
HEAD = "import gpuwatch.language as gl\nfrom gpuwatch import Map, probe\n" + "".join(
    f"{type_}: gl.{type_} = 1\n" for type_ in TYPES
)


def every_map() -> str:
    text, saves = HEAD, ""
    for level in LEVELS:
        for kind in ('type="array", cap=3', 'type="array", cap="dynamic"', 'type="array", size=52'):
            name = f"m{len(saves)}"
            fields = "".join(f"    f{n}: gl.{type_}\n" for n, type_ in enumerate(TYPES))
            text += f'@Map(level="{level}", {kind})\nclass {name}:\n{fields}'
            saves += f"    {name}.save({', '.join(TYPES)})\n"
        for how in ("sum", "min", "max"):
            name = f"m{len(saves)}"
            fields = "".join(f"    f{n}: gl.{type_} = {how}\n" for n, type_ in enumerate(TYPES))
            text += f'@Map(level="{level}", type="reduce")\nclass {name}:\n{fields}'
            saves += f"    {name}.save({', '.join(TYPES)})\n    {name}.save(1, 2, 3, 4, 5, 1)\n"
        for type_ in TYPES[:5]:
            for scale in ("", ', scale="linear", low=3, step=5, cap=9', ", cap=4"):
                name = f"m{len(saves)}"
                text += f'@Map(level="{level}", type="hist"{scale})\nclass {name}:\n'
                text += f"    v: gl.{type_}\n"
                saves += f"    {name}.save({type_})\n"
    return (
        text
        + '@probe(pos="st.global", level="thread", sample=6, sample_unit="block")\ndef f():\n'
        + saves
    )


def every_operator() -> str:
    lines = []
    for left in TYPES:
        for right in (*TYPES, "7", "-2", "1.5"):
            whole = "f32" not in (left, right) and right != "1.5"
            operators = ANY + WHOLE_ONLY * whole + ["<<", ">>"] * (whole and right != "-2")
            lines += [f"f32 = gl.f32({left} {op} {right})" for op in operators]
            lines.append(f"f32 = gl.f32(gl.min({left}, {right}))")
        lines += [f"f32 = gl.f32(gl.{to}({left}))" for to in (*TYPES[:5], "bits")]
        lines.append(f"pred = not {left}")
    return (
        HEAD
        + '@probe(pos="st.global", level="warp")\ndef f():\n'
        + "".join(f"    {line}\n" for line in lines)
    )


TEXT = '''\
regs = 2
[probe.p]
level = "thread"
pos = "st.global"
before = """
.reg .b32 %t, %m; .reg .b16 %h; .reg .f64 %e; .reg .pred %q; .reg .s16 %s;
mov.u64 %NR0, ADDR; add.u64 %NR0, %NR0, BYTES; mov.u32 %t, IN1; mov.b32 %t, IN1;
cvt.u16.u32 %h, %t; cvt.s16.s32 %s, %t; cvt.rn.f64.u32 %e, %t; setp.lt.u32 %q, %t, BYTES;
activemask.b32 %m; match.any.sync.b64 %t, ADDR, %m; shfl.sync.up.b32 %t|%q, IN1, 1, 0, %m;
@%q SAVE [ m ] { %h, %s, %e, %q, ADDR, IN1, BYTES, %tid.x };
"""
[map.m]
level = "block"
cap = 5
regs = { a = "u32", b = "s64", c = "u64", d = "u32", e = "u64", f = "u32", g = "u64", h = "u64" }
'''


@pytest.mark.parametrize("arch", ["sm_75", "sm_86", "sm_90", "sm_100"])
def test_ptxas_takes_all_of_it(arch: str) -> None:
    module = parse(WORK.replace("sm_86", arch if arch != "sm_100" else "sm_90"))
    for program in (
        parse_python(every_map(), "maps.py"),
        parse_python(every_operator(), "operators.py"),
        parse_toml(TEXT, "text.toml"),
    ):
        verify(program)
        woven = weave(module, "k", program)
        assert assemble(find(), woven.text, arch, "k").registers > 0
