"""`gpuwatch report --ncu` where ncu cannot count: the report stands, the reason follows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuwatch.cli import main

SMALL = ("gemm", "-d", "sim", "-n", "1", "--", "32", "32", "32")


def test_the_report_is_printed_and_then_why_ncu_counts_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert main(["report", "--ncu", *SMALL]) == 2
    said = capfd.readouterr()
    assert "SM occupancy" in said.out
    assert "ncu counts on a real GPU" in said.err and "hint: " in said.err


def test_json_holds_the_reason(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--ncu", "--json", *SMALL]) == 2
    values = json.loads(capfd.readouterr().out)
    assert "real GPU" in values["ncu"]["error"] and "--ncu" in values["ncu"]["hint"]
    assert main(["report", "--json", *SMALL]) == 0
    assert "ncu" not in json.loads(capfd.readouterr().out)


def test_a_trace_has_no_program_for_ncu(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trace = str(tmp_path / "trace")
    assert main(["record", "-o", trace, *SMALL]) == 0
    assert main(["report", "--ncu", trace]) == 2
    assert "a trace has none" in capfd.readouterr().err
