"""No program that the verifier accepts changes what a kernel computes, or writes outside its maps.

Programs of both forms are generated, harmful ones among them. Those that are accepted run on the
simulated device, which tells every write behind the end of a buffer; outputs are compared bit for
bit, and what maps hold outside their records has to be as it was.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from weaving import kernel, launch_of, run_plain

from gpuwatch.device.base import KernelImage
from gpuwatch.device.sim import open_sim
from gpuwatch.errors import UserError
from gpuwatch.instrument import lay_out, weave
from gpuwatch.instrument.model import MapPlace
from gpuwatch.probe import compose, parse_python, parse_toml, verify
from gpuwatch.probe.model import Program
from gpuwatch.ptx import parse
from gpuwatch.trace.decode import counts_of, folded

WORK = kernel("""\
	.reg .b32 %v<9>; .reg .f32 %f<4>; .reg .b64 %d<3>; .reg .pred %p<4>;
	.shared .align 4 .b32 box[64];
	mul.lo.u32 %v1, %i10, 2654435761;
	mov.u32 %v2, box; shl.b32 %v3, %i1, 2; add.u32 %v3, %v2, %v3;
	st.shared.u32 [%v3], %v1;
	setp.lt.u32 %p1, %i1, 40;
	@%p1 st.global.u32 [%a1], %v1;
	bar.sync 0;
	mov.u32 %v4, 0; and.b32 %v5, %i1, 3;
$AGAIN:
	xor.b32 %v6, %i1, %v4; shl.b32 %v6, %v6, 2; add.u32 %v6, %v2, %v6;
	setp.lt.u32 %p2, %v6, 4096;
	ld.shared.u32 %v7, [%v6];
	add.u32 %v1, %v1, %v7;
	add.u32 %v4, %v4, 1;
	setp.le.u32 %p2, %v4, %v5;
	@%p2 bra $AGAIN;
	setp.ge.u32 %p3, %i1, %i11;
	@%p3 ret;
	cvt.rn.f32.u32 %f1, %v1; mul.f32 %f2, %f1, 0f3F000000;
	ld.global.u32 %v8, [%a1+0];
	mov.b32 %v7, %f2; add.u32 %v8, %v8, %v7;
	st.global.u32 [%a1], %v8;
	atom.shared.add.u32 %v6, [%v2], 1;
	ret;
""")
"""Shared and global accesses, a loop that lanes leave at different times, two ways out."""
GRID, BLOCK, N = (3, 1, 1), (50, 1, 1), 37

RUNS = settings(
    deadline=None,
    max_examples=6,
    phases=(Phase.reuse, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
"""Few programs, and not made smaller when they fail: each takes seconds to compile."""

POSITIONS = [
    "kernel", "kernel", "ld.global", "st.global", "ld.shared:st.shared", "ld:st:atom", "add",
    "setp:mul", "bar", "bra", "cvt", "$AGAIN", "ret",
]  # fmt: skip
HELPERS = [
    "gl.clock()", "gl.time()", "gl.smid()", "gl.warpid()", "gl.laneid()", "gl.active", "gl.site",
    "gl.thread", "gl.block", "gl.thread_x", "gl.grid_dim_y", "gl.addr", "gl.bytes", "gl.out",
    "gl.in1", "gl.in2", "gl.leads", "gl.sectors()", "gl.bank_conflicts()",
]  # fmt: skip
TYPES = ["u32", "u64", "s32", "s64", "f32", "pred"]
LEVELS = ["thread", "warp", "block", "sm", "site", "kernel"]
REGISTERS = {"a": "u32", "b": "s64", "c": "u64", "d": "s32", "x": "f32", "p": "pred"}


def value(draw: st.DrawFn, depth: int = 2) -> str:
    kind = draw(st.integers(0, 9 if depth else 3))
    if kind <= 1:
        return draw(st.sampled_from(list(REGISTERS)))
    if kind == 2:
        return draw(st.sampled_from(HELPERS))
    if kind == 3:
        return str(draw(st.sampled_from([0, 1, 5, 31, 2**31, 2**32 - 1, -1])))
    if kind == 4:
        name = draw(st.sampled_from(["gl.popc", "gl.u32", "gl.s64", "gl.f32", "gl.bits", "-", "~"]))
        return f"{name}({value(draw, depth - 1)})"
    operators = "+ - * // % & | ^ << >> == < and or".split()  # noqa: SIM905
    operator = draw(st.sampled_from(operators))
    return f"({value(draw, depth - 1)} {operator} {value(draw, depth - 1)})"


@st.composite
def maps(draw: st.DrawFn, name: str) -> tuple[str, int]:
    """A map's declaration, and how many fields it has."""
    kind = draw(st.sampled_from(["array", "array", "reduce", "hist"]))
    level = draw(st.sampled_from(LEVELS))
    number = 1 if kind == "hist" else draw(st.integers(1, 4))
    options = {
        "array": f", cap={draw(st.integers(1, 3))}",
        "reduce": "",
        "hist": draw(st.sampled_from([", cap=4", ', scale="linear", low=3, step=5, cap=6'])),
    }[kind]
    if kind == "array" and draw(st.booleans()):
        options = ', cap="dynamic"'
    fields = ""
    for field in range(number):
        type_ = draw(st.sampled_from(TYPES[:5] if kind == "hist" else TYPES))
        how = f" = {draw(st.sampled_from(['sum', 'min', 'max']))}" if kind == "reduce" else ""
        fields += f"    f{field}: gl.{type_}{how}\n"
    text = f'@Map(level="{level}", type="{kind}"{options})\nclass {name}:\n{fields}\n'
    return text, number


def statements(draw: st.DrawFn, sizes: dict[str, int], indent: str, depth: int = 2) -> str:
    text = ""
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.integers(0, 4 if depth else 2))
        if kind == 0:
            name, number = draw(st.sampled_from(sorted(sizes.items())))
            saved = ", ".join(value(draw) for _ in range(number))
            text += f"{indent}{name}.save({saved})\n"
        elif kind <= 2:
            target = draw(st.sampled_from(list(REGISTERS)))
            sign = draw(st.sampled_from(["=", "=", "+=", "-=", "|="]))
            text += f"{indent}{target} {sign} {value(draw)}\n"
        else:
            text += f"{indent}if {value(draw)}:\n{statements(draw, sizes, indent + '    ', 0)}"
            text += f"{indent}else:\n{statements(draw, sizes, indent + '    ', 0)}"
    return text


HEAD = "import gpuwatch.language as gl\nfrom gpuwatch import Map, probe\n" + "".join(
    f"{name}: gl.{type_} = {number}\n" for number, (name, type_) in enumerate(REGISTERS.items())
).replace("= 5", "= 1")


@st.composite
def python_programs(draw: st.DrawFn) -> Program:
    """The sound ones of several generated probes, in one program."""
    declared = [draw(maps(f"m{number}")) for number in range(draw(st.integers(1, 3)))]
    head = HEAD + "".join(text for text, _ in declared)
    sizes = {f"m{number}": size for number, (_, size) in enumerate(declared)}
    sample = draw(st.sampled_from(["", "", ", sample=2", ', sample=2, sample_unit="block"']))
    sound = head
    for number in range(5):
        position = draw(st.sampled_from(POSITIONS))
        before = draw(st.sampled_from(["", ", before=True"]))
        level = draw(st.sampled_from(["thread", "warp"]))
        body = statements(draw, sizes, "    ")
        probe = f'@probe(pos="{position}", level="{level}"{before}{sample})\ndef p{number}():\n'
        if accepted(sound + probe + body):
            sound += probe + body
    assume(sound != head)
    return parse_python(sound, "generated.py")


def accepted(text: str) -> bool:
    """Whether a program is sound and can be woven; every refusal has a place and a hint."""
    try:
        program = parse_python(text, "generated.py")
        verify(program)
        weave(parse(WORK), "k", program)
    except UserError as error:
        assert error.render() and error.hint
        return False
    return True


OPERANDS = {
    "r": ["%t0", "%t1", "%m", "%laneid", "%tid.x", "%smid", "BYTES", "IN1", "OUT", "7", "-1"],
    "d": ["%w0", "%w1", "%NR0", "%NR1", "%clock64", "ADDR", "IN1", "3", "0x80000000"],
    "f": ["%f0", "0f3F800000"],
    "p": ["%q"],
    "m": ["%m", "%m", "%t0", "-1"],
    "a": ["[%a1]", "[%NR0]", "[%w0+4]"],
    "l": ["$AGAIN", "0", "%t0"],
    "R": ["%t0", "%t1", "%m"],
    "D": ["%w0", "%NR0", "%NR1"],
    "F": ["%f0"],
}
"""Operands of each class; capitals are those that can be written."""
OF_KERNEL = {"R": ["%v1", "%v4", "%i10"], "D": ["%a1"], "F": ["%f1"], "p": ["%p2"]}
"""Registers of the kernel that a line could write, by class."""
HARMFUL = ["%i1", "%i10", "%a1", "%v1", "%p1", "%d1", "%f1", "%f9", "box", "out", "n", "k", "%SP"]
"""What belongs to the kernel, or to nobody."""
OPCODES = """\
mov.u32 R r; mov.b32 R r; mov.u64 D d; cvt.u64.u32 D r; cvt.u32.u64 R d; add.u32 R r r
add.u64 D d d; sub.s32 R r r; mul.lo.u32 R r r; mul.wide.u32 D r r; mad.lo.u32 R r r r
div.u32 R r r; rem.s32 R r r; and.b32 R r r; xor.b64 D d d; shl.b32 R r r; shr.u64 D d r
setp.lt.u32 p r r; selp.b32 R r r p; popc.b32 R r; clz.b64 R d; min.s32 R r r; add.f32 F f f
cvt.rn.f32.u32 F r; mov.b32 R F; activemask.b32 R; match.any.sync.b32 R r m
shfl.sync.up.b32 R r 1 0 m; vote.sync.any.pred p p m; vote.sync.ballot.b32 R p m
redux.sync.add.u32 R r m; add.cc.u32 R r r; addc.u32 R r r; st.global.u32 a r; st.shared.u32 a r
ld.global.u32 R a; red.global.add.u32 a r; atom.global.add.u32 R a r; bar.sync l; bra l; ret
exit; trap; call l; cp.async.ca.shared.global a a 4; prefetch.global.L1 a; membar.gl; brkpt
"""


@st.composite
def lines(draw: st.DrawFn) -> str:
    """One statement: of the right types, but now and then with what is not the probe's."""
    guard = draw(st.sampled_from(["", "", "", "@%q ", "@!%q ", "@%p1 "]))
    if draw(st.integers(0, 5)) == 0:
        values = [draw(st.sampled_from(OPERANDS[kind] + HARMFUL[:2])) for kind in "dr"]
        return (
            f"{guard}SAVE [ {draw(st.sampled_from(['m', 'r', 'k']))} ] {{ {', '.join(values)} }};"
        )
    opcode, *kinds = draw(
        st.sampled_from(OPCODES.replace("\n", "; ").rstrip("; ").split("; "))
    ).split()
    operands = [draw(st.sampled_from(OPERANDS.get(kind, [kind]))) for kind in kinds]
    if kinds and kinds[0] in OF_KERNEL and draw(st.integers(0, 7)) == 0:
        operands[0] = draw(st.sampled_from(OF_KERNEL[kinds[0]]))
    elif operands and draw(st.integers(0, 15)) == 0:
        operands[draw(st.integers(0, len(operands) - 1))] = draw(st.sampled_from(HARMFUL))
    return f"{guard}{opcode} {', '.join(operands)};"


TOML = '''\
regs = 2
[probe.p]
level = "{level}"
pos = "{position}"
{half} = """
.reg .b32 %t<2>, %m; .reg .b64 %w<2>; .reg .pred %q; .reg .f32 %f0;
{body}
"""
[map.m]
level = "thread"
cap = 2
regs = {{ x = "u64", y = "u32" }}
[map.r]
level = "block"
type = "reduce"
regs = {{ x = ["u64", "max"], y = ["s32", "min"] }}
[map.k]
level = "kernel"
cap = 3
regs = {{ x = "u64", y = "f32" }}
'''


@st.composite
def toml_programs(draw: st.DrawFn) -> Program:
    """Of many generated lines those that are sound after the ones before them."""
    level = draw(st.sampled_from(["thread", "warp"]))
    position = draw(st.sampled_from(POSITIONS))
    half = draw(st.sampled_from(["before", "after"]))
    body = "activemask.b32 %m; and.b32 %t0, %laneid, 1; setp.eq.u32 %q, %t0, 1;\n"
    for line in draw(st.lists(lines(), min_size=60, max_size=60)):
        if body.count("SAVE") == 4 and "SAVE" in line:
            continue
        text = TOML.format(level=level, position=position, half=half, body=body + line)
        try:
            program = parse_toml(text, "generated.toml")
            verify(program)
            weave(parse(WORK), "k", program)
        except UserError as error:
            assert error.render() and error.at and error.hint
            continue
        body += line + "\n"
    text = TOML.format(level=level, position=position, half=half, body=body)
    return parse_toml(text, "generated.toml")


def observe(program: Program) -> None:
    """Launches `program` in `WORK` and checks all that it must leave alone."""
    woven = weave(parse(WORK), "k", program)
    device = open_sim("a10", threads=1)
    counts: dict[str, np.ndarray] = {}
    image = KernelImage("k", woven.text, b"", 40, 4096, woven.pointer_variable)
    try:
        for _ in range(2 if any(map_.dynamic for map_ in program.maps) else 1):
            layout = lay_out(woven, GRID, BLOCK, sm_count=device.info.sm_count, counts=counts)
            loaded = device.load(image, launch_of(GRID, BLOCK, N), layout.buffers, layout.fixed)
            loaded.run()
            output = loaded.read_buffers()[0].view(np.uint32)
            assert np.array_equal(output, run_plain(WORK, GRID, BLOCK, N))
            for number, contents in layout.fixed.items():
                assert np.array_equal(loaded.read_map(number), contents)
            for place in layout.places:
                counts[place.map.name] = counts_of(place, loaded.read_map).copy()
                check_slots(place, loaded.read_map(place.records), counts[place.map.name])
            loaded.close()
    finally:
        device.close()


def check_slots(place: MapPlace, records: np.ndarray, counts: np.ndarray) -> None:
    """Slots that count no save are as empty as before, and so is the room behind records."""
    map_ = place.map
    if map_.dynamic:
        return
    records, counts = folded(map_, place.slots, records, counts)
    table = records[: place.slots * map_.slot_bytes].reshape(place.slots, map_.slot_bytes)
    assert not table[counts[: place.slots] == 0].any()
    if map_.type == "array":
        for slot, count in enumerate(counts[: place.slots]):
            assert not table[slot, int(count) * map_.size :].any()


@RUNS
@given(python_programs())
def test_python_programs_leave_the_kernel_alone(program: Program) -> None:
    observe(program)


@RUNS
@given(toml_programs())
def test_toml_programs_leave_the_kernel_alone(program: Program) -> None:
    observe(program)


SAVES_AGAIN = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe
@Map(level="{level}", type="reduce")
class m:
    x: gl.u64
    y: gl.u64
@probe(pos="{position}", level="thread", before=True)
def p():
    m.save(1, {value})
    if gl.laneid() > 3:
        m.save(1, {value})
"""


@pytest.mark.parametrize(
    ("position", "value"),
    [
        ("kernel", "2"),
        ("st.global", "gl.leads"),
        ("st.global", "gl.sectors()"),
        ("st.shared", "gl.bank_conflicts()"),
    ],
)
@pytest.mark.parametrize("level", ["site", "warp", "kernel"])
def test_saves_inside_and_in_front_of_an_if(level: str, position: str, value: str) -> None:
    text = SAVES_AGAIN.format(level=level, position=position, value=value)
    program = parse_python(text, "again.py")
    verify(program)
    observe(program)


def test_composed_programs_leave_the_kernel_alone() -> None:
    one = parse_python(
        HEAD + '@Map(level="warp", cap=9)\nclass m:\n    x: gl.u64\n'
        '@probe(pos="ld.shared", level="warp")\ndef p():\n    a += 1\n    m.save(a)\n',
        "one.py",
    )
    body = "@%q SAVE [ m ] { %NR0, %t0 };"
    other = parse_toml(
        TOML.format(level="thread", position="add", half="after", body=body), "o.toml"
    )
    third = parse_toml(
        TOML.format(level="thread", position="bra", half="before", body=body), "p.toml"
    )
    program = compose([one, other, third])
    assert [map_.name for map_ in program.maps] == ["m", "o_m", "r", "k", "p_m", "p_r", "p_k"]
    verify(program)
    observe(program)
