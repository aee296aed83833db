"""What positions match, what is said where they match nothing, and where code goes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weave_programs import counting, recording
from weaving import HEADER, kernel

from gpuwatch.errors import UserError
from gpuwatch.instrument import weave
from gpuwatch.instrument.model import Woven
from gpuwatch.instrument.positions import Matches
from gpuwatch.probe import parse_python
from gpuwatch.ptx import parse
from gpuwatch.toolchain import assemble, find

MATCHING = {
    "ld.global": (
        "ld.global.f32", "ld.volatile.global.u32", "ld.global.nc.v4.f32",
        "ld.relaxed.gpu.global.b32", "ld.global.nc.L1::no_allocate.L2::128B.v2.u64",
    ),
    "ld.shared": ("ld.shared.f32", "ld.shared::cta.v2.u32", "ld.volatile.shared::cluster.b32"),
    "ld.shared::cta": ("ld.shared::cta.u32",),
    "ld.global:st.global": ("ld.global.u8", "st.global.v4.f32", "st.release.sys.global.u32"),
    "atom": ("atom.global.add.u32", "atom.shared.cas.b64", "atom.add.noftz.f16x2"),
    "bar.sync": ("bar.sync", "bar.warp.sync"),
    "wgmma": ("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", "wgmma.fence.sync.aligned"),
    "cp.async": (
        "cp.async.ca.shared.global", "cp.async.cg.shared::cta.global.L2::cache_hint",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
    ),
    "cp.async.commit_group": ("cp.async.commit_group",),
    "mul.s32": ("mul.lo.s32", "mul.wide.s32"),
}  # fmt: skip
OTHERS = {
    "ld.global": ("ld.shared.f32", "ld.f32", "ldu.global.f32", "st.global.f32"),
    "ld.shared::cta": ("ld.shared.u32", "ld.shared::cluster.u32"),
    "ld.glob": ("ld.global.f32",),
    "bar.sync": ("bar.red.popc.u32", "barrier.sync"),
    "cp.async": ("cp.async.commit_group", "cp.async.wait_group", "cp.async.bulk.commit_group",
                 "cp.async.mbarrier.arrive.noinc.shared.b64"),
    "mul.s32.lo": ("mul.lo.s32",),
    "global.ld": ("ld.global.f32",),
}  # fmt: skip


@pytest.mark.parametrize(
    ("position", "opcode", "matched"),
    [(position, opcode, matched) for table, matched in ((MATCHING, True), (OTHERS, False))
     for position, opcodes in table.items() for opcode in opcodes],
)  # fmt: skip
def test_positions_match_tokens(position: str, opcode: str, matched: bool) -> None:
    assert Matches(position)[tuple(opcode.split("."))] is matched


@given(st.data())
def test_tokens_left_out_still_match(data: st.DataObject) -> None:
    token = st.from_regex(r"[a-z]\w{0,3}", fullmatch=True)
    tokens = data.draw(st.lists(token, min_size=1, max_size=6))
    kept = data.draw(st.lists(st.booleans(), min_size=len(tokens) - 1, max_size=len(tokens) - 1))
    wanted = [tokens[0], *(one for one, keep in zip(tokens[1:], kept, strict=True) if keep)]
    assert Matches(".".join(wanted))[tuple(tokens)]
    assert not Matches(".".join([*wanted, "none_such"]))[tuple(tokens)]


BODY = kernel(
    "\t.loc 1 4 1\n\t.reg .pred %p<3>; .reg .b32 %r<4>;\n"
    "\tld.volatile.global.u32 %r1, [%a1];\n"
    "\tsetp.eq.u32 %p1, %r1, 3;\n"
    "\t.loc 1 5 1\n"
    "$L__BB0_1: @%p1 bra $L__BB0_3;\n"
    "\tst.global.u32 [%a1], %r1; st.global.u32 [%a1+4], %r1; // both\n"
    '$L__BB0_3:\n\t.pragma "nounroll";\n\t.loc 1 6 1\n'
    "\tadd.u32 %r1, %r1, 1;\n"
    "\tret;\n"
).replace(".visible .entry", '.file 1 "k.cu"\n.visible .entry')


def lines_of(woven: Woven) -> list[str]:
    """The text, woven lines marked with a plus."""
    added = set(woven.inserted_lines)
    return [
        f"{'+' if number in added else ' '}{line.strip()}"
        for number, line in enumerate(woven.text.split("\n"), 1)
    ]


@pytest.mark.parametrize(
    ("position", "before", "neighbours"),
    [
        ("st.global", True, ["$L__BB0_3;", "st.global.u32 [%a1+4], %r1; // both"]),
        ("$L__BB0_3", True, [".loc 1 6 1"]),
        ("label:$L__BB0_1", True, ["$L__BB0_1:"]),
        ("line:4", True, [".reg .pred %p<3>; .reg .b32 %r<4>;"]),
        ("line:5", True, ["$L__BB0_1:"]),
    ],
)
def test_code_goes_behind_labels_and_their_directives(
    position: str, before: bool, neighbours: list[str]
) -> None:
    woven = weave(parse(BODY), "k", counting(position, before))
    shown = lines_of(woven)
    update = next(
        number for number, line in enumerate(shown) if line.startswith("+add.u32 \t%gpw_number")
    )
    above = next(line for line in reversed(shown[:update]) if line.startswith(" ") and line[1:])
    assert above[1:].endswith(neighbours[0]) or above[1:] in neighbours


def test_what_is_not_inserted_is_the_kernel_as_it_was() -> None:
    for position in ("st.global", "line:5", "label:$L__BB0_3"):
        for before in (True, False):
            woven = weave(parse(BODY), "k", counting(position, before))
            added = set(woven.inserted_lines)
            kept = [
                line for number, line in enumerate(woven.text.split("\n"), 1) if number not in added
            ]
            assert "".join(kept) == BODY.replace("\n", "")
            assemble(find(), woven.text, "sm_86", "k")


def test_sites_say_where_they_are() -> None:
    woven = weave(parse(BODY), "k", counting("st.global"))
    sites = [site for site in woven.sites if site.probe == "at"]
    line = BODY[: BODY.index("st.global")].count("\n") + 1
    assert [(site.opcode, site.ptx_line, site.source_line, site.before) for site in sites] == [
        ("st.global.u32", line, 5, True)
    ] * 2
    assert [site.index for site in woven.sites] == list(range(len(woven.sites)))


@pytest.mark.parametrize(
    ("position", "message", "hint"),
    [
        ("ld.gobal", "position ld.gobal matches nothing", "ld.volatile.global.u32 (1)"),
        ("line:77", "position line:77 matches nothing", "lines 4, 5, 6"),
        ("$L__BB0_2", "position $L__BB0_2 matches nothing", "$L__BB0_3"),
        ("label:DONE", "position label:DONE matches nothing", "$L__BB0_1"),
        ("tcgen05", "matches nothing in k", "mov.u32"),
    ],
)
def test_a_position_that_matches_nothing(position: str, message: str, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        weave(parse(BODY), "k", counting(position))
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("position", "before", "value", "message"),
    [
        ("ret", False, "1", "no thread comes by behind ret"),
        ("ld.global", True, "gl.out", "it has not run yet"),
        ("st.global", False, "gl.out", "it writes no register"),
        ("st.global", False, "gl.in2", "it has 1 values to read"),
        ("setp", True, "gl.bytes", "it accesses no memory"),
        ("ld.param", True, "gl.addr", "parameters have no address"),
        ("line:5", True, "gl.bytes", "bytes cannot be used at position line:5"),
        ("bra", True, "gl.in1", "is no value"),
    ],
)
def test_helpers_that_a_place_cannot_give(
    position: str, before: bool, value: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        weave(parse(BODY), "k", counting(position, before, value))


def test_results_that_are_dropped() -> None:
    text = kernel("\tatom.global.add.u32 _, [%a1], 7;\n\tret;\n")
    program = recording("atom", {"value": ("u32", "gl.in1"), "more": ("u32", "1")})
    assemble(find(), weave(parse(text), "k", program).text, "sm_86", "k")
    with pytest.raises(UserError, match="it drops its result"):
        weave(parse(text), "k", counting("atom", False, "gl.out"))


def test_shadowed_registers_have_their_own_type() -> None:
    text = kernel(
        "\t.reg .b32 %x<3>; mov.u32 %x1, 5;\n"
        "\t{ .reg .b64 %x1; mov.u64 %x1, 7; st.local.u64 [%a1], %x1; }\n"
        "\tst.local.u32 [%a1], %x1;\n\tret;\n"
    )
    program = recording("st.local", {"value": ("u64", "gl.in1"), "more": ("u64", "1")})
    woven = weave(parse(text), "k", program)
    assemble(find(), woven.text, "sm_86", "k")
    assert "cvt.u64.u32" in woven.text.split("st.local.u64 [%a1], %x1; }")[1].split("st.local")[0]


COPIES = (
    HEADER.replace("8.0", "8.7").replace("sm_86", "sm_90a")
    + """\
.visible .entry k(.param .u64 out)
{
	.reg .b64 %d<6>; .reg .b32 %r<6>; .reg .pred %p<3>; .shared .align 128 .b8 box[4096];
	ld.param.u64 %d1, [out]; mov.u32 %r1, box; mov.u32 %r2, 8; mov.u32 %r3, 256;
	setp.eq.u32 %p1, %r2, 9;
	cp.async.ca.shared.global [%r1], [%d1+4], 4;
	cp.async.cg.shared.global [%r1+16], [%d1+32], 16, %r2;
	cp.async.ca.shared.global [%r1+48], [%d1+64], 8, 4;
	cp.async.ca.shared.global [%r1+64], [%d1+64], 8, %p1;
	cp.async.commit_group;
	cp.async.wait_all;
	cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1], %r3;
	cp.async.bulk.commit_group;
	cp.async.bulk.wait_group 0;
	ret;
}
"""
)


def test_asynchronous_copies() -> None:
    program = recording("cp.async", {"addr": ("u64", "gl.addr"), "size": ("u32", "gl.bytes")})
    woven = weave(parse(COPIES), "k", program)
    assert len(woven.sites) == 5
    assemble(find(), woven.text, "sm_90a", "k")


@pytest.mark.parametrize(("position", "bits"), [("cp.async:ld.global", 64), ("cp.async.ca", 32)])
def test_sums_of_bytes_have_room_for_bulk_copies(position: str, bits: int) -> None:
    text = SUMMING.format(level="kernel", position=position)
    woven = weave(parse(COPIES), "k", parse_python(text, "sums.py")).text
    assert f".reg .b{bits} \t%gpwg0;" in woven


@pytest.mark.parametrize(
    ("position", "together"), [("cp.async.bulk", False), ("cp.async.ca", True)]
)
def test_lanes_do_not_sum_up_the_bytes_of_a_bulk_copy(position: str, together: bool) -> None:
    text = SUMMING.format(level="site", position=position)
    woven = weave(parse(COPIES), "k", parse_python(text, "sums.py")).text
    assert ("redux.sync" in woven) == together


SUMMING = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe


@Map(level="{level}", type="reduce")
class sums:
    moved: gl.u64 = sum


@probe(pos="{position}", level="thread", before=True)
def copy():
    sums.save(gl.bytes)
"""
COMPILED = sorted(Path(__file__).parents[1].glob("ptx/corpus/*.ptx"))
UNLINKED = {"separate"}
"""Modules that call functions of others, which ptxas alone makes no kernel of."""


@pytest.mark.parametrize(
    "path", [each for each in COMPILED if each.stem not in UNLINKED], ids=lambda path: path.stem
)
@pytest.mark.parametrize("position", ["ld:st:atom:red", "setp:mov:add:mul", "call:bra:ret:bar"])
def test_compiled_kernels_assemble(path: Path, position: str) -> None:
    """Probes in front of and behind every instruction of a kind."""
    module = parse(path.read_text(), path.name)
    program = parse_python(
        EVERYWHERE.format(position=position, value="gl.bytes" if position[:2] == "ld" else "1"),
        "everywhere.py",
    )
    found = 0
    for entry in module.entries():
        try:
            woven = weave(module, entry.name, program)
        except UserError as error:
            assert "matches nothing" in error.message or "no thread" in error.message
            continue
        assemble(find(), woven.text, module.target, entry.name)
        found += len(woven.sites)
    assert found or position == "call:bra:ret:bar"


EVERYWHERE = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe


@Map(level="warp", type="array", size=24, cap=4)
class seen:
    time: gl.u64
    value: gl.u64
    site: gl.u32
    lanes: gl.u32


start: gl.u64 = 0


@probe(pos="{position}", level="warp", before=True)
def enter():
    start = gl.clock()


@probe(pos="{position}", level="warp")
def leave():
    seen.save(gl.clock() - start, {value}, gl.site, gl.active)
"""
