"""Woven texts, line by line: guards, copies of what is overwritten, initial values, notes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gpuwatch.instrument import weave
from gpuwatch.probe import load, parse_python
from gpuwatch.ptx import parse
from gpuwatch.toolchain import assemble, find

CHASE = """\
.version 8.0
.target sm_86
.address_size 64
.visible .entry k(.param .u64 p)
{
	.reg .pred %p<2>;
	.reg .b64 %d<3>;
	ld.param.u64 %d1, [p];
	setp.ne.u64 %p1, %d1, 0;
LOOP:
	@%p1 ld.global.u64 %d1, [%d1+8];
	setp.ne.u64 %p1, %d1, 0;
	@%p1 bra LOOP;
	ret;
}
"""
PROGRAM = """\
import gpuwatch.language as gl
from gpuwatch import probe

last: gl.u64 = 0
count: gl.u32 = 5


@probe(pos="ld.global", level="thread", before=True)
def load():
    count = count + 1


@probe(pos="ld.global", level="thread")
def loaded():
    last = gl.addr + gl.out


@probe(pos="bra", level="thread")
def passed():
    count = count * 2


@probe(pos="label:LOOP", level="thread")
def turn():
    count = count - 1
"""
WOVEN = """\
.version 8.0
.target sm_86
.address_size 64
.visible .entry k(.param .u64 p)
{
	.reg .pred %p<2>;
	.reg .b64 %d<3>;
+	.reg .b64 	%gpw_last;
+	.reg .b32 	%gpw_count;
+	.reg .b64 	%gpwd<2>;
+	mov.u32 	%gpw_count, 5;
	ld.param.u64 %d1, [p];
	setp.ne.u64 %p1, %d1, 0;
LOOP:
+	@!%p1 bra 	$gpw_1;
+	add.u32 	%gpw_count, %gpw_count, 1;
+$gpw_1:
+	sub.u32 	%gpw_count, %gpw_count, 1;
+	mov.b64 	%gpwd0, %d1;
	@%p1 ld.global.u64 %d1, [%d1+8];
+	@!%p1 bra 	$gpw_2;
+	add.s64 	%gpwd1, %gpwd0, 8;
+	add.u64 	%gpw_last, %gpwd1, %d1;
+$gpw_2:
	setp.ne.u64 %p1, %d1, 0;
	@%p1 bra LOOP;
+	mul.lo.u32 	%gpw_count, %gpw_count, 2;
	ret;
}
"""


def marked(text: str, added: tuple[int, ...]) -> str:
    lines = enumerate(text.split("\n"), 1)
    return "\n".join("+" * (number in added) + line for number, line in lines)


def test_what_is_woven_in() -> None:
    """`last` is only ever written, so it needs no initial value; the label's probe runs in every
    lane, the load's where its guard holds, the branch's where it is not taken."""
    woven = weave(parse(CHASE), "k", parse_python(PROGRAM, "chase.py"))
    assert marked(woven.text, woven.inserted_lines) == WOVEN
    assert woven.notes == ()
    assemble(find(), woven.text, "sm_86", "k")


def test_registers_written_at_instructions_only_begin_with_their_initial_value() -> None:
    text = PROGRAM.replace("from gpuwatch import probe", "from gpuwatch import Map, probe") + (
        '\n\n@Map(level="thread", type="array", size=8, cap=1)\nclass ends:\n    last: gl.u64\n'
        '\n\n@probe(pos="kernel", level="thread")\ndef leave():\n    ends.save(last)\n'
    )
    woven = weave(parse(CHASE), "k", parse_python(text, "chase.py"))
    assert "+\tmov.u64 \t%gpw_last, 0;" in marked(woven.text, woven.inserted_lines)


def test_warp_registers_of_lanes_that_part_are_noted() -> None:
    text = (
        PROGRAM.replace('level="thread"', 'level="warp"').replace(
            "from gpuwatch import probe", "from gpuwatch import Map, probe"
        )
        + '\n\n@Map(level="warp", type="array", size=8, cap=1)\nclass ends:\n    count: gl.u32\n'
        '\n\n@probe(pos="kernel", level="warp")\ndef leave():\n    ends.save(count)\n'
    )
    (note,) = weave(parse(CHASE), "k", parse_python(text, "chase.py")).notes
    assert "each lane has its own count" in note


def test_accesses_without_a_state_space_are_noted() -> None:
    text = CHASE.replace("LOOP:", "LOOP: ld.u64 %d2, [%d1]; ld.local.u64 %d2, [%d1];")
    (note,) = weave(parse(text), "k", parse_python(PROGRAM, "chase.py")).notes
    assert note.startswith("ld.u64: no state space is named")
    everywhere = PROGRAM.replace('"ld.global"', '"ld"').replace("gl.addr + gl.out", "1")
    assert weave(parse(text), "k", parse_python(everywhere, "chase.py")).notes == ()


def test_comments_and_crowded_lines_stay_whole() -> None:
    text = CHASE.replace(
        "\t@%p1 ld.global.u64 %d1, [%d1+8];\n",
        "\t@%p1 ld.global.u64 %d1, [%d1+8]; // é\r\n\t/* a */ ld.global.u64 %d2, [%d1]; mov.u64 "
        "%d2, %d1;\n",
    ).removesuffix("\n")
    woven = weave(parse(text), "k", parse_python(PROGRAM, "chase.py"))
    kept = [
        line
        for number, line in enumerate(woven.text.split("\n"), 1)
        if number not in woven.inserted_lines
    ]
    assert "".join(kept) == text.replace("\n", "")
    assemble(find(), woven.text, "sm_86", "k")


def test_sites_of_inlined_code_have_the_line_that_it_was_inlined_into() -> None:
    """A load inlined from a header, by way of another; one of no line of the kernel's file."""
    text = CHASE.replace(".visible", '.file 1 "k.cu"\n.file 2 "k.h"\n.visible').replace(
        "LOOP:",
        "\t.loc 1 7 3\n\t.loc 2 20 1, function_name $L__s0, inlined_at 1 7 3\n"
        "\t.loc 2 40 1, function_name $L__s1, inlined_at 2 20 1\n\tld.global.u64 %d2, [%d1];\n"
        "\t.loc 2 60 1\n\tld.global.u64 %d2, [%d1];\nLOOP:\n\t.loc 1 8 1\n",
    )
    program = parse_python(PROGRAM, "chase.py")
    sites = [site for site in weave(parse(text), "k", program).sites if site.probe == "load"]
    assert [(site.source_line, site.source_file) for site in sites] == [
        (7, ""),
        (60, "k.h"),
        (8, ""),
    ]
    by_line = parse_python(PROGRAM.replace('"ld.global"', '"line:7"', 1), "chase.py")
    assert sum(site.probe == "load" for site in weave(parse(text), "k", by_line).sites) == 1


SAMPLED = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe


@Map(level="thread", type="array", size=8, cap=1)
class ends:
    begun: gl.u64


begun: gl.u64 = 0


@probe(pos="kernel", level="thread", before=True, sample=4)
def enter():
    begun = gl.clock()


@probe(pos="kernel", level="thread"{sample})
def leave():
    ends.save(begun)
"""


def test_what_is_written_for_a_sample_is_initialised_for_the_rest() -> None:
    """Before the clock is read: the initial value must not overwrite it."""
    for sample, needed in (("", True), (", sample=4", False), (", sample=8", True)):
        text = SAMPLED.format(sample=sample)
        lines = weave(parse(CHASE), "k", parse_python(text, "s.py")).text.splitlines()
        initial = [n for n, line in enumerate(lines) if line == "\tmov.u64 \t%gpw_begun, 0;"]
        clock = next(n for n, line in enumerate(lines) if "%gpw_begun, %clock64" in line)
        assert bool(initial) is needed
        assert all(number < clock for number in initial)


LOOP = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n)
{
.reg .b64 %d<4>; .reg .b32 %r<9>; .reg .pred %p<3>;
ld.param.u64 %d1, [out]; ld.param.u32 %r2, [n];
mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 4; add.s64 %d3, %d1, %d2; mov.u32 %r3, 0;
L: ld.global.u32 %r4, [%d3]; st.global.u32 [%d3], %r4;
add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r2; @%p1 bra L;
ret;
}
"""
BACK = LOOP.replace("L:", "setp.lt.u32 %p2, %r1, 5; @%p2 bra H; ret;\nL:").replace(
    "}", "H: mov.u32 %r3, 1; bra.uni L;\n}"
)
"""The lanes of the loop part from others behind it in the text."""
OTHER_PROCESS = """\
import sys
from gpuwatch.instrument import weave
from gpuwatch.probe import load
from gpuwatch.ptx import parse
print(weave(parse(sys.stdin.read()), "k", load("gmem_traffic"), ((2, 1, 1), (64, 1, 1))).text)
"""


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("text", [LOOP, BACK], ids=["loop", "back"])
def test_the_text_is_the_same_in_every_process(text: str, seed: int) -> None:
    command = [sys.executable, "-c", OTHER_PROCESS]
    environment = os.environ | {"PYTHONHASHSEED": str(seed)}
    done = subprocess.run(
        command, input=text, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    here = weave(parse(text), "k", load("gmem_traffic"), ((2, 1, 1), (64, 1, 1)))
    assert done.stdout == f"{here.text}\n"
