"""A saved source is compiled beside the launches, and made again when it assumed wrongly."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from worker_support import PATIENCE_SECONDS, until

from gpuwatch.device.base import GaveWay, Interrupt
from gpuwatch.engine.background import POLL_SECONDS, Rebuilt, Recompiler
from gpuwatch.errors import UserError


class _Program:
    def __init__(self, assumed: bool, confirm: Callable[[], object]) -> None:
        self.assumed, self.confirm = assumed, confirm


class _Build:
    def __init__(self, text: str, again: bool, program: _Program) -> None:
        self.text, self.again, self.program = text, again, program
        self.priority = 0
        self.compared = self.closed = False

    def compare(self, _kernel: str, _probe: str, interrupt: Interrupt) -> None:
        if self.text == "cannot run plain":
            raise UserError("it faults")
        while self.text == "runs long":
            if interrupt():
                raise GaveWay
            time.sleep(0.01)
        self.compared = True

    def close(self) -> None:
        self.closed = True

    def alike(self, *_given: object) -> str:
        return "kernel"

    def prepare(self, *_given: object, compared: bool) -> None:
        assert not compared
        self.priority = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


class _Session:
    """Builds from the text of the source; the text "assumes" has the launches assumed, and they
    are others, as the program says when `confirms` is set."""

    selected = ("kernel", "probe")
    program = None

    def __init__(self) -> None:
        self.confirms = threading.Event()
        self.goes_on = threading.Event()
        self.compiling = 0
        self.goes_on.set()

    def has(self, _source: str) -> bool:
        return True

    def compile(self, source: str, _progress: object, *, again: _Build | None = None) -> Any:
        text = Path(source).read_text()
        self.compiling += 1
        assert self.goes_on.wait(PATIENCE_SECONDS)
        assumed = again is None and text == "assumes"
        return _Build(text, again is not None, _Program(assumed, self._confirm))

    def _confirm(self) -> object:
        assert self.confirms.wait(PATIENCE_SECONDS)
        return "others"


class _Run:
    def __init__(self, source: Path) -> None:
        source.write_text("first")
        self.source = source
        self.session = _Session()
        self.compiler = Recompiler(
            self.session,  # type: ignore[arg-type]
            [str(source)],
            [],
            lambda _text: None,
        )
        self.compiler.start()

    def save(self, text: str) -> None:
        """In place of the former file at once, as its stamp may not be that of half of it."""
        other = self.source.with_suffix(".new")
        other.write_text(text)
        other.replace(self.source)

    def outcome(self) -> tuple[str, bool]:
        found: Rebuilt = self.compiler.outcomes.get(timeout=PATIENCE_SECONDS)
        assert isinstance(found.build, _Build)
        return found.build.text, found.build.again


@pytest.fixture
def run(tmp_path: Path) -> Iterator[_Run]:
    one = _Run(tmp_path / "a.cu")
    yield one
    one.session.confirms.set()
    one.session.goes_on.set()
    one.compiler.end()
    one.compiler.join()


def test_a_build_that_assumed_wrongly_is_made_again_at_full_priority(run: _Run) -> None:
    run.save("assumes")
    assert run.outcome() == ("assumes", False)
    run.session.confirms.set()
    found = run.compiler.outcomes.get(timeout=PATIENCE_SECONDS).build
    assert isinstance(found, _Build) and found.again
    assert found.priority == os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_a_save_meanwhile_makes_what_is_made_again_worthless(run: _Run) -> None:
    run.save("assumes")
    assert run.outcome() == ("assumes", False)
    run.session.goes_on.clear()
    run.session.confirms.set()
    until(lambda: run.session.compiling == 2)
    assert run.compiler.busy
    run.save("newest")
    run.session.goes_on.set()
    assert run.outcome() == ("newest", False)
    until(lambda: not run.compiler.busy)
    assert run.compiler.outcomes.empty()


def test_what_is_confirmed_too_late_changes_nothing(run: _Run) -> None:
    run.save("assumes")
    assert run.outcome() == ("assumes", False)
    run.session.goes_on.clear()
    run.save("newest")
    until(lambda: run.session.compiling == 2)
    run.session.confirms.set()
    until(lambda: not any(one.name == "gpuwatch-check" for one in threading.enumerate()))
    assert run.compiler.busy
    run.session.goes_on.set()
    assert run.outcome() == ("newest", False)
    until(run.compiler._confirmed.empty)
    assert run.compiler.outcomes.empty() and run.session.compiling == 2


def test_what_is_shown_is_compared_afterwards(run: _Run) -> None:
    run.save("quick")
    build = run.compiler.outcomes.get(timeout=PATIENCE_SECONDS).build
    assert isinstance(build, _Build)
    until(lambda: build.compared)
    until(lambda: not run.compiler.occupied)


def test_a_save_ends_a_comparison_for_good(run: _Run) -> None:
    run.save("runs long")
    former = run.compiler.outcomes.get(timeout=PATIENCE_SECONDS).build
    assert run.compiler.occupied
    run.save("newest")
    newest = run.compiler.outcomes.get(timeout=PATIENCE_SECONDS).build
    assert isinstance(former, _Build) and isinstance(newest, _Build)
    until(lambda: newest.compared)
    until(lambda: not run.compiler.occupied)
    assert not former.compared


def test_a_plain_kernel_that_cannot_run_is_told_after_the_build(run: _Run) -> None:
    run.save("cannot run plain")
    assert run.outcome() == ("cannot run plain", False)
    told: Rebuilt = run.compiler.outcomes.get(timeout=PATIENCE_SECONDS)
    assert told.build is None and told.problem is not None
    assert told.problem.message == "it faults"


def test_a_build_that_a_save_has_made_worthless_is_closed(run: _Run) -> None:
    built: list[_Build] = []
    compiled = run.session.compile

    def compile_and_save(*given: Any, **named: Any) -> Any:
        built.append(compiled(*given, **named))
        return built[-1]

    def prepare(*_given: object, compared: bool) -> None:
        assert not compared
        if len(built) == 1:
            run.save("newest")

    run.session.compile = compile_and_save  # type: ignore[method-assign]
    with patch.object(_Build, "prepare", prepare):
        run.save("first again")
        assert run.outcome() == ("newest", False)
    assert [one.closed for one in built] == [True, False]


def test_a_build_that_cannot_run_is_closed(run: _Run) -> None:
    built: list[_Build] = []

    def prepare(build: _Build, *_given: object, compared: bool) -> None:
        assert not compared
        built.append(build)
        raise UserError("it faults")

    with patch.object(_Build, "prepare", prepare):
        run.save("faults")
        told = run.compiler.outcomes.get(timeout=PATIENCE_SECONDS)
    assert told.build is None and told.problem is not None
    assert [one.closed for one in built] == [True]


def test_a_file_that_is_still_being_written_is_not_compiled(run: _Run) -> None:
    stops = time.monotonic() + 0.3
    while time.monotonic() < stops:
        run.save(f"half {time.monotonic()}")
        time.sleep(POLL_SECONDS / 10)
    run.save("whole")
    assert run.outcome() == ("whole", False)
    assert run.session.compiling <= 2
