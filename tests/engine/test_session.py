"""A session on the simulated device, with the shipped kernels at a small size."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import numpy as np
import pytest
from rich.console import Console

from gpuwatch.engine import report
from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError
from gpuwatch.probe.catalogue import folder

SMALL = ("128", "128", "128")


def _options(kernel: str = "gemm", **changes: object) -> Options:
    given: dict[str, object] = {
        "source": str(folder("kernels") / f"{kernel}.cu"),
        "device": "sim:a10",
        "arguments": SMALL,
        **changes,
    }
    return Options(**given)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    one = Session(_options())
    one.prepare()
    yield one
    one.close()


def test_every_warp_arrives_and_outputs_are_identical(session: Session) -> None:
    session.select(probe="block_sched")
    for _ in range(3):
        session.step()
    frame = session.frame()
    assert frame.launches == 3
    assert (frame.records, frame.missing, frame.dropped) == (frame.warps, 0, 0)
    assert frame.outputs_identical is True
    assert frame.warps_table is not None
    assert np.array_equal(frame.warps_table.warp, np.arange(frame.warps))
    assert set(frame.warps_table.count) == {3}


def test_two_launches_on_the_simulated_device_are_equal(session: Session) -> None:
    tables = []
    for _ in range(2):
        session.step()
        table = session.frame().warps_table
        assert table is not None
        tables.append(table)
    assert np.array_equal(tables[0].start, tables[1].start)
    assert np.array_equal(tables[0].elapsed, tables[1].elapsed)
    assert np.array_equal(tables[0].sm, tables[1].sm)


def test_warp_duration_names_each_persistent_warp_once(session: Session) -> None:
    session.select(probe="warp_duration")
    session.step()
    table = session.frame().warps_table
    assert table is not None
    assert np.array_equal(np.sort(table.fields["warpid"]), np.arange(len(table)))


def test_reset_forgets_the_launches(session: Session) -> None:
    session.step()
    session.reset()
    session.step()
    assert session.frame().launches == 1


def test_a_failed_selection_keeps_the_former_one(session: Session) -> None:
    session.select(probe="block_sched")
    with pytest.raises(UserError, match="no_such_probe"):
        session.select(probe="no_such_probe")
    session.step()
    assert session.frame().probe == "block_sched"


def test_a_kernel_name_that_matches_none_lists_them(session: Session) -> None:
    with pytest.raises(UserError) as caught:
        session.select(kernel="no_such_kernel")
    assert "gemm_gpu" in caught.value.detail


@pytest.mark.parametrize(
    "name", ["gemm_gpu", "gemm", "_Z8gemm_gpuPKfS0_Pfiii", "gemm_gpu(const float *, const"]
)
def test_a_kernel_is_found_by_name_or_unique_part(session: Session, name: str) -> None:
    assert session.program.find_kernel(name) == "_Z8gemm_gpuPKfS0_Pfiii"


def test_the_json_has_the_promised_keys_and_is_plain(session: Session) -> None:
    session.step()
    values = json.loads(json.dumps(report.as_json(session.frame())))
    assert {
        "kernel", "mangled", "probe", "device", "launch", "launches", "blocks", "warps",
        "records", "missing", "dropped", "running_cycles_mean", "idle_cycles_mean", "elapsed",
        "sm", "occupancy_mean", "outputs_identical", "registers", "kernel_seconds",
        "wall_seconds_per_launch", "thread_instructions",
    } <= set(values)  # fmt: skip
    assert set(values["device"]) == {"name", "kind", "profile", "sm_count", "modelled"}
    assert set(values["elapsed"]) == {"min", "p50", "p90", "p99", "max", "mean"}
    assert set(values["kernel_seconds"]) == {"plain", "probed", "ratio"}
    assert len(values["sm"]) == 72
    assert set(values["sm"][0]) == {
        "sm", "blocks", "warps", "occupancy", "busy_cycles", "idle_cycles"
    }  # fmt: skip


def test_the_text_labels_modelled_figures(session: Session) -> None:
    session.select(probe="warp_duration")
    session.step()
    console = Console(width=120, record=True, file=io.StringIO())
    report.render(session.frame(), console)
    text = console.export_text()
    assert "Total Blocks: " in text
    assert "Average Running Time: " in text
    assert "(modelled cycles)" in text
    assert "Warp ID" in text


@pytest.mark.parametrize("spec", ["gpu", "sim:none", "cuda:x", "auto:1", ""])
def test_an_unknown_device_is_refused(spec: str) -> None:
    with pytest.raises(UserError):
        Session(_options(device=spec))


def test_the_article_launch_shapes() -> None:
    shapes = {}
    for device in ("sim:a10", "sim:h200"):
        one = Session(_options(device=device, arguments=()))
        choice = one.kernels()[0]
        shapes[device] = (choice.grid, choice.block, choice.launches)
        one.close()
    assert shapes == {
        "sim:a10": ((32, 43, 1), (32, 24, 1), 1),
        "sim:h200": ((32, 32, 1), (32, 32, 1), 1),
    }
