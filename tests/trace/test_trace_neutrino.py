"""A whole folder as Neutrino leaves it, with two launches: opened, compared, exported, analysed."""

from __future__ import annotations

import csv
import struct
from pathlib import Path

import pytest

from gpuwatch.probe import catalogue
from gpuwatch.trace import Trace, is_trace, records_of
from gpuwatch.trace.callback import run_callback
from gpuwatch.trace.export import export

KERNEL = "0_d02df43fa8dfe9acebcd959bee6f98c2404e40f9"
SPELLINGS = {
    "the article's": ("CALLBACK", "pos", "size = 16", "cap = 1"),
    "its README's": ("callback", "position", 'size = "16"', 'cap = "1"'),
}
PROBE = """\
regs = 4
{callback} = "analysis.py"
[probe.start_end]
level = "warp"
{pos} = "kernel"
before = '''mov.u64 %NR0, %clock64;'''
after = '''mov.u64 %NR2, %clock64;
sub.u64 %NR1, %NR2, %NR0;
SAVE [ block_sched ] {{ %NR0, %NR1, %NR3 }};'''
[map.block_sched]
level = "warp"
type = "array"
{size}
{cap}
[map.block_sched.regs]
start = [ "u64", "None",]
elapsed = [ "u32", "None",]
cuid = [ "u32", "None",]
"""
LOST = 5
"""The warp whose record never arrived."""


@pytest.fixture(params=SPELLINGS)
def folder(request, tmp_path) -> Path:
    callback, pos, size, cap = SPELLINGS[request.param]
    home = tmp_path / "Aug14_112435_2682"
    kernel = home / "kernel" / KERNEL
    kernel.mkdir(parents=True)
    (home / "result").mkdir()
    (home / "event.log").write_text("[exec] kernel launched\n")
    (home / "read.py").write_text("raise SystemExit('never executed')\n")
    text = PROBE.format(callback=callback, pos=pos, size=size, cap=cap)
    (home / "probe.toml").write_text(text)
    (kernel / "kernel.info").write_text("_Z8gemm_gpuPKfS0_Pfiii\n0 6\n")
    (kernel / "process.log").write_text("ptxas info\n")
    for build in ("original", "pruned", "probed"):
        (kernel / f"{build}.ptx").write_text(".version 8.7\n.target sm_86\n")
        (kernel / f"{build}.bin").write_bytes(b"\x7fELF")
    for number, name in enumerate(("0.297500", "5.111352")):
        rows = [(1000 + number + 100 * (k // 4), 80 + k, k // 4 % 2) for k in range(16)]
        rows[LOST] = (0, 0, 0)
        content = struct.pack("<8i", 2, 2, 1, 32, 4, 1, 0, 1) + struct.pack("<IIQ", 16, 32, 48)
        content += b"".join(struct.pack("<QII", *row) for row in rows)
        (home / "result" / f"{name}.bin").write_bytes(content)
    return home


def test_every_launch_opens_with_what_the_folder_says(folder):
    assert is_trace(folder)
    trace = Trace(folder)
    assert [path.name for path in trace.results] == ["0.297500.bin", "5.111352.bin"]
    for number in range(2):
        found = records_of(trace.launch(number))
        records = found.maps["block_sched"]
        assert (found.kernel.name, found.kernel.probe) == ("_Z8gemm_gpuPKfS0_Pfiii", "start_end")
        assert (found.kernel.grid, found.kernel.block) == ((2, 2, 1), (32, 4, 1))
        assert records.missing.tolist() == [LOST]
        assert records.records[0].tolist() == (1000 + number, 80, 0)
        assert records.records[-1].tolist() == (1300 + number, 95, 1)


def test_it_is_exported(folder, tmp_path):
    (done,) = export(Trace(folder), range(2), "csv", tmp_path / "out")
    with done.path.open(newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["launch", "warp", "block", "record", "start", "elapsed", "cuid"]
    assert len(rows) == done.count == 30
    assert [row[0] for row in rows] == ["0"] * 15 + ["1"] * 15
    (timeline,) = export(Trace(folder), range(2), "perfetto", tmp_path / "out")
    assert timeline.count == 2 * (15 + 4)


def test_a_callback_of_the_article_s_kind_reads_it(folder, tmp_path):
    callback = tmp_path / "analysis.py"
    callback.write_text(
        "import struct, sys\n"
        "from neutrino import TraceHeader, TraceSection\n"
        "with open(sys.argv[1], 'rb') as file:\n"
        "    header = TraceHeader(*struct.unpack('iiiiiiii', file.read(32)))\n"
        "    section = TraceSection(*struct.unpack('IIQ', file.read(16)))\n"
        "    file.seek(section.offset)\n"
        "    rows = list(struct.iter_unpack('qII', file.read()))\n"
        "print(header.numProbes, section.warpDiv, len(rows), sum(row[1] for row in rows))\n"
    )
    trace = Trace(folder)
    done = run_callback(callback, trace.results[1], trace.launch(1).kernel)
    assert (done.problem, done.output) == ("", f"1 32 16 {sum(range(80, 96)) - 85}\n")


def test_cycles_are_not_called_modelled_where_the_trace_does_not_say(folder):
    trace = Trace(folder)
    callback = catalogue.folder("probes") / "block_sched_callback.py"
    done = run_callback(callback, trace.results[0], trace.launch(0).kernel)
    assert done.problem == "", done.output
    assert "Average Running Time: 87 (cycles)" in done.output.splitlines()
