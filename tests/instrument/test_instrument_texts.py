"""Probe texts as people write them: crowded lines, guards, comments, loose slots."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_instrument_runs import KERNELS
from weaving import HEADER, kernel, run

from gpuwatch.instrument import weave
from gpuwatch.probe import parse_python, parse_toml
from gpuwatch.ptx import parse
from gpuwatch.toolchain import assemble, find

GUARDED = '''\
regs = 4

[probe.spans]
level = "warp"
pos = "kernel"
before = """
.reg .b32   %tmp<21>;   .reg .pred  %lead;  // both are used again below
mov.u32 %tmp2, %laneid;  setp.eq.u32 %lead, %tmp2, 0; @%lead mov.u32 %tmp3, %nwarpid;
@%lead mov.u32 %tmp4, %tid.x;  /* one
   comment over two lines */ @%lead mov.u32 %tmp7, %ntid.x;
@%lead mov.u32 %tmp9, %ctaid.x;
@%lead add.s32 %tmp20, %tmp7, 31;  @%lead div.s32 %tmp20, %tmp20, 32;   // warps of a block
@%lead div.s32 %tmp15, %tmp4, 32;
@%lead mad.lo.s32 %tmp1, %tmp9, %tmp20, %tmp15;
@%lead mov.u64 %NR0, %clock64;
"""
after = """
mov.u64 %NR2, %clock64; sub.u64 %NR1, %NR2, %NR0;
cvt.u64.u32 %NR3, %tmp1;
SAVE [ spans ] { %NR0, %NR1, %NR3 }
"""

[map.spans]
level = "warp"
type = "array"
size = 40
cap = 1

[map.spans.regs]
start = ["u64", "None"]
elapsed = ["u64", "None"]
number = ["u64", "None"]
'''
CLOCK_FIRST = '''\
regs = 3
[probe.t]
level = "warp"
pos = "kernel"
before = """  mov.u64 %NR0, %clock64; mov.u64 %NR2, %NR1;  """
after = """mov.u64 %NR1, %clock64; SAVE [ t ] { %NR0, %NR1, %NR2 };"""
[map.t]
level = "warp"
regs = { start = "u64", end = "u64", untouched = "u64" }
'''
LOOSE = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe


@Map(level="warp", type="array", size=48, cap=1)
class spans:
    start: gl.u64
    elapsed: gl.u32
    sm: gl.u32


begun: gl.u64 = 0
took: gl.u64 = 0


@probe(pos="kernel", level="warp", before=True)
def enter():
    begun = gl.clock()


@probe(pos="kernel", level="warp")
def leave():
    took = gl.clock() - begun
    spans.save(begun, took, gl.cuid())
"""
BRANCHY = KERNELS["branch over the work"]


def executed(text: str) -> list[str]:
    body = text[text.index("{\n") + 2 :].splitlines()
    return [line.strip() for line in body if not line.strip().startswith(".reg")]


@pytest.mark.parametrize("arch", ["sm_80", "sm_86"])
@pytest.mark.parametrize("form", ["toml", "python"])
def test_texts_assemble_and_run(form: str, arch: str) -> None:
    program = (
        parse_toml(GUARDED, "spans.toml") if form == "toml" else parse_python(LOOSE, "spans.py")
    )
    probed = run(BRANCHY, program, (3, 1, 1), (80, 1, 1), n=50)
    assemble(find(), probed.woven.text.replace("sm_86", arch), arch, "k")
    records = probed.maps["spans"]
    assert (probed.plain == probed.output).all()
    assert probed.counts["spans"].tolist() == [1] * 9
    assert (records.column("elapsed") > 0).all()
    assert (records.column("elapsed") < 1 << 20).all()
    if form == "toml":
        assert records.column("number").tolist() == list(range(9))


def test_only_what_may_be_read_unwritten_is_initialised() -> None:
    text = weave(parse(BRANCHY), "k", parse_toml(CLOCK_FIRST, "t.toml")).text
    lines = executed(text)
    assert lines[0] == "mov.u64 %gpw_NR0, %clock64;"
    assert lines[1] == "mov.u64 \t%gpw_NR1, 0;"
    assert lines[2] == "mov.u64 %gpw_NR2, %gpw_NR1;"
    assert sum(", 0;" in line and "%gpw_" in line for line in lines) == 1


def test_a_guarded_write_needs_an_initial_value() -> None:
    lines = executed(weave(parse(BRANCHY), "k", parse_toml(GUARDED, "spans.toml")).text)
    assert [line for line in lines if line.endswith(", 0;") and "%gpw_" in line] == [
        "mov.u64 \t%gpw_NR0, 0;"
    ]


def test_what_the_untouched_register_holds() -> None:
    probed = run(BRANCHY, parse_toml(CLOCK_FIRST, "t.toml"), (1, 1, 1), (32, 1, 1), n=9)
    record = probed.maps["t"].records[0]
    assert record["end"] > record["start"]
    assert record["untouched"] == 0


def test_the_after_clock_comes_before_the_work_of_saving() -> None:
    lines = executed(weave(parse(KERNELS["straight"]), "k", parse_python(LOOSE, "l.py")).text)
    stored = lines.index("st.global.u32 [%a1], %i10;")
    assert "%clock64" in lines[stored + 1]


CALLS = HEADER + (
    ".func leaf()\n{\n\texit;\n}\n"
    ".func middle()\n{\n\tcall leaf;\n\tret;\n}\n"
    ".func apart()\n{\n\texit;\n}\n"
    ".visible .entry k()\n{\n\tcall middle;\n\tret;\n}\n"
    ".visible .entry calm()\n{\n\tret;\n}\n"
)


def test_an_exit_in_a_called_function_is_told() -> None:
    program = parse_python(LOOSE, "l.py")
    notes = weave(parse(CALLS), "k", program).notes
    assert len(notes) == 1
    assert "leaf" in notes[0]
    assert weave(parse(CALLS), "calm", program).notes == ()


def test_registers_that_leaving_lanes_take_along_are_told() -> None:
    guarded, whole = parse_toml(GUARDED, "s.toml"), parse_python(LOOSE, "l.py")
    several = parse(KERNELS["lanes return one by one"])
    (note,) = weave(several, "k", guarded).notes
    assert "%NR0, %tmp1;" in note
    assert weave(several, "k", whole).notes == ()
    assert weave(parse(BRANCHY), "k", guarded).notes == ()


FIXTURES = Path(__file__).parent / "fixtures"


@pytest.mark.parametrize(("name", "ending"), [("python", "py"), ("toml", "toml")])
def test_probed_text_is_as_recorded(name: str, ending: str) -> None:
    program = (
        parse_python(LOOSE, "spans.py") if ending == "py" else parse_toml(GUARDED, "spans.toml")
    )
    plain = (FIXTURES / "plain.ptx").read_text()
    assert plain == kernel(
        "\t.reg .pred %p<2>;\n\tsetp.ge.u32 %p1, %i10, %i11;\n\t@%p1 exit;\n"
        "\tst.global.u32 [%a1], %i10;\n\tret;\n"
    )
    assert weave(parse(plain), "k", program).text == (FIXTURES / f"{name}.ptx").read_text()
