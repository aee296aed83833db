"""Recording, reporting and exporting traces from the command line."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import run

SMALL = ("-d", "sim:a10", "--", "128", "128", "128")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Holds the trace `naive` of three launches."""
    home = tmp_path_factory.mktemp("home")
    done = run("record", "gemm", "-n", "3", "-o", "naive", *SMALL, folder=home)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("naive: 3 launches, ")
    assert "callback block_sched_callback.py" in done.stdout
    assert "Total Blocks: 24, Total Tasks: 576" in done.stdout
    return home


def test_the_report_of_a_trace(folder: Path) -> None:
    done = run("report", "naive", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "3 launches, kernel" in done.stdout and "(replay:a10)" in done.stdout
    assert done.stdout.count("Total Blocks: 24, Total Tasks: 576") == 2
    done = run("report", "naive", "--launch", "0", "--no-callback", "--json", folder=folder)
    values = json.loads(done.stdout)
    assert (values["launches"], values["records"], values["callbacks"]) == (1, 576, [])


def test_a_picture_of_a_trace(folder: Path) -> None:
    done = run("record", "gemm", "-n", "1", "-o", "pages", "-p", "dmat", *SMALL, folder=folder)
    assert done.returncode == 0, done.stderr
    done = run("report", "pages", "--json", "--picture", "pages.svg", folder=folder)
    assert (done.returncode, done.stderr) == (0, "saved pages.svg\n")
    found = json.loads(done.stdout)["maps"][0]["buckets"]
    most = max(bucket["count"] for bucket in found)
    text = (folder / "pages.svg").read_text()
    assert text.startswith("<svg ") and f">{most:,}</text>" in text and "(modelled)" in text


@pytest.mark.parametrize(
    ("name", "told"),
    [("a.svg", "block_sched keeps no memory access timeline"), ("a.jpg", "not a.jpg")],
)
def test_what_cannot_be_drawn_is_told(folder: Path, name: str, told: str) -> None:
    done = run("report", "naive", "--picture", name, folder=folder)
    assert done.returncode == 2
    assert told in done.stderr and "hint: " in done.stderr and "Traceback" not in done.stderr
    assert not (folder / name).exists()


def test_a_callback_that_the_user_names(folder: Path) -> None:
    (folder / "mine.py").write_text(
        "import sys\nfrom read import read\nprint(len(read(sys.argv[1]).maps), 'map')\n1 / 0\n"
    )
    done = run("report", "naive", "--callback", "mine.py", folder=folder)
    assert done.returncode == 0
    assert "1 map" in done.stdout
    assert "the callback mine.py failed: it ended with status 1" in done.stdout
    source = run("report", "gemm", "-n", "1", "--callback", "mine.py", *SMALL, folder=folder)
    assert "1 map" in source.stdout, source.stderr
    slow = folder / "slow.py"
    slow.write_text("import time; time.sleep(60)")
    done = run(
        "report", "naive", "--callback", "slow.py", "--callback-timeout", "0.5", folder=folder
    )
    assert done.returncode == 0
    assert "it took longer than 0.5 s and was ended" in done.stdout


def test_a_probe_s_own_callback_runs_only_when_it_is_named(folder: Path) -> None:
    probe = folder / "mine_probe.py"
    probe.write_text(
        'CALLBACK = "evil.py"\n'
        "from gpuwatch import Map, probe\nimport gpuwatch.language as gl\n"
        '@Map(level="warp", type="array", cap=1)\nclass seen:\n    lane: gl.u32\n'
        '@probe(pos="kernel", level="warp")\ndef leave():\n    seen.save(gl.laneid())\n'
    )
    (folder / "evil.py").write_text("open('executed', 'w')")
    done = run("record", "gemm", "-p", str(probe), "-n", "1", "-o", "own", *SMALL, folder=folder)
    assert done.returncode == 0, done.stderr
    assert run("report", "own", folder=folder).returncode == 0
    assert not (folder / "executed").exists()


def test_names_in_a_trace_are_printed_as_they_are_and_steer_nothing(folder: Path) -> None:
    shutil.copytree(folder / "naive", folder / "hostile")
    (path,) = (folder / "hostile").glob("kernel/*/kernel.info")
    text = re.sub(r"(?m)^name = .*", r'name = "[/red]:smile:\\u001b[2J"', path.read_text(), count=1)
    path.write_text(text)
    for command in (("report",), ("replay",), ("compare", "naive")):
        done = run(*command, "hostile", folder=folder)
        assert done.returncode == 0, done.stderr
        assert "[/red]:smile:\ufffd[2J" in done.stdout and "\x1b" not in done.stdout
    done = run("record", "gemm", "-n", "1", "-o", "[/red]", *SMALL, folder=folder)
    assert done.returncode == 0 and done.stdout.startswith("[/red]: 1 launches, ")


def test_exports(folder: Path) -> None:
    for form in ("chrome", "parquet"):
        done = run("export", "naive", "--to", form, "-o", f"out-{form}", folder=folder)
        assert done.returncode == 0, done.stderr
        assert ": 1,728 rows, " in done.stdout or ": 1,800 slices, " in done.stdout
    done = run("export", "naive", "--to", "csv", "--launch", "1", folder=folder)
    assert done.stdout.startswith("naive.csv: 576 rows, ")


def test_an_interrupted_recording_keeps_what_it_has(folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "gpuwatch", "record", "gemm", "-n", "100000", "-o", "cut", *SMALL],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    end = time.monotonic() + 120
    while not list(folder.glob(".cut.recording-*/result/*.bin")):
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "cut holds the launches until then" in said
    done = run("report", "cut", "--launch", "0", "--no-callback", folder=folder)
    assert done.returncode == 0 and "recorded launch 1 of " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("record", "gemm", "-o", "naive", *SMALL), "naive exists"),
        (("record", "gemm", "-n", "0"), "at least 1"),
        (("report", "naive", "--callback", "none.py"), "there is no callback none.py"),
        (("report", "gemm", "--callback", "none.py"), "there is no callback none.py"),
        (("record", "gemm", "--callback", "none.py", "-o", "none"), "there is no callback none.py"),
        (("report", "gemm", "--no-callback", "--callback", "mine.py"), "not allowed with argument"),
        (("report", "naive", "-k", "nothing"), "matches no kernel"),
        (("export", "none", "--to", "csv"), "none does not exist"),
        (("export", "naive", "--to", "xml"), "invalid choice"),
        (("export", "naive", "--to", "csv", "--launch", "7"), "there is no launch 7"),
        (("replay", "none"), "none does not exist"),
        (("report", "."), ". is no trace"),
        (("compare", "naive", "."), ". is no trace"),
    ],
)
def test_bad_input_is_one_message(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    done = run(*arguments, folder=folder)
    assert done.returncode == 2, done.stdout
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "none").exists()
