"""The TOML form: what it reads, and where it says that something is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.errors import UserError
from gpuwatch.probe import parse_toml, verify
from gpuwatch.probe.model import Constant, Field, Helper, If, ProbeRegister, Ptx, Read, Save, Unary

LANES = """\
regs = 6
CALLBACK = "lanes.py"

[probe.lanes]
level = "warp"
pos = "kernel"
before = \"\"\".reg .b32   %tmp<4>;   .reg .pred  %lead;
mov.u32     %tmp2, %laneid;  setp.eq.u32 %lead, %tmp2, 0; // lane 0
@%lead mov.u32 %tmp3, %tid.x;     // threadIdx.x; not the lane
@%lead mad.lo.s32 %tmp1, %tmp3, 4,  %tmp3;
@%lead mov.u64 %NR0, %clock64;\"\"\"
after = \"\"\"
mov.u64 %NR2, %clock64;
sub.u64 %NR1, %NR2, %NR0; /* SAVE [
nothing ] */
cvt.u64.u32 %NR3, %tmp1;
SAVE [ lanes ] { %NR0, %NR1, %NR3 }\"\"\"

[map.lanes]
level = "warp"
type = "array"
size = 32
cap = 1

[map.lanes.regs]
start = [ "u64", "None",]
elapsed = [ "u64", "None",]
warpid = [ "u64", "None",]
"""


def text(after: str, before: str = "", top: str = "regs = 2") -> str:
    return (
        f'{top}\n[probe.p]\nlevel = "warp"\npos = "kernel"\n'
        f'before = """\n{before}\n"""\nafter = """\n{after}\n"""\n'
        '[map.m]\nlevel = "warp"\nsize = 8\n[map.m.regs]\nx = ["u64", "None"]\n'
    )


def test_program_of_the_articles_constructs() -> None:
    program = parse_toml(LANES, "folder/lanes.toml")
    verify(program)
    assert (program.name, program.form, program.callback) == ("lanes", "toml", "lanes.py")
    assert program.registers == tuple(ProbeRegister(f"%NR{n}", "u64") for n in range(6))
    (map_,) = program.maps
    assert (map_.level, map_.type, map_.size, map_.cap) == ("warp", "array", 32, 1)
    assert map_.fields == tuple(Field(name, "u64") for name in ("start", "elapsed", "warpid"))
    before, after = program.probes
    assert (before.name, before.before, after.name, after.before) == ("lanes", True, "lanes", False)
    (ptx,) = before.body
    assert isinstance(ptx, Ptx)
    assert ptx.declarations == (("b32", "%tmp", 4), ("pred", "%lead", 0))
    assert ".reg" not in ptx.text and "//" not in ptx.text
    assert [i.tokens[0] for i in ptx.instructions] == ["mov", "setp", "mov", "mad", "mov"]
    assert ptx.instructions[2].guard is not None
    assert ptx.instructions[2].guard.register == "%lead"
    for instruction in ptx.instructions:
        assert ptx.text[instruction.start : instruction.end].endswith(";")
    run, save = after.body
    assert isinstance(run, Ptx) and isinstance(save, Save)
    assert run.declarations == ()
    assert save.values == (Read("%NR0"), Read("%NR1"), Read("%NR3"))
    assert save.at is not None
    assert (save.at.line, save.at.column) == (17, 1)
    assert [(place.line, place.column) for place in run.places] == [(13, 1), (14, 1), (16, 1)]


def test_text_copied_from_a_web_page_has_no_break_blanks() -> None:
    assert parse_toml(LANES.replace(" ", "\xa0"), "t.toml") == parse_toml(LANES, "t.toml")


def test_readme_spellings_and_sizes_as_text() -> None:
    program = parse_toml(
        'register = "3"\ncallback = "c.py"\n[probe.p]\nposition = "kernel"\nlevel = "thread"\n'
        "after = 'SAVE [m] {%NR0};'\n[map.m]\nlevel='thread'\ntype='array'\nsize='16'\ncap='4'\n"
        "regs = {x = ['u64', 'None']}\n",
        "t.toml",
    )
    verify(program)
    assert len(program.registers) == 3 and program.callback == "c.py"
    assert (program.maps[0].size, program.maps[0].cap) == (16, 4)
    (probe,) = program.probes
    assert probe.position == "kernel" and not probe.before
    (save,) = probe.body
    assert isinstance(save, Save) and save.at is not None
    assert (save.at.line, save.at.column) == (6, 10)


def test_two_words_for_one_key_are_refused() -> None:
    with pytest.raises(UserError, match="mean the same"):
        parse_toml("regs = 1\nregister = 2", "t.toml")


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("SAVE [ m ] { %NR0 }", Save("m", (Read("%NR0"),))),
        ("SAVE[m]{%t1};", Save("m", (Read("%t1"),))),
        ("SAVE [m] {%smid}", Save("m", (Helper("smid"),))),
        ("SAVE [m] {ADDR}", Save("m", (Helper("addr"),))),
        ("SAVE [m] { 0x10, -3 }", Save("m", (Constant(16), Constant(-3)))),
        ("SAVE [m] {\n %NR0,\n %NR1\n};", Save("m", (Read("%NR0"), Read("%NR1")))),
    ],
)
def test_saves(line: str, action: Save) -> None:
    (save,) = parse_toml(text(line), "t.toml").probes[1].body
    assert isinstance(save, Save)
    assert (save.map, save.values) == (action.map, action.values)


def test_a_save_may_carry_a_guard() -> None:
    declared = ".reg .pred %p;"
    for mark, test in (("@%p ", Read("%p")), ("@!%p ", Unary("not", Read("%p")))):
        program = parse_toml(text(f"{declared}\n{mark}SAVE [m] {{%NR0}}"), "t.toml")
        verify(program)
        holder, branch = program.probes[1].body
        assert isinstance(holder, Ptx) and holder.declarations == (("pred", "%p", 0),)
        assert isinstance(branch, If) and branch.test == test
        assert isinstance(branch.then[0], Save)


def test_instructions_and_saves_stay_in_order() -> None:
    lines = "mov.u64 %NR0, 1; SAVE [m] {%NR0}; mov.u64 %NR1, 2;\nadd.u64 %NR1, %NR1, 1;"
    kinds = [type(action).__name__ for action in parse_toml(text(lines), "t").probes[1].body]
    assert kinds == ["Ptx", "Save", "Ptx"]


def test_declarations_of_before_serve_after_and_differing_ones_are_refused() -> None:
    shared = text("mov.u32 %x, 1;", ".reg .b32 %x;")
    verify(parse_toml(shared, "t.toml"))
    again = parse_toml(text(".reg .b32 %x; mov.u32 %x, 1;", ".reg .b32 %x;"), "t.toml")
    assert sum(len(a.declarations) for p in again.probes for a in p.body if isinstance(a, Ptx)) == 1
    with pytest.raises(UserError, match="declared twice"):
        parse_toml(text(".reg .b64 %x;", ".reg .b32 %x;"), "t.toml")


def test_places_with_windows_line_ends_and_escapes() -> None:
    with pytest.raises(UserError) as caught:
        verify(parse_toml(text("mov.u64 %NR0, 1;\n  mov.u64 %q, 1;").replace("\n", "\r\n"), "t"))
    assert caught.value.at is not None
    assert (caught.value.at.line, caught.value.at.column) == (10, 3)
    escaped = 'regs = 1\n[probe.p]\nlevel="warp"\npos="kernel"\nafter = "mov.u64 %q,\\t1;"\n'
    with pytest.raises(UserError) as caught:
        verify(parse_toml(escaped, "t"))
    assert caught.value.at is not None and caught.value.at.line == 5


MISTAKES = [
    ("regs =", 1, "not TOML"),
    ("x = '''", 1, "not TOML"),
    ("regs = 'x'", 1, "whole number"),
    ("regs = 1000000", 1, "too many"),
    ("rges = 3", 1, "unknown key rges"),
    ("callback = 3", 1, "must be text"),
    ("probe = 3", 1, "must be a table"),
    ("[probe]\np = 3", 2, "must be a table"),
    ("[probe.p]\nlevel = 'warp'\nafter = ''", 1, "not complete"),
    ("[probe.p]\npos = 'kernel'\nafter = ''", 1, "not complete"),
    ("[probe.p]\npos = 'kernel'\nlevel = 'warp'", 1, "not complete"),
    ("[probe.p]\npos = 'kernel'\nlevel = 'wrap'\nafter = ''", 3, "level"),
    ("[probe.p]\npos = 'kernel'\nlevel = 'warp'\nafter = 1", 4, "must be text"),
    ("[probe.p]\npos = 'kernel'\nlevels = 'warp'\nafter = 1", 3, "unknown key levels"),
    ("[map.m]\nsize = 8", 1, "no level"),
    ("[map.m]\nlevel = 'warp'\nsize = 'x'", 3, "whole number"),
    ("[map.m]\nlevel = 'warp'\ncap = 'x'", 3, "whole number"),
    ("[map.m]\nlevel = 'warp'\ntype = 'list'", 3, "type"),
    ("[map.m]\nlevel = 'warp'\n[map.m.regs]\na = ['u64']\nb = ['u65']", 5, "type of a field"),
    ("[map.m]\nlevel = 'warp'\n[map.m.regs]\na = ['u64', 'Some']", 4, "second part"),
    (text("SAVE [m] %NR0"), 9, "not complete"),
    (text("SAVE {%NR0}"), 9, "not complete"),
    (text("mov.u64 %NR0, 1;\n  SAVE [m] {%NR0, +}"), 10, "cannot be saved"),
    (text("mov.u64 %NR0 1;"), 9, "expected"),
    (text("mov.u64 %NR0, 1"), None, "expected"),
    (text("here:\nmov.u64 %NR0, 1;"), 9, "label"),
    (text("{ mov.u64 %NR0, 1; }"), 9, "scope"),
    (text(".shared .b32 x;"), 9, "variable"),
    (text('.pragma "nounroll";'), 9, "directive"),
]


@pytest.mark.parametrize(("source", "line", "message"), MISTAKES)
def test_mistakes_have_their_line(source: str, line: int | None, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        parse_toml(source, "t.toml")
    error = caught.value
    assert error.at is not None and error.hint and error.at.file == "t.toml"
    if line is not None:
        assert error.at.line == line
        assert error.at.text == source.split("\n")[line - 1]


def test_the_caret_stands_at_the_operand() -> None:
    with pytest.raises(UserError) as caught:
        parse_toml(text("mov.u64 %NR0, 1;\n  SAVE [m] {%NR0,  +}  // x"), "t.toml")
    assert caught.value.at is not None
    assert (caught.value.at.line, caught.value.at.column) == (10, 20)


def test_a_declaration_alone_has_a_place() -> None:
    with pytest.raises(UserError, match="%clock64 is a register of the GPU") as caught:
        verify(parse_toml(text(".reg .u64 %clock64;"), "t.toml"))
    assert caught.value.at is not None
    assert caught.value.at.text == 'after = """'


PIECES = st.sampled_from(
    [*LANES.split(), *LANES.splitlines(), '"""', "[", "]", "{", "}", "=", "SAVE", ";", "\n", "'''"]
)


@settings(max_examples=200)
@given(
    st.one_of(
        st.text(),
        st.lists(PIECES).map("\n".join),
        st.lists(PIECES).map(" ".join).map(text),
        st.text().map(text),
    )
)
def test_garbage_is_a_user_error(source: str) -> None:
    try:
        verify(parse_toml(source, "t.toml"))
    except UserError as error:
        assert error.render()


@given(st.data())
def test_any_cut_of_a_program_is_a_program_or_a_user_error(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(LANES)))
    end = data.draw(st.integers(start, len(LANES)))
    try:
        verify(parse_toml(LANES[:start] + LANES[end:], "t.toml"))
    except UserError as error:
        assert error.at is not None
