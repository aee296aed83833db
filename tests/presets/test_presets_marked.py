"""Lines that are marked where machine code and PTX differ: in JSON, in text, in the live view."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gpuwatch.engine import report
from gpuwatch.engine.client import WorkerClient
from gpuwatch.engine.frame import Frame
from gpuwatch.engine.machine_code import with_marks
from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session

SOURCE = Path(__file__).parents[1] / "benchmarks" / "kernels" / "access" / "patterns.cu"
SPLIT = "split: 1 global load of 16 bytes in PTX, 2 of 4 in machine code"
ADDED = "added for an atomic: no shared load in PTX, 1 of 4 bytes in machine code"
PATIENCE_SECONDS = 120.0


def line_of(text: str) -> int:
    """The last line of the source that has this text."""
    lines = SOURCE.read_text().splitlines()
    return max(number for number, line in enumerate(lines, 1) if text in line)


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    opened = Session(Options(str(SOURCE), device="sim:h200"))
    yield opened
    opened.close()


def watched(session: Session, kernel: str, probe: str) -> Frame:
    session.select(kernel=kernel, probe=probe)
    return with_marks(session, session.frame())


def marked(frame: Frame) -> dict[int, str]:
    lines: list[dict[str, Any]] = report.as_json(frame)["lines"]
    return {line["line"]: line["marked"] for line in lines if "marked" in line}


def text_of(frame: Frame, *, lines: bool = False) -> str:
    console = Console(file=io.StringIO(), width=200)
    report.render(frame, console, lines=lines)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_split_load_is_marked(session: Session) -> None:
    frame = watched(session, "vectors_in_part", "gmem_traffic")
    line = line_of("const float4 value = in[i];")
    assert marked(frame) == {line: SPLIT}
    assert f"line {line}: {SPLIT}" in text_of(frame)


@pytest.mark.parametrize("kernel", ["coalesced", "vectors", "misaligned", "predicated"])
def test_whole_accesses_are_not_marked(session: Session, kernel: str) -> None:
    frame = watched(session, kernel, "gmem_traffic")
    assert not marked(frame)
    assert "Machine code differs" not in text_of(frame)


def test_accesses_of_machine_code_alone_have_a_line_without_figures(session: Session) -> None:
    frame = watched(session, "atomics", "smem_conflicts")
    line = line_of("atomicAdd(&sum, 1.0f);")
    rows = [one for one in report.as_json(frame)["lines"] if one["line"] == line]
    assert rows == [{"line": line, "function": "", "marked": ADDED}]


def test_marks_are_those_of_what_the_probe_counts(session: Session) -> None:
    assert not watched(session, "atomics", "gmem_traffic").marked
    assert not watched(session, "vectors_in_part", "instr_mix").marked


def test_operations_that_ptxas_adds_are_marked(session: Session) -> None:
    """An atomic addition is a loop that adds, for want of one in shared memory."""
    frame = watched(session, "atomics", "instr_mix")
    line = line_of("atomicAdd(&sum, 1.0f);")
    assert marked(frame) == {line: "0 floating-point operations in PTX, 1 in machine code"}


def test_every_line_is_listed_with_its_text(session: Session) -> None:
    frame = watched(session, "shared_columns", "smem_conflicts")
    assert "tile[x][y]" not in text_of(frame)
    listed = text_of(frame, lines=True)
    assert "Shared memory per line" in listed
    assert "if (i < n) out[i] = tile[x][y] + tile[y][5];" in listed
    assert "FLOP" in text_of(watched(session, "shared_columns", "instr_mix"), lines=True)


def test_without_a_disassembler_a_note_says_so(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_wheel(name: str) -> None:
        raise PackageNotFoundError(name)

    session.select(kernel="vectors_in_part", probe="gmem_traffic")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr("importlib.metadata.distribution", no_wheel)
    frame = with_marks(session, session.frame())
    assert not frame.marked
    (note,) = (note for note in frame.notes if "not marked" in note)
    assert "there is no nvdisasm; install it with: pip install nvidia-cuda-nvdisasm" in note


def test_the_live_view_gets_the_marks_after_its_first_frames() -> None:
    options = Options(str(SOURCE), "sim:h200", kernel="vectors_in_part", probe="gmem_traffic")
    watch = WorkerClient(options)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (listing := watch.listing()) is None or not listing.marked:
            assert time.monotonic() < deadline, watch.status()
            time.sleep(0.05)
        assert [one.reason for one in listing.marked] == [SPLIT]
        assert listing.source == SOURCE.read_text()
    finally:
        watch.close()
