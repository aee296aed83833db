"""PTX modules joined into one."""

from __future__ import annotations

import pytest

from gpuwatch.errors import UserError
from gpuwatch.launch.merge import merge
from gpuwatch.ptx import parse
from gpuwatch.toolchain import assemble, find

FIRST = """\
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) far (.param .b32 x);
.extern .global .align 4 .u32 step;
.extern .shared .align 16 .b8 dynamic[];
.global .align 1 .b8 $str[3] = {104, 105, 0};
.weak .func shared_one() { ret; }
.visible .entry first() {
	.reg .b64 %rd<2>;
	.loc 1 7 3
	.loc 1 9 0, function_name $L__info_string0, inlined_at 1 7 3
	mov.u64 %rd1, $str;
	call.uni shared_one;
	ret;
}
	.file 1 "/a/first.cu"
	.section .debug_str
	{
$L__info_string0:
.b8 102
.b8 0
	}
"""
SECOND = (
    FIRST.replace("first", "second")
    .replace("8.0", "8.3")
    .replace("sm_80", "sm_86")
    .replace(".extern .global .align 4 .u32 step;", ".visible .global .align 4 .u32 step = 5;")
    .replace(
        ".extern .func (.param .b32 r) far (.param .b32 x);",
        ".visible .func (.param .b32 r) far (.param .b32 x) { st.param.b32 [r], 1; ret; }",
    )
)


def test_declarations_meet_definitions_and_private_names_stay_apart() -> None:
    text = merge([FIRST, SECOND], ["first.ptx", "second.ptx"])
    module = parse(text, "merged.ptx")
    assert (module.version, module.target) == ("8.3", "sm_86")
    assert [entry.name for entry in module.entries()] == ["first", "second"]
    assert module.files == {1: "/a/first.cu", 2: "/a/second.cu"}
    assert sorted(one.name for one in module.variables) == ["$str", "$str__1", "dynamic", "step"]
    assert sum(one.name == "shared_one" for one in module.functions) == 1
    assert ".loc 2 9 0, function_name $L__info_string0_1, inlined_at 2 7 3" in text
    assert "mov.u64 %rd1, $str__1;" in text
    assert assemble(find(), text, "sm_86", "second").registers > 0


def test_variables_that_one_statement_declares_stay_apart() -> None:
    declared = (
        ".visible .global .align 4 .u32 a = 5, /* two */ b[2] = {6, 7}, c;\n.global .u32 d;\n"
        ".const .v2 .f32 e, f;\n.global .attribute(.managed) .u32 g, h;\n"
    )
    second = SECOND.replace(".global .align 1 .b8 $str", declared + ".global .align 1 .b8 $str")
    text = merge([FIRST, second], ["first.ptx", "second.ptx"])
    found = {one.name: one for one in parse(text, "merged.ptx").variables}
    assert [(one.linkage, one.align, one.count) for one in map(found.get, "abcd") if one] == [
        ("visible", 4, 1),
        ("visible", 4, 2),
        ("visible", 4, 1),
        ("", 4, 1),
    ]
    assert [found[name].space for name in "efgh"] == ["const", "const", "global", "global"]
    assert (found["a"].initial, found["b"].initial) == ("5", "{6, 7}")
    assert assemble(find(), text, "sm_86", "second").registers > 0


def test_one_module_stays_as_it_is() -> None:
    assert merge([FIRST], ["first.ptx"]) is FIRST


def test_two_visible_definitions_are_refused() -> None:
    with pytest.raises(UserError, match=r"b\.ptx and c\.ptx both define far"):
        merge([FIRST, SECOND, SECOND], ["a.ptx", "b.ptx", "c.ptx"])
