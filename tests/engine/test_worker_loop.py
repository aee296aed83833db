"""What the worker does between launches, in this process."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from gpuwatch.device.base import Interrupt
from gpuwatch.engine.mailbox import Envelope, Mailbox
from gpuwatch.engine.messages import Answer, Aside, Record, Reset, Taken
from gpuwatch.engine.options import Options
from gpuwatch.engine.worker import _LEAST_PAUSE, _Worker

LAUNCH_SECONDS = 0.5


class _Session:
    """Its launches give way when they are asked to."""

    def __init__(self) -> None:
        self.launches = 0
        self.has_frame = False

    def step(self, interrupt: Interrupt) -> None:
        time.sleep(LAUNCH_SECONDS)
        self.has_frame = not interrupt()
        self.launches += self.has_frame

    def frame(self) -> str:
        return "a frame"


class _Watched:
    """A worker and the screen's end of its connection."""

    def __init__(self, mailbox: Mailbox) -> None:
        self.screen, theirs = multiprocessing.Pipe()
        self.worker = _Worker(Options("none.cu"), theirs, mailbox.path)
        self.worker._session = _Session()  # type: ignore[assignment]

    def answers(self) -> list[Answer]:
        found = []
        while self.screen.poll():
            found.append(self.screen.recv())
        return found


@pytest.fixture
def watched() -> Iterator[_Watched]:
    mailbox = Mailbox()
    yield _Watched(mailbox)
    mailbox.close()


def test_a_launch_that_gave_way_is_not_published(watched: _Watched) -> None:
    watched.worker._launch()
    assert [type(one) for one in watched.answers()] == [Envelope]
    watched.screen.send(Taken())
    watched.screen.send(Reset())
    watched.worker._launch()
    assert watched.answers() == []


def _busy(watched: _Watched) -> None:
    watched.worker._beside = SimpleNamespace(  # type: ignore[assignment]
        busy=True, has_rebuilt=False, has_begun=lambda: False
    )


def _seconds(action: Callable[[], None]) -> float:
    begun = time.monotonic()
    action()
    return time.monotonic() - begun


def test_a_request_ends_the_pause_after_a_launch_beside_a_compiler(watched: _Watched) -> None:
    _busy(watched)
    watched.screen.send(Reset())
    assert _seconds(watched.worker._launch) < 2 * LAUNCH_SECONDS


def test_a_launch_gives_way_to_a_compiler_that_begins(watched: _Watched) -> None:
    begun = iter([True, False])
    watched.worker._beside = SimpleNamespace(  # type: ignore[assignment]
        busy=False, has_rebuilt=False, has_begun=lambda: next(begun)
    )
    assert watched.worker._is_asked()
    assert not watched.worker._is_asked()


def test_beside_a_compiler_launches_nothing_for_a_while(watched: _Watched) -> None:
    _busy(watched)
    pauses: list[float] = []
    with patch.object(watched.worker, "_make_way", pauses.append):
        watched.worker._launch()
    assert pauses == [pytest.approx(max(_LEAST_PAUSE, 4 * LAUNCH_SECONDS), rel=0.5)]


def test_a_frame_that_was_taken_does_not(watched: _Watched) -> None:
    _busy(watched)
    watched.screen.send(Taken())
    assert _seconds(lambda: watched.worker._make_way(LAUNCH_SECONDS)) >= LAUNCH_SECONDS


def test_how_far_a_recording_is_is_told(watched: _Watched) -> None:
    def record(_session: object, target: Path, launches: int, told: Callable[[int], None]) -> Path:
        for number in range(launches):
            told(number + 1)
        return target

    with patch("gpuwatch.engine.worker.record", record):
        watched.worker._handle(Record("trace", 2))
    assert [one.text for one in watched.answers() if isinstance(one, Aside)] == [
        "recorded 0 of 2 launches",
        "recorded 1 of 2 launches",
        "recorded 2 of 2 launches",
        "",
    ]
