"""Presets that are prepared beside the launches give way to what matters more."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from gpuwatch.device.base import GaveWay, Interrupt
from gpuwatch.engine.background import Preparer
from gpuwatch.engine.build import Build

SECONDS = 20.0


class _Build:
    """Is disturbed once, in the middle of the first preset."""

    def __init__(self) -> None:
        self.tried: list[str] = []
        self.compiling = False

    def prepare(
        self, _kernel: str, probe: str, _progress: Callable[[str], None], interrupt: Interrupt
    ) -> None:
        self.tried.append(probe)
        assert not interrupt()
        if len(self.tried) == 1:
            self.compiling = True
            asked = interrupt()
            self.compiling = False
            assert asked
            raise GaveWay


def test_a_preset_that_gave_way_is_prepared_after_all() -> None:
    build = _Build()
    preparer = Preparer(loads=True, busy=lambda: build.compiling)
    preparer.start()
    preparer.want(cast(Build, build), "kernel", ["one", "two"])
    done = [preparer.outcomes.get(timeout=SECONDS) for _ in range(2)]
    preparer.end()
    preparer.join()
    assert [(one.probe, one.problem) for one in done] == [("one", None), ("two", None)]
    assert build.tried == ["one", "one", "two"]
