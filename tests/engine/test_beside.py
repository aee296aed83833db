"""What the launching thread makes of what was prepared beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from gpuwatch.engine.background import Prepared
from gpuwatch.engine.beside import Beside
from gpuwatch.engine.build import Build
from gpuwatch.engine.frame import LogEntry
from gpuwatch.engine.messages import Answer, Problems
from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError


class _Build:
    """Presets assemble, and cannot be loaded."""

    def __init__(self, fatal: bool) -> None:
        self._fatal = fatal

    def map_bytes(self) -> int:
        return 0

    def attach(self, *_given: object) -> None:
        raise UserError("out of memory", fatal=self._fatal)


class _Run:
    """Beside a GPU, whose presets are loaded by the thread that launches."""

    def __init__(self, source: Path) -> None:
        source.write_text("")
        session = SimpleNamespace(info=SimpleNamespace(modelled=False), settle=lambda: None)
        self.answers: list[Answer] = []
        self.beside = Beside(cast(Session, session), Options(str(source)), self.answers.append)

    def prepared(self, problem: UserError | None = None, *, fatal: bool = False) -> None:
        done = Prepared(cast(Build, _Build(fatal)), "kernel", "dmat", problem)
        self.beside._preparer.outcomes.put(done)
        self.beside.take_prepared()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[_Run]:
    one = _Run(tmp_path / "a.cu")
    yield one
    one.beside.end()


def test_a_preset_that_cannot_be_loaded_is_marked_and_the_launches_go_on(run: _Run) -> None:
    run.prepared()
    assert Problems((("dmat", "out of memory"),)) in run.answers
    told = [one.text for one in run.answers if isinstance(one, LogEntry)]
    assert told == ["dmat cannot attach: error: out of memory"]


def test_a_device_that_can_do_no_more_ends_them(run: _Run) -> None:
    with pytest.raises(UserError, match="out of memory"):
        run.prepared(fatal=True)


def test_a_launch_that_was_too_slow_beside_others_marks_nothing(run: _Run) -> None:
    run.prepared(UserError("the kernel did not end within 10 s", status=1))
    assert not any(isinstance(one, Problems) for one in run.answers)
    told = [one.text for one in run.answers if isinstance(one, LogEntry)]
    assert told == ["dmat is not prepared: error: the kernel did not end within 10 s"]
