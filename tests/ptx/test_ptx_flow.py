"""Basic blocks and liveness of small functions, and of random ones against a plain definition."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwatch.ptx import isa, parse
from gpuwatch.ptx.flow import Block, Code, basic_blocks, liveness
from gpuwatch.ptx.scopes import flatten

CORPUS = [
    path
    for path in sorted((Path(__file__).parent / "corpus").glob("*.ptx"))
    if path.stem != "spelled"
]
HEADER = ".version 8.5\n.target sm_86\n.address_size 64\n"


def code_of(body: str) -> Code:
    return Code.of(parse(f"{HEADER}.entry k()\n{{\n{body}\n}}\n").functions[0])


LOOP = """
    mov.u32 %r1, 0;
    mov.u32 %r2, %tid.x;
$top:
    add.u32 %r1, %r1, %r2;
    setp.lt.u32 %p1, %r1, 100;
    @%p1 bra $top;
    st.global.u32 [%rd1], %r1;
    ret;
"""


def test_loop() -> None:
    code = code_of(LOOP)
    blocks = basic_blocks(code)
    assert blocks == [Block(0, 2, (1,)), Block(2, 5, (1, 2)), Block(5, 7, (3,))]
    live = liveness(code, blocks)
    assert live.live_in(0) == {"%tid.x", "%rd1"}
    assert live.live_in(1) == {"%r1", "%r2", "%rd1"}
    assert live.live_in(2) == {"%r1", "%rd1"}


def test_only_the_registers_of_interest() -> None:
    code = code_of(LOOP)
    blocks = basic_blocks(code)
    assert liveness(code, blocks, {"%r2"}).live_in(1) == {"%r2"}


def test_a_guarded_write_keeps_the_old_value_alive() -> None:
    code = code_of("@%p1 mov.u32 %r1, 1;\nst.global.u32 [%rd1], %r1;\nret;")
    assert liveness(code, basic_blocks(code)).live_in(0) == {"%p1", "%r1", "%rd1"}


def test_cut_after_barriers() -> None:
    code = code_of("bar.sync 0;\nadd.u32 %r1, %r1, 1;\nret;")
    assert basic_blocks(code) == [Block(0, 3, (1,))]
    assert basic_blocks(code, {"bar"}) == [Block(0, 1, (1,)), Block(1, 3, (2,))]


def test_guarded_exit_and_fall_off_the_end() -> None:
    code = code_of("@%p1 exit;\nadd.u32 %r1, %r1, 1;\n$end:")
    assert basic_blocks(code) == [Block(0, 1, (2, 1)), Block(1, 2, (2,))]


UNWRITTEN = {("inline_asm", "_Z5timedPKiPx"): {"%r3"}}
"""%r3 is written under a guard and under its opposite."""


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_compilers_read_no_register_that_they_have_not_written(path: Path) -> None:
    for function in parse(path.read_text(), path.name).functions:
        code = flatten(function)
        blocks = basic_blocks(code)
        if blocks:
            live = liveness(code, blocks, set(code.registers)).live_in(0)
            assert live == UNWRITTEN.get((path.stem, function.name), set())


def test_branch_table() -> None:
    code = code_of(
        "brx.idx %r1, $list;\n$a:\nret;\n$b:\ntrap;\n$list: .branchtargets $a, /* $x */ $b, $a;"
    )
    assert basic_blocks(code)[0] == Block(0, 1, (1, 2))


def test_unknown_label() -> None:
    with pytest.raises(KeyError, match="nowhere"):
        basic_blocks(code_of("bra nowhere;"))


def test_no_instructions() -> None:
    assert basic_blocks(code_of("")) == []


REGISTERS = [f"%r{number}" for number in range(4)]
LABELS = [f"$L{number}" for number in range(3)]
STATEMENTS = st.one_of(
    st.builds(
        "add.s32 {}, {}, {};".format,
        *[st.sampled_from(REGISTERS)] * 3,
    ),
    st.builds(
        "@%p1 mov.u32 {}, {};".format, st.sampled_from(REGISTERS), st.sampled_from(REGISTERS)
    ),
    st.builds("@{}bra {};".format, st.sampled_from(["%p1 ", "!%p1 "]), st.sampled_from(LABELS)),
    st.builds("bra {};".format, st.sampled_from(LABELS)),
    st.just("@%p1 ret;"),
    st.just("exit;"),
)


@st.composite
def bodies(draw: st.DrawFn) -> str:
    lines = draw(st.lists(STATEMENTS, min_size=1, max_size=14))
    for label in LABELS:
        lines.insert(draw(st.integers(0, len(lines))), f"{label}:")
    return "\n".join(lines)


def live_by_definition(code: Code, index: int) -> set[str]:
    """Registers for which some path from `index` reads them before a sure write."""
    found = set()
    for register in REGISTERS:
        waiting, seen = [index], set()
        while waiting:
            at = waiting.pop()
            if at in seen or at >= len(code.instructions):
                continue
            seen.add(at)
            each = code.instructions[at]
            if register in isa.read(each):
                found.add(register)
                break
            if register in isa.written(each) and each.guard is None:
                continue
            if each.opcode == "bra":
                waiting.append(code.labels[isa.branch_targets(each)])
            if each.guard or each.opcode not in ("bra", "ret", "exit"):
                waiting.append(at + 1)
    return found


@settings(max_examples=150, deadline=None)
@given(bodies())
def test_liveness_is_what_its_definition_says(body: str) -> None:
    code = code_of(body)
    blocks = basic_blocks(code)
    assert [each.first for each in blocks[1:]] == [each.end for each in blocks[:-1]]
    live = liveness(code, blocks, set(REGISTERS))
    for number, block in enumerate(blocks):
        assert live.live_in(number) == live_by_definition(code, block.first)
