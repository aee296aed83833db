"""What a trace cannot follow is refused, and what is not there is told with what is."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

from gpuwatch.cli import main
from gpuwatch.cli.arguments import source_parser
from gpuwatch.cli.sessions import check
from gpuwatch.cli.traces import refuse_flags_of_launching
from gpuwatch.engine.options import Options
from gpuwatch.errors import UserError

TRACE = "h200/gemm"
SHIPPED = "h200/gemm, h200/gemm_tiled, h200/gemm_tiled_traffic, h200/gemm_traffic"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "command", [("report", TRACE), (TRACE,), ("compare", TRACE, "h200/gemm_tiled")]
)
@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (("-p", "gmem_traffic"), "--probe"),
        (("-p", "block_sched"), "--probe"),
        (("-d", "sim:t4", "--map-limit", "1G"), "--device, --map-limit"),
        (("--no-run", "--arg", "M=4"), "--no-run, --arg"),
        (("--link", "a.cu"), "--link"),
        (("--timeout", "10"), "--timeout"),
        (("--", "128"), "arguments behind --"),
    ],
)
def test_flags_of_launching(
    command: tuple[str, ...],
    flags: tuple[str, ...],
    named: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*command, *flags]) == 2
    said = capsys.readouterr()
    assert f"cannot follow {named}\nhint: " in said.err
    assert said.out == ""


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("report", TRACE, "-n", "3"), "--launches"),
        (("compare", TRACE, TRACE, "--launch", "0"), "--launch"),
    ],
)
def test_flags_of_one_command(
    words: tuple[str, ...], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert f"cannot follow {named}\n" in capsys.readouterr().err


def test_flags_of_reading_are_followed(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--launch", "2", "-k", "gemm", "--lines", "--no-callback")
    assert main(["report", TRACE, *words]) == 0
    assert "recorded launch 3 of 3" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["report", "replay"])
def test_a_launch_that_was_not_recorded(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, TRACE, "--launch", "3"]) == 2
    assert "there is no launch 3, the trace has 3 of this kernel" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [("--json",), ("--launch", "0")])
def test_what_the_screen_of_a_replay_does_not_show(
    flags: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["gpuwatch.cli.replay"], "can_draw", lambda: True)
    assert main(["replay", TRACE, *flags]) == 2
    assert f"{flags[0]} is for a replay without a terminal" in capsys.readouterr().err


def test_a_callback_that_is_not_there_opens_no_screen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["gpuwatch.cli.replay"], "can_draw", lambda: True)
    assert main(["replay", TRACE, "--callback", "none.py"]) == 2
    assert "there is no callback none.py" in capsys.readouterr().err


def test_every_flag_of_a_session_is_followed_or_refused() -> None:
    followed = {"help", "kernel", "launch"}
    for action in source_parser("report")._actions:
        if action.option_strings and action.dest not in followed:
            given = argparse.Namespace(said={action.dest}, arguments=())
            with pytest.raises(UserError) as caught:
                refuse_flags_of_launching(given)
            assert caught.value.message.endswith(f"cannot follow {action.option_strings[-1]}")


@pytest.mark.parametrize(
    "words",
    [
        ("report", "h200/nope"),
        ("replay", "h200/nope"),
        ("export", "h200/nope", "--to", "csv"),
        ("compare", TRACE, "nope"),
        ("compare", "nope", TRACE),
    ],
)
def test_names_of_nothing_are_told_with_the_traces_there_are(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "nope" in said and said.endswith(f"traces that ship with gpuwatch: {SHIPPED}\n")


@pytest.mark.parametrize("place", ["nowhere", "file"])
def test_an_export_to_no_folder_is_bad_input(
    here: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "file").write_text("")
    assert main(["export", TRACE, "--to", "csv", "-o", f"{place}/a.csv"]) == 2
    said = capsys.readouterr().err
    assert f"cannot write {place}/a.csv: N" in said and "hint: " in said


def test_a_timeline_without_times_names_every_other_form(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["export", "h200/gemm_traffic", "--to", "chrome"]) == 2
    assert "export to csv, json, npz or parquet" in capsys.readouterr().err


def test_a_missing_source_is_asked_for_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith("are required: SOURCE\n")


def test_a_trace_where_a_source_is_wanted() -> None:
    with pytest.raises(UserError, match="is a folder, not a source") as caught:
        check(Options(TRACE))
    assert caught.value.hint == f"a trace is shown with: gpuwatch replay {TRACE}"
