"""Marked lines are found beside the launches, for what was selected last."""

from __future__ import annotations

import threading
import time
from typing import Any, cast

import pytest

from gpuwatch.engine.marked_lines import MarkedLine
from gpuwatch.engine.marker import Marked, Marker
from gpuwatch.errors import UserError

PATIENCE_SECONDS = 20.0


def _taken(marker: Marker) -> Marked:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := marker.take()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


def test_only_the_newest_selection_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()
    asked = []

    def marks_of(_program: Any, plain: str, maps: list[str]) -> tuple[MarkedLine, ...]:
        asked.append(plain)
        begun.set()
        assert go_on.wait(PATIENCE_SECONDS)
        if plain == "broken":
            raise UserError("there is no nvdisasm")
        return (MarkedLine(maps[0], "", 7, plain),)

    monkeypatch.setattr("gpuwatch.engine.marker.marks_of", marks_of)
    marker = Marker()
    marker.start()
    want = cast(Any, marker.want)
    want(None, "first", ["global_loads"])
    assert begun.wait(PATIENCE_SECONDS)
    for name in ("second", "third"):
        want(None, name, ["global_loads"])
    go_on.set()
    assert [one.reason for one in _taken(marker).lines] == ["third"]
    assert asked == ["first", "third"] and marker.take() is None
    want(None, "none", [])
    want(None, "broken", ["global_loads"])
    problem = _taken(marker).problem
    assert problem is not None and problem.message == "there is no nvdisasm"
    assert "none" not in asked
    marker.end()
    marker.join()
