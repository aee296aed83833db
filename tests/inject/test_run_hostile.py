"""Programs that fork, end, are interrupted and get functions as it suits them."""

from __future__ import annotations

from inject_support import Start, whole


def test_many_functions_at_once(run: Start) -> None:
    """Both sides have much to say, and neither waits for the other to listen."""
    watched = run("burst", 1500, kernel="nothing at all")
    (process,) = watched.session.processes.values()
    assert len(process.kernels) == 6 * 1500 + 1
    assert process.said_bye
    assert watched.kernel("vadd").launches == 1


def test_a_grandchild_keeps_its_files(run: Start) -> None:
    watched = run("fork-twice", 3, kernel="vadd")
    assert watched.ended.output.startswith("files lost: 0\n")
    assert watched.launches == [0, 1, 2]


def test_a_handler_ends_the_program_within_a_launch(run: Start) -> None:
    """The thread that it interrupts has the lock."""
    watched = run("exit-in-signal", 50, "FAKE_SLOW_CAPTURE=200000", kernel="vadd")
    assert (watched.ended.status, watched.errors) == (9, "")


def test_a_thread_is_cancelled_within_a_launch(run: Start) -> None:
    watched = run("cancelled", 3, "FAKE_SLOW_CAPTURE=20000", kernel="vadd")
    assert (watched.ended.status, watched.errors) == (0, "")
    assert len(watched.seen) > 4
    assert whole(watched.seen)


def test_no_call_comes_when_the_driver_has_ended(run: Start) -> None:
    """Although memory is given back, and times are asked for, while the program ends."""
    slow = ("FAKE_SLOW_FREE=20000", "FAKE_SLOW_FLUSH=100000", "FAKE_SLOW_END=300000")
    watched = run("many", 1, "FAKE_REFUSE_PROBED=1", *slow, kernel="vadd")
    assert (watched.ended.status, watched.seen) == (0, [])
    assert "it cannot be launched" in watched.errors
