"""Launching back to back on a real GPU, with the records summed up there."""

from __future__ import annotations

import numpy as np
import pytest

from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session
from gpuwatch.probe.catalogue import folder

pytestmark = pytest.mark.gpu


def _session(kernel: str, *arguments: str, **changes: object) -> Session:
    source = str(folder("kernels") / f"{kernel}.cu")
    session = Session(Options(source, device="cuda", arguments=arguments, **changes))  # type: ignore[arg-type]
    session.prepare()
    return session


@pytest.mark.parametrize("arguments", [(), ("100", "70", "33")], ids=["1024", "odd"])
@pytest.mark.parametrize("probe", ["block_sched", "warp_duration"])
def test_the_sums_of_one_launch_are_those_of_its_records(
    probe: str, arguments: tuple[str, ...]
) -> None:
    session = _session("gemm_tiled", *arguments, probe=probe, max_rate=5.0)
    try:
        session.step()
        session.reset()
        session.step()
        frame = session.frame()
    finally:
        session.close()
    sums, table = frame.reduced, frame.warps_table
    assert sums is not None and table is not None and frame.sms is not None
    assert (sums.launches, sums.records, sums.missing, sums.dropped) == (1, frame.warps, 0, 0)
    assert sums.elapsed_sum == int(table.elapsed.sum())
    assert (sums.elapsed_min, sums.elapsed_max) == (table.elapsed.min(), table.elapsed.max())
    assert np.array_equal(sums.histogram, _histogram(table.elapsed))
    rows = len(sums.sm_sum)
    assert np.array_equal(sums.sm_records, np.bincount(table.sm, minlength=rows))
    weights = np.bincount(table.sm, table.elapsed, minlength=rows).astype(np.int64)
    assert np.array_equal(sums.sm_sum, weights)
    assert np.array_equal(sums.sm_span, frame.sms.busy_cycles[:rows])


def _histogram(elapsed: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    values = elapsed.astype(np.int64)
    top = np.floor(np.log2(np.maximum(values, 1))).astype(np.int64)
    shifted = values >> np.maximum(top - 4, 0)
    buckets = np.where(values < 16, values, (top - 3) * 16 + (shifted & 15))
    return np.bincount(buckets, minlength=1024)


def test_every_launch_counts() -> None:
    session = _session("gemm_tiled")
    try:
        session.reset()
        for _ in range(30):
            session.step()
        frame = session.frame()
    finally:
        session.close()
    sums = frame.reduced
    assert sums is not None
    # Up to the launch that was copied last; a step may end with a few behind it.
    assert 0 <= frame.launches - sums.launches + 12 < 120
    assert sums.records == sums.launches * frame.warps
    assert (sums.missing, sums.dropped) == (0, 0)


def test_going_to_another_probe_and_back_leaves_all_records_whole() -> None:
    session = _session("gemm")
    try:
        for probe in ("warp_duration", "block_sched", "warp_duration"):
            session.select(probe=probe)
            for _ in range(5):
                session.step()
            frame = session.frame()
            assert (frame.records, frame.missing, frame.dropped) == (frame.warps, 0, 0)
    finally:
        session.close()
