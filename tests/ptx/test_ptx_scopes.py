"""Names of inner scopes become unique; what they mean stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwatch.ptx import isa, parse
from gpuwatch.ptx.flow import Code, basic_blocks
from gpuwatch.ptx.model import Address, Register, Symbol, numbered
from gpuwatch.ptx.scopes import Flat, flatten

HEADER = ".version 8.5\n.target sm_86\n.address_size 64\n"
CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.ptx"))


def flat_of(body: str) -> Flat:
    return flatten(parse(f"{HEADER}.entry k()\n{{\n{body}\n}}\n").functions[0])


def test_own_level_stays() -> None:
    body = ".reg .b32 %r<4>, x;\n$a:\nadd.s32 %r1, x, %tid.x;\nbra $a;"
    flat = flat_of(body)
    assert flat.registers == {"%r1": "b32", "x": "b32"}
    assert flat.labels == {"$a": 0}
    assert flat.instructions[0].operands[1] == Register("x")


def test_shadowed_registers() -> None:
    flat = flat_of(
        """.reg .b32 %r<4>;
        add.s32 %r1, %r1, 1;
        {
        mov.b32 %r2, %r1;
        .reg .b64 %r<2>;
        mov.b64 %r1, 5;
        mov.b32 %r2, %r3;
        }
        add.s32 %r1, %r1, 2;"""
    )
    assert [isa.written(each) for each in flat.instructions] == [
        ("%r1",),
        ("%r2",),
        ("%r1@1",),
        ("%r2",),
        ("%r1",),
    ]
    assert flat.registers == {f"%r{k}": "b32" for k in (1, 2, 3)} | {"%r1@1": "b64"}


def test_labels_of_scopes_are_their_own() -> None:
    loop = "{\n.reg .pred p;\nagain:\nsetp.eq.u32 p, %r1, 0;\n@p bra done;\nbra again;\ndone:\n}\n"
    flat = flat_of(".reg .b32 %r<2>;\n" + loop + loop + "ret;")
    assert flat.labels == {"again@1": 0, "done@1": 3, "again@2": 3, "done@2": 6}
    assert [block.successors for block in basic_blocks(flat)] == [
        (2, 1),
        (0,),
        (4, 3),
        (2,),
        (5,),
    ]
    assert flat.registers["p@1"] == flat.registers["p@2"] == "pred"
    assert flat.instructions[1].guard is not None
    assert flat.instructions[1].guard.register == "p@1"


def test_call_sequences() -> None:
    sequence = """{{
        .param .{kind} param0;
        st.param.{kind} [param0], {source};
        .param .b32 retval0;
        call.uni (retval0), f, (param0);
        ld.param.b32 %r1, [retval0];
        }}
        """
    body = sequence.format(kind="b32", source="%r1") + sequence.format(kind="b64", source="%rd1")
    flat = flat_of(".reg .b32 %r<2>; .reg .b64 %rd<2>;\n" + body)
    assert [(variable.name, variable.type) for variable in flat.variables] == [
        ("param0@1", "b32"),
        ("retval0@1", "b32"),
        ("param0@2", "b64"),
        ("retval0@2", "b32"),
    ]
    assert flat.instructions[3].operands[0] == Address(Symbol("param0@2"))
    assert isa.called(flat.instructions[4]) == Symbol("f")


def test_a_variable_hides_a_register() -> None:
    flat = flat_of(".reg .b64 x;\n{\n.shared .b32 x;\nst.shared.b32 [x+4], 1;\n}\n")
    assert flat.instructions[0].operands[0] == Address(Symbol("x@1"), 4)
    assert flat.registers == {}


def test_addresses_keep_all_but_their_base() -> None:
    flat = flat_of(
        "{\n.reg .b64 a; .global .b32 v;\n"
        "ld.global.b32 %r1, [a+4].unified;\nld.global.b32 %r1, [v].unified;\n}"
    )
    assert [each.operands[1] for each in flat.instructions] == [
        Address(Register("a@1"), 4, unified=True),
        Address(Symbol("v@1"), unified=True),
    ]


def test_branch_lists() -> None:
    flat = flat_of(
        """{
        list: .branchtargets a, b;
        brx.idx %r1, list;
        a: b:
        ret;
        }"""
    )
    assert flat.targets == {"list@1": ("a@1", "b@1")}
    assert basic_blocks(flat)[0].successors == (1,)


def test_components() -> None:
    flat = flat_of("{\n.reg .v4 .f32 v;\nmov.f32 v.y, v.x;\nmov.u32 %r1, %tid.x;\n}")
    assert flat.instructions[0].operands == (Register("v@1.y"), Register("v@1.x"))
    assert flat.instructions[1].operands[1] == Register("%tid.x")
    assert isa.written(flat.instructions[0]) == ("v@1",)


def test_a_number_is_as_long_as_can_be() -> None:
    flat = flat_of(".reg .b64 %r1<5>;\n.reg .b32 %r<20>;\nmov.b32 %r12, 3;")
    assert flat.registers == {"%r12": "b32"}


@pytest.mark.parametrize(
    ("name", "read"),
    [("x110", ("x", 110)), ("x0", ("x", 0)), ("x02", ("", 0)), ("x", ("", 0)), ("7", ("", 0))],
)
def test_a_number_of_a_family(name: str, read: tuple[str, int]) -> None:
    assert numbered(name) == read


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_every_register_of_the_corpus_has_a_type(path: Path) -> None:
    for function in parse(path.read_text(), path.name).functions:
        flat = flatten(function)
        plain = Code.of(function)
        assert len(flat.instructions) == len(plain.instructions)
        written = {name for each in flat.instructions for name in isa.written(each)}
        assert written <= set(flat.registers)
        basic_blocks(flat)
