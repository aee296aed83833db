"""The command line, run as a user runs it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from command_line import run

from gpuwatch import __version__
from gpuwatch.cli import main
from gpuwatch.probe.catalogue import folder

SMALL = ("-d", "sim:a10", "--", "128", "128", "128")


def test_the_report_as_json(tmp_path: Path) -> None:
    done = run("report", "gemm", "-n", "2", "--json", *SMALL, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    values = json.loads(done.stdout)
    assert values["launches"] == 2
    assert values["records"] == values["warps"]
    assert values["outputs_identical"] is True


def test_without_a_terminal_the_source_alone_prints_the_report(tmp_path: Path) -> None:
    done = run("kernels/gemm_tiled.cu", *SMALL, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Total Blocks: 16, Total Tasks: 512" in done.stdout
    assert "modelled" in done.stdout


def test_every_line_is_reported_and_marked_where_machine_code_differs() -> None:
    done = run("report", "gemm_tiled", "-p", "smem_conflicts", "--lines", *SMALL)
    assert done.returncode == 0, done.stderr
    assert "Shared memory per line" in done.stdout
    assert "sum += tile_A[y][i] * tile_B[i][x];" in done.stdout
    assert "line 45: merged: 64 shared loads of 4 bytes in PTX" in done.stdout


def test_the_kernels_of_a_file() -> None:
    done = run("kernels", "gemm", "--json", *SMALL)
    assert done.returncode == 0, done.stderr
    (kernel,) = json.loads(done.stdout)
    assert kernel["launches"] == 1
    assert kernel["parameters"][3:] == ["int", "int", "int"]


def test_the_presets() -> None:
    done = run("probes", "--json")
    assert [row["name"] for row in json.loads(done.stdout)][:2] == ["block_sched", "warp_duration"]


def test_the_probed_ptx() -> None:
    done = run("ptx", "gemm", "-p", "warp_duration", *SMALL)
    assert done.returncode == 0, done.stderr
    assert ".visible .entry _Z8gemm_gpuPKfS0_Pfiii(" in done.stdout
    assert "gpuwatch_maps" in done.stdout


def test_the_probed_ptx_as_a_diff() -> None:
    done = run("ptx", "gemm", "--diff", "--context", "0", *SMALL)
    assert done.returncode == 0, done.stderr
    numbered = [line for line in done.stdout.splitlines() if line.lstrip()[:1].isdecimal()]
    woven = [line for line in numbered if " + " in line]
    assert len(woven) > 20
    assert f"{len(woven)} lines woven in at 2 places" in done.stdout


def test_a_probe_file_is_checked_without_a_kernel(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text((folder("probes") / "block_sched.py").read_text())
    bad.write_text(good.read_text().replace("gl.clock() - started", "gl.clok() - started"))
    done = run("probes", "check", str(good), str(bad))
    assert done.returncode == 2
    assert "good.py: sound; 1 map, 2 probes" in done.stdout
    assert "bad.py:" in done.stderr and "clock" in done.stderr and "^" in done.stderr


def test_a_probe_is_shown_with_its_maps_and_what_it_becomes() -> None:
    done = run("probes", "show", "block_sched", "--grid", "2,3", "--block", "48")
    assert done.returncode == 0, done.stderr
    assert "before kernel, once per warp" in done.stdout
    assert "12  16 bytes x 1" in done.stdout
    assert "+         mov.u64         %gpw_started, %clock64;" in done.stdout


def test_the_version() -> None:
    assert run("--version").stdout.strip() == f"gpuwatch {__version__}"


def test_doctor_finds_what_the_simulator_needs() -> None:
    done = run("doctor")
    assert done.returncode == 0
    assert "ok       toolchain: nvcc 13." in done.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("report", "no_such_file.cu"), 2, "no such file"),
        (("report", "gemm", "-p", "no_such_probe", *SMALL), 2, "no_such_probe"),
        (("report", "gemm", "-k", "no_such_kernel", *SMALL), 2, "matches no kernel"),
        (("report", "gemm", "-d", "tpu"), 2, "the forms are"),
        (("report", "gemm", "-d", "sim:tpu"), 2, "tpu"),
        (("report", "gemm", "-n", "0"), 2, "at least 1"),
        (("report", "gemm", "--timeout", "nan"), 2, "number above 0"),
        (("report", "gemm", "--nvcc-flags=-DX='", "-d", "sim"), 2, "close every quote"),
        ((), 2, "SOURCE"),
    ],
)
def test_bad_input_is_one_message_and_status(
    arguments: tuple[str, ...], status: int, words: str
) -> None:
    done = run(*arguments)
    assert done.returncode == status
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [(), ("serve",)], ids=["watch", "serve"])
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("no_such_file.cu",), "there is no source 'no_such_file.cu'"),
        (("gemm", "no_such_file.cu"), "there is no source 'no_such_file.cu'"),
        (("gemm", "-d", "bogus"), "there is no device 'bogus'"),
        (("gemm", "-d", "cuda:x"), "there is no device 'cuda:x'"),
        (("gemm", "-d", "sim:foo"), "no simulated GPU is called 'foo'"),
        (("gemm", "-p", "nope"), "nope"),
        (("gemm", "--callback", "none.py"), "there is no callback none.py"),
    ],
)
def test_names_are_checked_before_a_screen_opens(
    command: tuple[str, ...],
    arguments: tuple[str, ...],
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gpuwatch.tui.browser.LiveServer.serve", _never)
    monkeypatch.setattr(sys.modules["gpuwatch.cli.main"], "can_draw", lambda: True)
    monkeypatch.setattr(sys.modules["gpuwatch.cli.main"], "run_app", _never)
    assert main([*command, *arguments]) == 2
    assert words in capsys.readouterr().err


def _never(*_given: object, **_named: object) -> int:
    raise AssertionError("a screen opened")
