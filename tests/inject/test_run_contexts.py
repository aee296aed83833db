"""Contexts that end while they are probed, two at a time, and modules that come and go."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from inject_support import HERE, Start, key_for, stop_file, whole

from gpuwatch.engine.program_attachment import Attachment

COUNTING = HERE.parent / "corpus" / "probes" / "store_trail.py"
"""Has a map of dynamic capacity: what it needs is counted by a first build."""
APART = 16
"""Bytes between a variable in one context and in the next (FAKE_APART)."""


# ---- contexts


def test_a_context_ends_with_several_shapes_in_it(run: Start) -> None:
    """All of it is released before the end, although most lies in the second that was loaded."""
    watched = run("reset-shapes", 8, "FAKE_SLOW_FREE=30000", kernel="vadd", map_limit=2_400)
    assert (watched.ended.status, watched.errors) == (0, "")
    assert sorted(one.launch for one in watched.seen) == list(range(8))


def test_builds_of_both_contexts_count_and_are_read(run: Start) -> None:
    watched = run("two-contexts", 24, loader="library", kernel="vadd", probe=str(COUNTING))
    (attachment,) = watched.session.attachments.values()
    builds = attachment.builds.values()
    assert {one.observed for one in builds if one.counting} == {0}
    woven = [one.observed for one in builds if not one.counting]
    assert len(woven) == 2
    assert all(woven)
    assert watched.errors == ""


def test_variables_are_those_of_the_context_that_is_launched_in(
    start: Start, tmp_path: Path
) -> None:
    """Also where builds for both are wanted while those of the probe before are given up."""
    stop, variable = stop_file(tmp_path)
    environment = (variable, "FAKE_APART=1", "FAKE_SLOW_LAUNCH=300", "FAKE_SLOW_FREE=5000")
    watched = start("tally-two", 0, *environment, loader="library", hold=False, wait=False)
    key, attached = key_for(watched, "tally"), list[Attachment]()
    for turn in range(8):
        attached.append(watched.session.attach(key, ("block_sched", "warp_duration")[turn % 2]))
        watched.until(partial(_both_are_read, attached[-1]))
    stop.touch()
    watched.end()
    assert (watched.ended.status, watched.errors) == (0, "")
    builds = [one for all_ in attached for one in all_.builds.values()]
    places = {id(one): one.wanted.addresses["total"] % 256 for one in builds}
    assert {places[one.build] - APART * (one.launch % 2) for one in watched.seen} == {0}


def _both_are_read(attachment: Attachment) -> bool:
    return sum(one.observed > 0 for one in attachment.builds.values()) >= 2


def test_what_ended_contexts_held_is_given_back(run: Start) -> None:
    """Under a limit that is not enough for two of them."""
    watched = run("many-contexts", 12, loader="library", kernel="vadd", map_limit=8_000)
    assert watched.errors == ""
    assert (watched.launches, whole(watched.seen)) == (list(range(24)), True)
    (attachment,) = watched.session.attachments.values()
    assert attachment.held == {0: 0}
    assert list(attachment.process.link.folder.glob("slots-*")) == []


# ---- modules


def test_what_unloaded_modules_held_is_given_back(run: Start) -> None:
    watched = run("unload-many", 6, kernel="vadd")
    assert watched.ended.output.startswith("memory given back: 1\n")
    assert sorted(one.launch for one in watched.seen) == list(range(6))


def test_a_linked_image_that_is_loaded_again(run: Start) -> None:
    """No launch goes with a build that has the address of what was unloaded."""
    watched = run("linked-twice", 3, "FAKE_NO_GAPS=1", kernel="tally")
    (attachment,) = watched.session.attachments.values()
    builds = attachment.builds.values()
    assert len({one.wanted.addresses["total"] for one in builds}) == 2
    assert [one.observed for one in builds] == [3, 3]
    assert watched.errors == ""


def test_nothing_is_unloaded(run: Start) -> None:
    """Another library has kernels of the same names."""
    watched = run("unload-nothing", 3, loader="library", kernel="vadd")
    assert (watched.launches, watched.errors) == (list(range(6)), "")
    assert [one.launches for one in watched.kernels] == [6]
