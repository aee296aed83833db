"""Nsight Compute's output read, its refusals explained, its command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwatch.errors import UserError
from gpuwatch.toolchain import ncu
from gpuwatch.toolchain.process import Finished

OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
TABLE = f"""\
==PROF== Connected to process 71 (/somewhere/program)
==PROF== Profiling "scale" - 0: 0%....100% - 1 pass
"my ID", the program printed this
==PROF== Disconnected from process 71
"ID","Process ID","Kernel Name","Block Size","Grid Size","{SECTORS}","{OCCUPANCY}","other"
"","","","","","sector","%",""
"0","71","scale(float *, ""x"")","(256, 1, 1)","(64, 1, 1)","8,388,608","93.87","n/a"
"""


def test_a_table_is_read_by_metric() -> None:
    found = ncu.parse(TABLE, (OCCUPANCY, SECTORS, "other", "absent"))
    assert found == {OCCUPANCY: 93.87, SECTORS: 8388608.0}


@pytest.mark.parametrize("lines", [5, 6])
def test_a_table_without_a_launch_says_nothing(lines: int) -> None:
    assert ncu.parse("".join(TABLE.splitlines(keepends=True)[:lines]), (OCCUPANCY,)) == {}
    assert ncu.parse("", (OCCUPANCY,)) == {}


@pytest.mark.parametrize(
    ("output", "message", "hint"),
    [
        (
            "==ERROR== ERR_NVGPUCTRPERM - The user may not read the counters of device 0.\n",
            "may not read hardware counters",
            "NVreg_RestrictProfilingToAdminUsers=0",
        ),
        ("==ERROR== ERR_NVGPUCTRINUSE: in use\n", "another profiler", "end the other"),
        ("==WARNING== No kernels were profiled.\n", "no such launch", "--launch"),
        ("==PROF== x\n==ERROR== The thing broke.\n", "counted nothing: The thing broke.", "no ncu"),
        ("", "ended with status 9", "no ncu"),
    ],
)
def test_a_refusal_is_told_with_what_mends_it(output: str, message: str, hint: str) -> None:
    told = ncu.problem_of(Finished(9, output))
    assert message in told.message and hint in told.hint and told.status == 2


def _fake(folder: Path, text: str) -> Path:
    """An ncu that notes its arguments and says `text`."""
    tool = folder / "bin" / "ncu"
    tool.parent.mkdir()
    (folder / "says").write_text(text)
    tool.write_text(f'#!/bin/sh\necho "$@" >"{folder}/given"\ncat "{folder}/says"\n')
    tool.chmod(0o755)
    return tool


def test_one_launch_of_one_kernel_is_asked_for(tmp_path: Path) -> None:
    tool = _fake(tmp_path, TABLE)
    found = ncu.count(tool, ["prog", "5"], [OCCUPANCY], kernel="_Z5scalePf", skip=3, timeout=20.0)
    assert found == {OCCUPANCY: 93.87}
    given = (tmp_path / "given").read_text()
    assert "--kernel-name-base mangled --kernel-name _Z5scalePf" in given
    assert given.endswith("--launch-skip 3 --launch-count 1 prog 5\n")


def test_metrics_that_ncu_does_not_know_are_left_out(tmp_path: Path) -> None:
    tool = _fake(tmp_path, TABLE)
    refusal = f"echo '==ERROR== Failed to find metric {SECTORS}'; exit 1"
    script = tool.read_text().replace("#!/bin/sh\n", "")
    tool.write_text(f'#!/bin/sh\ncase "$*" in *{SECTORS}*) {refusal};; esac\n{script}')
    found = ncu.count(tool, ["prog"], [OCCUPANCY, SECTORS], timeout=20.0)
    assert found == {OCCUPANCY: 93.87}
    with pytest.raises(UserError, match="Failed to find metric"):
        ncu.count(tool, ["prog"], [SECTORS], timeout=20.0)


def test_ncu_is_looked_for_in_cuda_home_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = _fake(tmp_path, "")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert ncu.find_ncu() == tool
    monkeypatch.delenv("CUDA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert ncu.find_ncu() == tool
    monkeypatch.setenv("PATH", str(tmp_path))
    tool.chmod(0o644)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    monkeypatch.setattr(ncu, "_INSTALLED", tmp_path / "absent")
    with pytest.raises(UserError, match="there is no ncu"):
        ncu.find_ncu()
