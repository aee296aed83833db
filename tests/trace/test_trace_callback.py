"""Callbacks, run as the child processes that they are."""

from __future__ import annotations

import ast
import heapq
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trace_support import BLOCK_SCHED, WARP_DURATION, kernel_facts, launched, write_trace

from gpuwatch.analysis.idle import idle_cycles
from gpuwatch.errors import UserError
from gpuwatch.probe.catalogue import folder
from gpuwatch.trace import Trace
from gpuwatch.trace.callback import MOST_OUTPUT, run_callback


@pytest.fixture
def trace(tmp_path) -> Trace:
    launch = launched(kernel_facts([BLOCK_SCHED]), np.random.default_rng(1), full=True)
    return Trace(write_trace(tmp_path / "t", [launch]))


def run(trace: Trace, tmp_path: Path, code: str, timeout: float = 60.0):
    callback = tmp_path / "callback.py"
    callback.write_text(code)
    return run_callback(callback, trace.results[0], trace.launch(0).kernel, timeout)


def test_it_has_the_result_as_argument_and_a_reader_to_import(trace, tmp_path):
    code = (
        "import sys\nfrom read import parse\nheader, sections, records = parse(sys.argv[1])\n"
        "print(sum(len(warp) for block in records['block_sched'] for warp in block))\n"
    )
    done = run(trace, tmp_path, code)
    assert (done.output, done.problem) == ("12\n", "")


def test_one_written_for_neutrino_finds_what_it_imports(trace, tmp_path):
    code = (
        "import struct, sys\nfrom neutrino import TraceHeader, TraceSection\n"
        "with open(sys.argv[1], 'rb') as f:\n"
        "    header = TraceHeader(*struct.unpack('iiiiiiii', f.read(32)))\n"
        "    section = TraceSection(*struct.unpack('IIQ', f.read(16)))\n"
        "print(header.gridDimX, header.numProbes, section.size, section.warpDiv)\n"
    )
    assert run(trace, tmp_path, code).output == "3 1 16 32\n"


def test_the_trace_s_own_reader_is_not_executed(trace, tmp_path):
    marker = tmp_path / "executed"
    (trace.path / "read.py").write_text(f"open({str(marker)!r}, 'w')")
    assert run(trace, tmp_path, "import read; print(len(read.MAPS))").output == "1\n"
    assert not marker.exists()


@pytest.mark.parametrize(
    ("code", "output", "problem"),
    [
        ("print('so far'); raise SystemExit(3)", "so far\n", "it ended with status 3"),
        ("import os; os.kill(os.getpid(), 11)", "", "it was ended by SIGSEGV"),
        ("1 / 0", "ZeroDivisionError", "it ended with status 1"),
        ("input()", "EOFError", "it ended with status 1"),
    ],
)
def test_a_failure_is_told_with_what_was_printed(trace, tmp_path, code, output, problem):
    done = run(trace, tmp_path, code)
    assert output in done.output
    assert done.problem == problem


def test_one_that_never_ends_is_ended_with_its_children(trace, tmp_path):
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)\ntime.sleep(600)\n"
    )
    done = run(trace, tmp_path, code, timeout=3.0)
    assert done.problem == "it took longer than 3 s and was ended"
    child = int(done.output)
    for _ in range(100):
        if not Path(f"/proc/{child}").exists() or "Z" in status_of(child):
            return
        time.sleep(0.05)
    os.kill(child, 9)
    pytest.fail("the callback's child outlived it")


def status_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"


def test_output_without_end_is_cut(trace, tmp_path):
    done = run(trace, tmp_path, f"print('x' * {2 * MOST_OUTPUT})")
    assert done.problem == ""
    assert len(done.output) < MOST_OUTPUT + 200
    assert "is left out" in done.output


def test_a_callback_that_is_not_there(trace, tmp_path):
    with pytest.raises(UserError, match="there is no callback") as caught:
        run_callback(tmp_path / "none.py", trace.results[0], trace.launch(0).kernel)
    assert caught.value.hint


# ---- those that ship with the presets


def recorded(tmp_path, map_, rows, columns, missing=()):
    """A trace of one launch with these records."""
    launch = launched(kernel_facts([map_], grid=(len(rows), 1, 1), block=(32, 1, 1)),
                      np.random.default_rng(1), full=True)  # fmt: skip
    records = np.zeros(len(rows), columns)
    records[:] = rows
    launch.buffers[0][:] = records.view(np.uint8)
    for slot in missing:
        launch.buffers[1].view(np.uint32)[slot] = 0
        launch.buffers[0][slot * map_.size : (slot + 1) * map_.size] = 0
    return Trace(write_trace(tmp_path / "t", [launch]))


def shipped(trace: Trace, name: str) -> list[str]:
    callback = folder("probes") / name
    done = run_callback(callback, trace.results[0], trace.launch(0).kernel)
    assert done.problem == "", done.output
    return done.output.splitlines()


def test_block_sched_s_summary(tmp_path):
    # SM 0: one slot that idles 20 cycles, then 5; SM 1: two at once, no idling.
    rows = [(100, 50, 0), (170, 30, 0), (205, 10, 0), (1000, 40, 1), (1010, 90, 1)]
    trace = recorded(tmp_path, BLOCK_SCHED, rows, "<u8,<u4,<u4")
    assert shipped(trace, "block_sched_callback.py") == [
        "Total Blocks: 5, Total Tasks: 5",
        "Average Running Time: 44 (cycles)",
        "Average Idle Time: 5 (cycles)",
    ]


def modelled(trace: Trace) -> Trace:
    """The same trace, of a simulated GPU."""
    (path,) = trace.path.rglob("kernel.info")
    text = path.read_text()
    assert "modelled = false" in text
    path.write_text(text.replace("modelled = false", "modelled = true"))
    return Trace(trace.path)


def test_cycles_of_a_simulated_gpu_are_called_modelled(tmp_path):
    trace = recorded(tmp_path, BLOCK_SCHED, [(100, 50, 0), (170, 30, 0)], "<u8,<u4,<u4")
    assert shipped(modelled(trace), "block_sched_callback.py")[1:] == [
        "Average Running Time: 40 (modelled cycles)",
        "Average Idle Time: 10 (modelled cycles)",
    ]


def test_the_table_of_a_simulated_gpu_is_called_modelled(tmp_path):
    trace = recorded(tmp_path, WARP_DURATION, [(100, 50, 0, 0)], "<u8,<u8,<u8,<u8")
    assert "modelled" not in "".join(shipped(trace, "warp_duration_callback.py"))
    assert "(modelled cycles)" in shipped(modelled(trace), "warp_duration_callback.py")[0]


def test_block_sched_names_what_never_arrived(tmp_path):
    rows = [(100, 50, 0), (170, 30, 0), (205, 10, 0)]
    trace = recorded(tmp_path, BLOCK_SCHED, rows, "<u8,<u4,<u4", missing=(1,))
    lines = shipped(trace, "block_sched_callback.py")
    assert lines[0] == "Total Blocks: 3, Total Tasks: 2"
    assert lines[-1] == "1 records never arrived; the first are of warps 1"


def test_warp_duration_s_table(tmp_path):
    rows = [(107148575, 138413, 261, 0), (107148573, 100, 262, 0), (9, 9, 9, 0)]
    trace = recorded(tmp_path, WARP_DURATION, rows, "<u8,<u8,<u8,<u8", missing=(2,))
    title, head, first, second, _, missing = shipped(trace, "warp_duration_callback.py")
    assert "Summary" in title
    assert head.split() == ["Warp", "ID", "Elapsed", "Cycles", "(avg)", "Count", "Start", "(first)"]
    assert first.split() == ["262", "100.00", "1", "107148573"]
    assert second.split() == ["261", "138413.00", "1", "107148575"]
    assert missing == "1 records never arrived; the first are of warps 2"


SPANS = st.tuples(st.integers(0, 60), st.integers(0, 20)).map(lambda one: (one[0], sum(one)))


@given(st.lists(st.lists(SPANS, max_size=12).map(sorted), max_size=4))
def test_the_idle_cycles_of_block_sched_s_callback_are_those_of_the_view(sms):
    source = (folder("probes") / "block_sched_callback.py").read_text()
    (rule,) = (one for one in ast.parse(source).body if isinstance(one, ast.FunctionDef))
    names = {"heapq": heapq}
    exec(compile(ast.Module([rule], []), "callback", "exec"), names)
    start, end = (np.array([span[k] for sm in sms for span in sm], np.int64) for k in (0, 1))
    bounds = np.cumsum([0, *map(len, sms)])
    assert idle_cycles(start, end, bounds).tolist() == [names["idle_cycles"](sm) for sm in sms]


LEAVING = """
import sys, threading, time
from pathlib import Path
from gpuwatch.trace import Trace
from gpuwatch.trace.callback import run_callback
launch = Trace(Path(sys.argv[1])).launch(0)
run = lambda: run_callback(Path(sys.argv[2]), launch.result.path, launch.kernel)
threading.Thread(target=run, daemon=True).start()
while not Path(sys.argv[3]).exists():
    time.sleep(0.01)
"""


def test_it_ends_with_the_program_that_runs_it_in_a_thread(trace, tmp_path):
    callback, told = tmp_path / "callback.py", tmp_path / "pid"
    callback.write_text(
        "import os, pathlib, time\n"
        f"path = pathlib.Path({str(told)!r})\n"
        "path.with_name('new').write_text(str(os.getpid()))\n"
        "path.with_name('new').rename(path)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-c", LEAVING, str(trace.path), str(callback), str(told)]
    subprocess.run(command, check=True, timeout=50)
    with pytest.raises(ProcessLookupError):
        os.kill(int(told.read_text()), 0)
