"""`gpuwatch probes new`: what it writes is sound and counts right as it stands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuwatch.cli import main

SMALL = ("-d", "sim:a10", "-n", "1", "--", "128", "128", "128")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["mine", "mine.py"])
def test_a_new_probe_works_at_once(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["probes", "new", name]) == 0
    assert "gpuwatch gemm -p mine.py" in capfd.readouterr().out
    assert main(["probes", "check", "mine.py"]) == 0
    assert capfd.readouterr().out == "mine.py: sound; 2 maps, 3 probes\n"

    assert main(["report", "gemm", "-p", "mine.py", "--json", *SMALL]) == 0
    values = json.loads(capfd.readouterr().out)
    assert values["outputs_identical"] is True
    maps = {one["name"]: one for one in values["maps"]}
    assert maps["times"]["records"] == values["warps"] == 576
    totals = {field: figures["total"] for field, figures in maps["loads"]["fields"].items()}
    warp_loads = 2 * 128 * 128 * 128 // 32
    assert totals == {"count": warp_loads, "bytes": warp_loads * 32 * 4}


def test_a_file_that_exists_stays_as_it_is(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "mine.py").write_text("kept")
    assert main(["probes", "new", "mine"]) == 2
    assert "mine.py exists\nhint: " in capsys.readouterr().err
    assert (here / "mine.py").read_text() == "kept"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mine.toml", "ends in .py: 'mine.toml'"),
        ("", "ends in .py: ''"),
        ("mine.", "ends in .py: 'mine.'"),
        ("..", "ends in .py: '..'"),
        ("nowhere/mine", "cannot write nowhere/mine.py: No such file"),
        ("a\0.py", "cannot write a"),
    ],
)
def test_what_cannot_be_written_is_told(
    here: Path, name: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["probes", "new", name]) == 2
    said = capsys.readouterr().err
    assert words in said and "hint: " in said
    assert not list(here.iterdir())
