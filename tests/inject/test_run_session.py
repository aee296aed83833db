"""Programs in a session, as `gpuwatch run` starts them, over a driver that stands in for a GPU."""

from __future__ import annotations

import pytest
from inject_support import (
    HERE,
    PLAIN_NS,
    PROBED_NS,
    Start,
    whole,
)

from gpuwatch.inject.protocol import Shape

PROBES = HERE.parent / "corpus" / "probes"
SLOTS = 8
"""Launches whose records may be under way at once."""


def test_kernels_are_listed_with_their_launches(run: Start) -> None:
    watched = run("others", 5, hold=False)
    vadd, twice = watched.kernel("vadd"), watched.kernel("twice")
    assert (vadd.launches, twice.launches, vadd.probed, vadd.skipped) == (5, 5, 0, 0)
    assert (vadd.grid, vadd.block, vadd.shapes) == ((8, 1, 1), (128, 1, 1), 1)
    assert vadd.total_seconds == pytest.approx(5 * PLAIN_NS / 1e9)
    assert vadd.mean_seconds == pytest.approx(PLAIN_NS / 1e9)
    assert (vadd.origin, vadd.why, vadd.registers, vadd.static_shared) == ("PTX text", "", 20, 64)
    assert vadd.occupancy == 1.0
    assert watched.seen == []


def test_shapes_of_a_kernel_are_counted_together(run: Start) -> None:
    vadd = run("shapes", 5, hold=False).kernel("vadd")
    assert (vadd.launches, vadd.shapes, vadd.grid) == (5, 2, (8, 1, 1))


@pytest.mark.parametrize(
    ("loader", "image", "origin"),
    [
        ("data", "ptx", "PTX text"),
        ("options", "ptx", "PTX text"),
        ("file", "ptx", "PTX text"),
        ("linked", "ptx", "PTX text"),
        ("library", "ptx", "PTX text"),
        ("library-file", "ptx", "PTX text"),
        ("early", "ptx", "PTX text"),
        ("fatbin", "fatbin", "in the program"),
        ("wrapped", "fatbin", "in the program"),
        ("library", "fatbin", "in the program"),
    ],
)
def test_the_only_launch_of_a_kernel_however_loaded(
    run: Start, loader: str, image: str, origin: str
) -> None:
    watched = run("many", 1, kernel="vadd", loader=loader, image=image)
    assert watched.errors == ""
    assert [(one.name, one.launch) for one in watched.seen] == [("vadd", 0)]
    assert watched.kernel("vadd").origin == origin


def test_machine_code_is_left_alone(run: Start) -> None:
    watched = run("many", 3, kernel="vadd", image="cubin")
    assert watched.seen == []
    assert "machine code" in watched.kernel("vadd").why
    assert watched.kernel("vadd").launches == 3


@pytest.mark.parametrize("how", ["many", "extra", "config", "cooperative", "per-thread", "shared"])
def test_every_launch_has_its_records(run: Start, how: str) -> None:
    watched = run(how, 20, kernel="vadd")
    assert watched.errors == ""
    assert watched.launches == list(range(20))
    assert whole(watched.seen)
    assert {(len(one.table), one.blocks) for one in watched.seen} == {(32, 8)}
    assert {one.seconds for one in watched.seen} == {PROBED_NS / 1e9}
    kernel = watched.kernel("vadd")
    assert (kernel.launches, kernel.probed, kernel.skipped) == (20, 20, 0)
    assert kernel.total_seconds == pytest.approx(20 * PROBED_NS / 1e9)


@pytest.mark.parametrize("kernel", ["constant", "constant-extra", "tally", "wide", "nothing"])
def test_kernels_with_other_needs(run: Start, kernel: str) -> None:
    """Constants and variables of the module, no room for another parameter, none at all."""
    name = "scale" if kernel.startswith("constant") else kernel
    watched = run(kernel, 10, kernel=name)
    assert watched.errors == ""
    assert watched.launches == list(range(10))
    assert whole(watched.seen)


def test_the_own_variables_of_the_program_are_used(run: Start) -> None:
    watched = run("tally", 2, kernel="tally")
    (attachment,) = watched.session.attachments.values()
    (build,) = attachment.builds.values()
    address = build.wanted.addresses["total"]
    assert address != 0
    assert str(address) in build.woven.text or f"{address:#x}" in build.woven.text.lower()


def test_each_shape_has_a_build(run: Start) -> None:
    watched = run("shapes", 9, kernel="vadd")
    assert watched.launches == list(range(9))
    assert whole(watched.seen)
    of = {one.number: (one.build, len(one.table)) for one in watched.seen}
    assert {size for number, (_, size) in of.items() if number % 2 == 0} == {32}
    assert {size for number, (_, size) in of.items() if number % 2} == {2}
    assert len({build for build, _ in of.values()}) == 2


def test_maps_of_dynamic_capacity_are_counted_first(run: Start) -> None:
    """Launches before the library has heard of it count, too, and are not read."""
    watched = run("many", 60, kernel="vadd", probe=str(PROBES / "store_trail.py"))
    (attachment,) = watched.session.attachments.values()
    counted, *others = attachment.builds.values()
    assert counted.counting and counted.observed == 0
    assert [one.counting for one in others] == [False]
    assert 0 < others[0].observed == attachment.taken < 60


def test_the_figures_of_a_build_are_of_its_shape(run: Start) -> None:
    watched = run("shapes", 5, kernel="vadd")
    (attachment,) = watched.session.attachments.values()
    rows = attachment.process.rows()
    assert rows is not None
    builds = list(attachment.builds.values())
    assert [Shape.of_row(rows[one.row]) for one in builds] == [one.wanted.shape for one in builds]


def test_the_shapes_of_a_kernel_share_the_memory_for_maps(run: Start) -> None:
    watched = run("sizes", 40, kernel="nothing", map_limit=20_000)
    assert "no memory is left for maps of nothing" in watched.errors
    (attachment,) = watched.session.attachments.values()
    assert attachment.problem is None
    assert 0 < len(watched.seen) < 40
    assert attachment.held[0] <= 20_000


def test_only_the_kernels_wanted_are_probed(run: Start) -> None:
    watched = run("others", 4, kernel="twice")
    assert {one.name for one in watched.seen} == {"twice"}
    assert watched.launches == list(range(4))
    assert watched.kernel("vadd").launches == 4
    assert watched.kernel("vadd").probed == 0


def test_a_range_of_launches(run: Start) -> None:
    watched = run("many", 8, kernel="vadd", first=2, last=4)
    assert watched.launches == [2, 3, 4]
    assert whole(watched.seen)
    assert watched.kernel("vadd").skipped == 5


def test_some_launches_are_left_plain(run: Start) -> None:
    watched = run("many", 9, kernel="vadd", plain_every=2)
    assert watched.launches == [0, 1, 3, 4, 6, 7]
    assert whole(watched.seen)
    kernel = watched.kernel("vadd")
    assert (kernel.probed, kernel.skipped) == (6, 3)
    assert kernel.total_seconds == pytest.approx((6 * PROBED_NS + 3 * PLAIN_NS) / 1e9)


def test_a_pace_is_kept(run: Start) -> None:
    watched = run("many", 20, kernel="vadd", pace=0.001)
    assert watched.launches == [0]
    assert watched.kernel("vadd").skipped == 19


def test_where_launches_do_not_wait_some_go_unprobed(run: Start) -> None:
    watched = run("many", 200, kernel="vadd", wait=False)
    kernel = watched.kernel("vadd")
    assert kernel.launches == kernel.probed + kernel.skipped == 200
    assert kernel.probed == len(watched.seen) >= SLOTS
    assert whole(watched.seen)


def test_threads_launch_at_once(run: Start) -> None:
    watched = run("threads", 25, kernel="vadd")
    assert watched.launches == list(range(100))
    assert sorted(one.launch for one in watched.seen) == list(range(100))


def test_launches_that_the_driver_refuses(run: Start) -> None:
    """They are refused as ever, and another shape goes on being probed."""
    watched = run("bad", 3, kernel="vadd")
    assert watched.ended.output.count("launch: 1\n") == 3
    assert [one.launch for one in watched.seen] == [0]
    assert watched.errors == ""
