"""`gpuwatch compare` and `gpuwatch replay` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

from command_line import run

SMALL = ("-d", "sim:a10", "--", "128", "128", "128")


def test_sources_and_traces(tmp_path: Path) -> None:
    done = run("compare", "gemm", "gemm_tiled", "-n", "2", "--json", *SMALL, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    values = json.loads(done.stdout)
    figures = {one["name"]: one for one in values["figures"]}
    assert (figures["blocks"]["before"]["median"], figures["blocks"]["after"]["median"]) == (24, 16)
    assert figures["tasks"]["change"] == 512 - 576
    assert figures["global load sectors"]["ratio"] == 0.05
    assert "in kernel time, plain" in values["conclusion"]

    done = run("record", "gemm", "-n", "2", "-o", "naive", *SMALL, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run("compare", "naive", "gemm", "-n", "2", "--markdown", *SMALL, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")][1:]
    both = [line for line in rows if not line.startswith("| global ")]
    assert len(both) > 10 and all(line.endswith("| same |") for line in both)
    assert "No difference in kernel time, plain" in done.stdout

    done = run("compare", "naive", "gemm_tiled", "-n", "1", *SMALL, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "…" not in done.stdout, "a table that goes to a file is never cut"
    assert "running, average (cycles)" in done.stdout and " worse" in done.stdout

    done = run("replay", "naive", "--no-callback", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "recorded launch 2 of 2" in done.stdout


def test_bad_input_is_one_message(tmp_path: Path) -> None:
    for arguments, words in (
        (("compare", "gemm"), "AFTER"),
        (("compare", "gemm", "none.cu", "-n", "1", *SMALL), "none.cu: no such file"),
        (("compare", "gemm", "gemm", "--after-kernel", "none", "-n", "1", *SMALL), "no kernel"),
    ):
        done = run(*arguments, folder=tmp_path)
        assert done.returncode == 2
        assert words in done.stderr and "Traceback" not in done.stderr
