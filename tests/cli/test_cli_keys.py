"""`gpuwatch keys`, and the file in which a user changes them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpuwatch.cli import main
from gpuwatch.cli.user_keys import IDS, parse, user_keymap


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPUWATCH_CONFIG_DIR", str(tmp_path))
    return tmp_path / "keymap.toml"


def test_every_action_is_listed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys"]) == 0
    told = capsys.readouterr().out
    listed = {line.split("  ")[0]: line for line in told.splitlines()}
    assert "restart" in listed["ctrl+r"]
    assert set(IDS) <= {word for line in told.splitlines() for word in line.split()}
    assert str(file) in told


def test_the_file_gives_other_keys(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text('pause = "P, ?"\nhelp = "f1"\n"back-ten" = \'ctrl+b\'\n')
    assert user_keymap().changed == {
        "pause": "P,question_mark",
        "help": "f1",
        "back-ten": "ctrl+b",
    }
    assert main(["keys"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["P/?", "pause", "live"] in [row[:3] for row in rows]


@pytest.mark.parametrize("name", ["README.md", "gpuwatch/tui/README.md"])
def test_the_documented_file_is_one(name: str) -> None:
    text = (Path(__file__).parents[2] / name).read_text()
    blocks = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    (keymap,) = [block for block in blocks if "timeline" in block]
    assert {"pause", "timeline"} <= set(parse(keymap, name).changed)


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        ('sort = "f5"\npuase = "P"\n', "2:1", "no action 'puase'", "did you mean pause"),
        ('sort = "f5"\nzzzz = "P"\n', "2:1", "no action 'zzzz'", "known: accumulate, back"),
        ("pause = 5\n", "1:1", "are no text", 'pause = "f9"'),
        ('[keys]\npause = "P"\n', "1:2", "no action 'keys'", "`gpuwatch keys` lists"),
        ('# mine\npause = "crtl+p"\n', "2:1", "no key is called 'crtl+p'", "a character"),
        ('pause = ""\n', "1:1", "no key is called ''", "a character"),
        ('pause = "P,"\n', "1:1", "no key is called ''", "comma"),
        ('sort = "f5"\npause = "k"\n', "2:1", "'k' is a key of pause and of kernel", "another"),
        ('reset = "+"\n', "1:1", "'+' is a key of reset and of timeline: zoom", "another"),
        ('hide = "7"\n', "1:1", "'7' is a key of hide and of a probe", "another"),
        ('pause = "P\n', "1:11", "this is not TOML", "correct"),
    ],
)
def test_what_cannot_be_is_told_with_its_place(
    file: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    place: str,
    message: str,
    hint: str,
) -> None:
    file.write_text(text)
    assert main(["keys"]) == 2
    listed, told = capsys.readouterr()
    assert set(IDS) <= set(listed.split())
    assert f"{file}:{place}: error: " in told
    assert message in told
    assert hint in told.rpartition("hint: ")[2]


def test_serving_with_such_a_file_starts_nothing(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text('nothing = "P"')
    assert main(["serve", "gemm"]) == 2
    assert "no action 'nothing'" in capsys.readouterr().err
