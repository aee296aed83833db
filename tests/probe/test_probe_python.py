"""The Python form: what it reads, and where it says that something is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.errors import UserError
from gpuwatch.probe import load, parse_python, verify
from gpuwatch.probe.model import (
    Assign,
    Binary,
    Constant,
    Expression,
    Field,
    Helper,
    If,
    ProbeRegister,
    Read,
    Save,
    Unary,
)

NEUTRINO_STYLE = """
from neutrino import probe, Map
import neutrino.language as nl

CALLBACK = "sched_report.py"  # reads the trace

@Map(level="warp", type="array", size=16, cap=1)
class sched:
    begin: nl.u64
    cycles: nl.u32
    unit: nl.u32

begin: nl.u64 = 0  # clock at the start
cycles: nl.u64 = 0

@probe(pos="kernel", level="warp", before=True)
def first():
    begin = nl.clock()

@probe(pos="kernel", level="warp")
def last():
    cycles = nl.clock() - begin
    sched.save(begin, cycles, nl.cuid())
"""

ACCESSES = """
from neutrino import probe, Map
import neutrino.language as nl
@Map(level="thread", type="array", size=16, cap="dynamic")
class Access:
    when: nl.u64
    address: nl.u64
origin: nl.u64 = 0
total: nl.u32
@probe(level="thread", pos="kernel", before=True)
def init():
    origin = nl.clock()
    total = 0
@probe(pos="ld.global:st.global:cp.async.cg", level="thread")
def access():
    total += nl.bytes
    Access.save(nl.clock() - origin, nl.addr)
"""

HEAD = """\
from gpuwatch import probe, Map
import gpuwatch.language as gl
a: gl.u64 = 0
b: gl.u32 = 0
@Map(level="warp", size=8)
class m:
    x: gl.u64
@probe(pos="kernel", level="warp")
def f():
"""


def body_of(statements: str) -> tuple[object, ...]:
    program = parse_python(HEAD + "".join(f"    {s}\n" for s in statements.split("\n")), "t.py")
    return program.probes[0].body


def value_of(expression: str) -> Expression:
    (action,) = body_of(f"a = {expression}")
    assert isinstance(action, Assign)
    return action.value


def test_scheduling_program_in_neutrinos_spelling() -> None:
    program = parse_python(NEUTRINO_STYLE, "folder/sched.py")
    verify(program)
    assert (program.name, program.form, program.callback) == ("sched", "python", "sched_report.py")
    (map_,) = program.maps
    assert (map_.name, map_.level, map_.type, map_.size, map_.cap) == (
        "sched", "warp", "array", 16, 1,
    )  # fmt: skip
    assert map_.fields == (Field("begin", "u64"), Field("cycles", "u32"), Field("unit", "u32"))
    assert program.registers == (ProbeRegister("begin", "u64"), ProbeRegister("cycles", "u64"))
    first, last = program.probes
    assert (first.name, first.position, first.level, first.before) == (
        "first", "kernel", "warp", True,
    )  # fmt: skip
    assert not last.before
    assign, save = last.body
    assert isinstance(assign, Assign) and isinstance(save, Save)
    assert assign.value == Binary("-", Helper("clock"), Read("begin"))
    assert save.values == (Read("begin"), Read("cycles"), Helper("cuid"))
    assert save.at is not None and (save.at.line, save.at.column) == (23, 5)


def test_text_copied_from_a_web_page_has_no_break_blanks() -> None:
    copied = NEUTRINO_STYLE.replace(" ", "\xa0")
    assert parse_python(copied, "s.py") == parse_python(NEUTRINO_STYLE, "s.py")


def test_accesses_program_in_neutrinos_spelling() -> None:
    program = parse_python(ACCESSES, "access.py")
    verify(program)
    assert program.maps[0].dynamic and program.maps[0].cap >= 1
    assert program.probes[1].position == "ld.global:st.global:cp.async.cg"
    added, _ = program.probes[1].body
    assert isinstance(added, Assign)
    assert added.value == Binary("+", Read("total"), Helper("bytes"))


@pytest.mark.parametrize(
    ("imports", "use"),
    [
        ("from gpuwatch import probe, Map\nimport gpuwatch.language as q", "q"),
        ("from gpuwatch import probe, Map, language", "language"),
        ("from neutrino import probe, Map\nimport neutrino.language", "neutrino.language"),
        ("from gpuwatch import probe as probe, Map, language as nl", "nl"),
    ],
)
def test_any_alias(imports: str, use: str) -> None:
    text = f'{imports}\nr: {use}.s32 = -5\n@probe(position="kernel", level="thread")\n'
    program = parse_python(text + f"def f():\n    r = {use}.laneid()\n", "t.py")
    assert program.registers == (ProbeRegister("r", "s32", -5),)
    assert program.probes[0].position == "kernel"


def test_title_is_the_docstrings_first_line_or_the_leading_comment() -> None:
    assert parse_python('"""One.\n\nTwo."""\n', "t.py").title == "One."
    assert parse_python("# A title\n# more\n", "t.py").title == "A title"
    assert parse_python("", "t.py").title == ""


def test_statements() -> None:
    assigned = body_of("a = b")[0]
    assert isinstance(assigned, Assign)
    assert (assigned.target, assigned.value) == ("a", Read("b"))
    augmented = body_of("a >>= 3")[0]
    assert isinstance(augmented, Assign)
    assert augmented.value == Binary(">>", Read("a"), Constant(3))
    (branch,) = body_of("if a < 1:\n    b = 1\nelif a == 2:\n    b = 2\nelse:\n    m.save(a)")
    assert isinstance(branch, If)
    assert branch.test == Binary("<", Read("a"), Constant(1))
    (nested,) = branch.otherwise
    assert isinstance(nested, If) and isinstance(nested.otherwise[0], Save)
    assert body_of("pass") == ()


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("not a and b or a", Binary("or", Binary("and", Unary("not", Read("a")), Read("b")),
                                    Read("a"))),
        ("gl.min(a, b, 3)", Helper("min", (Read("a"), Read("b"), Constant(3)))),
        ("max(a, gl.popc(b))", Helper("max", (Read("a"), Helper("popc", (Read("b"),))))),
        ("True", Constant(1)),
        ("gl.block_dim_x", Helper("block_dim_x")),
        ("a // 2", Binary("//", Read("a"), Constant(2))),
    ],
)  # fmt: skip
def test_expressions(text: str, tree: Expression) -> None:
    assert value_of(text) == tree


MISTAKES = [
    ("a = c", 5 + 4, "c is not declared"),
    ("c = 1", 5, "c is not declared"),
    ("a = b ** 2", 9, "operator"),
    ("a = 1 if b else 2", 9, "expression"),
    ("a = 0 < b < 3", 9, "two sides"),
    ("a = b in b", 9, "operator"),
    ("a = 1.5j", 9, "expression"),
    ("a = 'x'", 9, "expression"),
    ("a = gl.clock", 9, "clock is a call"),
    ("a = gl.addr()", 9, "not a call"),
    ("a = gl.clok()", 9, "no helper clok"),
    ("a = gl.clock(1)", 9, "arguments"),
    ("a = gl.min(a)", 9, "arguments"),
    ("a = open('x')", 9, "no helper open"),
    ("a = 18446744073709551616", 9, "64 bits"),
    ("a, b = 1, 2", 5, "register"),
    ("a = b = 1", 5, "statement"),
    ("while a: pass", 5, "statement"),
    ("for a in b: pass", 5, "statement"),
    ("return", 5, "statement"),
    ("import os", 5, "statement"),
    ("c: gl.u64 = 1", 5, "statement"),
    ("n.save(a)", 5, "no map n"),
    ("m.load(a)", 5, "no load"),
    ("m.save(x=a)", 12, "position"),
    ("print(a)", 5, "does nothing"),
    ("a", 5, "statement"),
    ("a = (", 9, "not Python"),
    ("a = a + (" + "-" * 200 + "a)", None, "nested too deeply"),
]


@pytest.mark.parametrize(("statement", "column", "message"), MISTAKES)
def test_mistakes_in_bodies_have_their_place(
    statement: str, column: int | None, message: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        body_of(statement)
    error = caught.value
    assert error.at is not None and error.hint
    assert error.at.file == "t.py" and error.at.text
    if column is not None:
        assert (error.at.line, error.at.column) == (10, column)


def test_columns_count_characters() -> None:
    with pytest.raises(UserError) as caught:
        body_of("'é'; a = c")
    assert caught.value.at is not None and caught.value.at.column == 14
    assert caught.value.render().splitlines()[2].index("^") == len("   10 | ") + 13


FILES = [
    ("import os", 1, "other modules"),
    ("from . import x", 1, "other modules"),
    ("x = 1", 1, "no type"),
    ("print('x')", 1, "not part of a probe file"),
    ("import gpuwatch.language as gl\nx: gl.u65 = 1", 2, "no type u65"),
    ("import gpuwatch.language as gl\nx: gl.u32 = 4294967296", 2, "does not fit"),
    ("import gpuwatch.language as gl\nx: gl.u32 = y", 2, "whole number"),
    ("import gpuwatch.language as gl\nx: gl.u32\nx: gl.u32", 3, "twice"),
    ("def f():\n    pass", 1, "decorator"),
    ("class f:\n    pass", 1, "decorator"),
    ("from gpuwatch import Map\n@Map(level='wrap')\nclass m:\n    pass", 2, "level"),
    ("from gpuwatch import Map\n@Map(size=8)\nclass m:\n    pass", 2, "level"),
    ("from gpuwatch import Map\n@Map(level='warp', kind=1)\nclass m:\n    pass", 2, "no argument"),
    ("from gpuwatch import Map\n@Map(level='warp', cap='x')\nclass m:\n    pass", 2, "cap"),
    ("from gpuwatch import Map\n@Map(level='warp')\nclass m:\n    x = 1", 4, "fields only"),
    ("from gpuwatch import probe\n@probe(level='warp')\ndef f():\n    pass", 2, "position"),
    ("from gpuwatch import probe\n@probe(pos='kernel')\ndef f():\n    pass", 2, "level"),
    ("from gpuwatch import probe\n@probe(pos='kernel', level='warp')\ndef f(x):\n    pass", 3,
     "no arguments"),
    ("from gpuwatch import probe\n@probe(pos='a', level='warp', before=1)\ndef f():\n    pass", 2,
     "True or False"),
    ("CALLBACK = 3", 1, "text"),
    ("x = \0", 1, "not Python"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "message"), FILES)
def test_mistakes_in_files_have_their_line(text: str, line: int, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        parse_python(text, "t.py")
    assert caught.value.at is not None and caught.value.at.line == line
    assert caught.value.hint


def test_a_probe_file_is_never_executed(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    effect = f"__import__('pathlib').Path({str(trace)!r}).touch()"
    for text in (
        effect,
        f"@{effect}\ndef f():\n    pass",
        f"x: {effect} = 0",
        f"x: int = {effect}",
        HEAD + f"    a = {effect}\n",
        NEUTRINO_STYLE + f"    {effect}\n",
    ):
        file = tmp_path / "effect.py"
        file.write_text(text)
        with pytest.raises(UserError):
            load(str(file))
    (tmp_path / "good.py").write_text(NEUTRINO_STYLE)
    assert load(str(tmp_path / "good.py")).name == "good"
    assert not trace.exists()


LEAVES = st.one_of(
    st.integers(0, 2**64 - 1).map(Constant),
    st.sampled_from(["a", "b"]).map(Read),
    st.sampled_from(["clock", "smid", "addr", "in1", "block_x"]).map(Helper),
)
OPERATORS = "+ - * // % & | ^ << >> == != < <= > >= and or".split()  # noqa: SIM905
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(Binary, st.sampled_from(OPERATORS), inner, inner),
        st.builds(Unary, st.sampled_from(["-", "~", "not"]), inner),
        st.builds(Helper, st.just("max"), st.tuples(inner, inner)),
    ),
    max_leaves=20,
)


def written(tree: Expression) -> str:
    match tree:
        case Constant(value):
            return str(value)
        case Read(register):
            return register
        case Binary(op, left, right):
            return f"({written(left)} {op} {written(right)})"
        case Unary(op, value):
            return f"({op} {written(value)})"
        case Helper(name, arguments):
            call = name in ("clock", "smid", "max")
            given = f"({', '.join(written(one) for one in arguments)})" if call else ""
            return f"gl.{name}{given}"


@given(TREES)
def test_written_expressions_read_back_as_the_same_tree(tree: Expression) -> None:
    assert value_of(written(tree)) == tree


WORDS = st.sampled_from(
    [*HEAD.split(), "\n", "\n    ", " ", "a", "=", "+", "if", ":", "(", ")", "m.save", "gl.clock()"]
)


@settings(max_examples=200)
@given(
    st.one_of(st.text(), st.lists(WORDS).map(" ".join), st.text().map(lambda t: HEAD + "    " + t))
)
def test_garbage_is_a_user_error(text: str) -> None:
    try:
        verify(parse_python(text, "t.py"))
    except UserError as error:
        assert error.render()


def test_long_sums_do_not_overflow_the_stack() -> None:
    with pytest.raises(UserError):
        value_of("+".join(["a"] * 20000))


def test_an_undeclared_register_of_a_file_without_registers_gets_one_whole_sentence() -> None:
    text = (
        "from gpuwatch import Map, probe\nimport gpuwatch.language as gl\n"
        "@probe(pos='kernel', level='thread')\ndef f():\n    x = 1\n"
    )
    with pytest.raises(UserError) as caught:
        parse_python(text, "t.py")
    assert caught.value.hint == "declare it at the top of the file (x: gl.u64 = 0)"
