"""Bodies and operands are read on first use, and found without being read."""

from __future__ import annotations

import gc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpuwatch.errors import UserError
from gpuwatch.ptx import check, parse, unparse
from gpuwatch.ptx.collector import collector_paused
from gpuwatch.ptx.lexer import closing_brace
from gpuwatch.ptx.model import Instruction

HEADER = ".version 8.5\n.target sm_80\n.address_size 64\n"


def test_a_fault_in_a_body_shows_when_it_is_read() -> None:
    module = parse(HEADER + ".func bad { add ; ] }\n.entry good { ret; }\n.func far;")
    bad, good, far = module.functions
    assert (bad.has_body, good.has_body, far.has_body) == (True, True, False)
    assert far.body is None
    assert [type(each) for each in good.body or ()] == [Instruction]
    for _ in range(2):
        with pytest.raises(UserError, match="found ']'"):
            _ = bad.body
    with pytest.raises(UserError, match="found ']'"):
        check(module)
    with pytest.raises(UserError, match="found ']'"):
        unparse(module)


def test_a_fault_in_operands_shows_when_they_are_read() -> None:
    module = parse(HEADER + ".entry k {\n\tret;\n\tadd.s32 %r1, ,;\n}")
    body = module.functions[0].body or []
    add = body[1]
    assert isinstance(add, Instruction)
    assert add.tokens == ("add", "s32")
    for _ in range(2):
        with pytest.raises(UserError, match="expected an operand") as caught:
            _ = add.operands
        assert caught.value.at is not None
        assert (caught.value.at.line, caught.value.at.column) == (6, 15)
    assert unparse(module) == module.text


def test_reading_is_done_once() -> None:
    module = parse(HEADER + ".entry k { add.s32 %r1, %r2, 3; }")
    body = module.functions[0].body
    assert module.functions[0].body is body
    (add,) = body or []
    assert isinstance(add, Instruction)
    assert add.operands is add.operands


def test_names_mean_what_they_mean_at_their_place() -> None:
    """Operands are read after the whole body was, and still by the declarations around them."""
    text = "mov.u64 %rd1, t; { .reg .u64 t; mov.u64 %rd1, t; } mov.u64 %rd1, t;"
    module = parse(f"{HEADER}.global .b32 t;\n.entry k {{ .reg .u64 %rd<2>; {text} }}")
    moves = [each for each in module.functions[0].body or () if isinstance(each, Instruction)]
    kinds = [type(move.operands[1]).__name__ for move in reversed(moves)]
    assert kinds == ["Symbol", "Register", "Symbol"]


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_left_as_it_was(enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with pytest.raises(KeyError), collector_paused():
            assert not gc.isenabled()
            raise KeyError
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


BRACES = {
    "}": 0,
    "{}}": 2,
    "{{}{}}}": 6,
    "// }\n}": 5,
    "/* } { { */}": 11,
    '"}" }': 4,
    '"\\"}" }': 6,
    "{ // {\n} }": 9,
    "/* // */ }": 9,
    '// "\n} "': 5,
    "/ }": 2,
    "{": -1,
    "// }": -1,
    "": -1,
}


@pytest.mark.parametrize(("text", "end"), BRACES.items(), ids=lambda each: repr(each))
def test_closing_braces(text: str, end: int) -> None:
    assert closing_brace(text, 0) == end


def closing_by_characters(text: str) -> int:
    """One character after the other."""
    depth, at = 1, 0
    while at < len(text):
        if text.startswith("//", at):
            at = text.find("\n", at) if "\n" in text[at:] else len(text)
            continue
        if text.startswith("/*", at) and "*/" in text[at + 2 :]:
            at = text.find("*/", at + 2) + 2
            continue
        if text[at] == '"' and '"' in text[at + 1 :].partition("\n")[0]:
            at = text.find('"', at + 1) + 1
            continue
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at
        at += 1
    return -1


@settings(max_examples=300, deadline=None)
@given(st.text('{}/*"\n a', max_size=24))
@example('"{\n}')
@example("/*}")
def test_closing_braces_of_any_text(text: str) -> None:
    assert closing_brace(text, 0) == closing_by_characters(text)
