"""Whole tools of the kinds that people write, in both spellings, with exact answers."""

from __future__ import annotations

import numpy as np
import pytest
from weaving import Probed, kernel, run

from gpuwatch.errors import UserError
from gpuwatch.instrument import weave
from gpuwatch.probe import load, parse_python, parse_toml, verify
from gpuwatch.probe.model import Program
from gpuwatch.ptx import parse

LOADS = kernel("""\
	.reg .b32 %v<6>; .reg .b64 %w<3>; .reg .pred %p<3>;
	mov.u32 %v1, 0; and.b32 %v2, %i1, 3;
$AGAIN:
	ld.global.u32 %v3, [%a1+0];
	ld.global.v2.u32 {%v3, %v4}, [%w1];
	add.u32 %v1, %v1, 1;
	setp.le.u32 %p1, %v1, %v2;
	@%p1 bra $AGAIN;
	st.global.u32 [%a1], %v1;
	ret;
""").replace("\tmov.u32 %v1, 0;", "\tld.param.u64 %w1, [out]; mov.u32 %v1, 0;")
"""Each thread loads 1 to 4 times 4 and 8 bytes."""
GRID, BLOCK = (2, 1, 1), (50, 1, 1)
THREADS = np.arange(100)
ROUNDS = THREADS % 50 % 4 + 1

COUNTERS = """\
from neutrino import probe, Map
import neutrino.language as nl

CALLBACK = "moved_report.py"

@Map(level="thread", type="array", size=8, cap=1)
class Moved:
    loaded: nl.u32
    copied: nl.u32

loaded:  nl.u64 = 0
copied: nl.u64 = 0

@probe(level="thread", pos="kernel", before=True)
def init():
    loaded = 0
    copied = 0

@probe(level="thread", pos="ld.global:st.global")
def direct():
    loaded += nl.bytes

@probe(level="thread", pos="cp.async.ca:cp.async.cg")
def copies():
    copied += nl.bytes

@probe(level="thread", pos="kernel")
def save():
    Moved.save(loaded, copied)
"""

ACCESSES = """\
from neutrino import probe, Map
import neutrino.language as nl

@Map(level="{level}", type="array", size=16, cap="dynamic")
class Seen:
    when: nl.u64
    where: nl.u64

origin: nl.u64 = 0
passed: nl.u64 = 0

@probe(pos="kernel", level="{level}", before=True)
def begin():
    origin = nl.clock()

@probe(pos="ld.global", level="{level}")
def access():
    passed = nl.clock() - origin
    Seen.save(passed, nl.addr)
"""

BRANCHES = """\
from neutrino import probe, Map
import neutrino.language as nl
@Map(level="thread", type="array", size=8, cap=128)
class Taken:
    when: nl.u64
@probe(level="thread", pos="bra", before=True)
def taken():
    Taken.save(nl.clock())
"""

README_SPELLINGS = '''\
register = 3
callback = "report.py"
[probe.opened]
position = "kernel"
level = "warp"
before = "mov.u64 %NR0, %clock64;"
after = """mov.u64 %NR1, %clock64;
sub.u64 %NR1, %NR1, %NR0;
SAVE [ spans ] { %NR0, %NR1 }"""
[probe.sum]
position = "ld.global:st.global"
level = "thread"
before = "add.u64 %NR2, %NR2, BYTES;"
[probe.total]
position = "kernel"
level = "thread"
after = "SAVE [totals] {%NR2};"
[map.spans]
level = "warp"
type = "array"
size = "16"
cap = "1"
[map.spans.regs]
start = ["u64", "None"]
elapsed = ["u64", "None",]
[map.totals]
level = "thread"
size = "8"
cap = "1"
regs = { bytes = "u64" }
'''


def observed(program: Program) -> Probed:
    verify(program)
    probed = run(LOADS, program, GRID, BLOCK)
    assert np.array_equal(probed.plain, probed.output)
    return probed


def test_counters_begin_at_zero_and_what_matches_nothing_is_told() -> None:
    probed = observed(parse_python(COUNTERS, "moved.py"))
    moved = probed.maps["Moved"]
    assert moved.column("loaded").tolist() == (12 * ROUNDS + 4).tolist()
    assert not moved.column("copied").any()
    (note,) = [note for note in probed.woven.notes if "copies" in note]
    assert "cp.async.ca:cp.async.cg matches nothing" in note


def test_a_program_that_attaches_nowhere_is_refused() -> None:
    text = COUNTERS.replace('pos="ld.global:st.global"', 'pos="ld.local"')
    with pytest.raises(UserError, match=r"ld\.local matches nothing") as caught:
        weave(parse(LOADS), "k", parse_python(text, "moved.py"))
    assert caught.value.hint


def test_every_access_with_its_address_and_offset() -> None:
    seen = observed(parse_python(ACCESSES.format(level="thread"), "seen.py")).maps["Seen"]
    assert seen.dropped == 0
    assert np.bincount(seen.slots).tolist() == (2 * ROUNDS).tolist()
    own, shared = seen.column("where")[0::2], seen.column("where")[1::2]
    assert len(np.unique(shared)) == 1
    assert np.array_equal(own - shared, np.repeat(THREADS, ROUNDS).astype(np.uint64) * 4)


def test_warp_level_dynamic_maps() -> None:
    seen = observed(parse_python(ACCESSES.format(level="warp"), "seen.py")).maps["Seen"]
    assert np.bincount(seen.slots).tolist() == [8, 8, 8, 8]
    assert (np.diff(seen.column("when")[:8].astype(np.int64)) >= 0).all()


def test_records_of_branches() -> None:
    taken = observed(parse_python(BRANCHES, "taken.py")).maps["Taken"]
    assert np.bincount(taken.slots, minlength=100).tolist() == (ROUNDS - 1).tolist()


def test_other_spellings_of_the_toml_form() -> None:
    program = parse_toml(README_SPELLINGS, "spans.toml")
    assert program.callback == "report.py"
    probed = observed(program)
    assert probed.counts["spans"].tolist() == [1] * 4
    assert probed.maps["totals"].column("bytes").tolist() == (12 * ROUNDS + 4).tolist()


RECORDS = """\
import gpuwatch.language as gl
from gpuwatch import Map, probe
@Map(level="block", type="array", cap=64)
class m:
{fields}
@probe(pos="kernel", level="thread", before=True)
def begin():
    m.save({values})
"""


@pytest.mark.parametrize("types", [
    ["u64", "u64", "u64"], ["u32"], ["u32", "u32", "u32"], ["u32", "u64", "u32"], ["u64", "u32"],
])  # fmt: skip
def test_records_of_any_size_saved_at_the_kernels_begin(types: list[str]) -> None:
    fields = "\n".join(f"    f{n}: gl.{type_}" for n, type_ in enumerate(types))
    values = ", ".join(f"gl.thread * 100 + gl.block * 10 + {n}" for n in range(len(types)))
    got = observed(parse_python(RECORDS.format(fields=fields, values=values), "r.py")).maps["m"]
    for number in range(len(types)):
        expected = [t % 50 * 100 + t // 50 * 10 + number for t in THREADS]
        assert sorted(got.column(f"f{number}").tolist()) == sorted(expected)
    assert got.dropped == 0


def test_presets_run_together() -> None:
    probed = observed(load("block_sched,warp_duration"))
    assert probed.counts["block_sched"].tolist() == [1] * 4
    assert probed.counts["warp_duration"].tolist() == [1] * 4


def test_a_probe_beside_itself_under_another_name(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("probes")
    for name in ("one", "two"):
        (folder / f"{name}.toml").write_text(README_SPELLINGS.replace('callback = "report.py"', ""))
    probed = observed(load(f"{folder}/one.toml,{folder}/two.toml"))
    expected = (12 * ROUNDS + 4).tolist()
    assert probed.maps["totals"].column("bytes").tolist() == expected
    assert probed.maps["two_totals"].column("bytes").tolist() == expected
