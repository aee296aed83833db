"""Launching back to back on a real GPU, with the records summed up there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session
from gpuwatch.probe.catalogue import folder

pytestmark = pytest.mark.gpu

SPEND = """\
__device__ unsigned spent[2048];

__global__ void spend(unsigned *values)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (PLACE[i] == 0) {
        PLACE[i] = 1;
        PLACE[i + 1024] = 1;
    }
}

int main()
{
    unsigned *values;
    cudaMalloc(&values, 8192);
    cudaMemset(values, 0, 8192);
    spend<<<8, 128>>>(values);
    cudaDeviceSynchronize();
}
"""
"""Each warp stores twice, but only in a launch from the first contents."""
STORES = """\
import gpuwatch.language as gl

from gpuwatch import Map, probe


@Map(level="warp", type="array", size=8, cap=3)
class stores:
    at: gl.u64


@probe(pos="st.global", level="warp", before=True)
def at_store():
    stores.save(gl.clock())
"""


def _session(kernel: str, *arguments: str, **changes: object) -> Session:
    return _session_of(folder("kernels") / f"{kernel}.cu", arguments=arguments, **changes)


def _session_of(source: Path, **changes: object) -> Session:
    session = Session(Options(str(source), device="cuda", **changes))  # type: ignore[arg-type]
    session.prepare()
    return session


@pytest.mark.parametrize("plain_every", [16, 1], ids=["alone", "in a pair"])
@pytest.mark.parametrize("arguments", [(), ("100", "70", "33")], ids=["1024", "odd"])
@pytest.mark.parametrize("probe", ["block_sched", "warp_duration"])
def test_the_sums_of_one_launch_are_those_of_its_records(
    probe: str, arguments: tuple[str, ...], plain_every: int
) -> None:
    session = _session("gemm_tiled", *arguments, probe=probe, max_rate=5.0, plain_every=plain_every)
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


@pytest.mark.parametrize("place", ["values", "spent"], ids=["buffer", "variable"])
def test_of_a_timed_pair_one_launch_counts_and_each_begins_with_the_first_contents(
    tmp_path: Path, place: str
) -> None:
    source, probe = tmp_path / "spend.cu", tmp_path / "stores.py"
    source.write_text(SPEND.replace("PLACE", place))
    probe.write_text(STORES)
    session = _session_of(source, probe=str(probe), plain_every=1)
    try:
        session.reset()
        for _ in range(30):
            session.step()
            frame = session.frame()
            assert (frame.records, frame.missing, frame.dropped) == (2 * frame.warps, 0, 0)
    finally:
        session.close()
    sums = frame.reduced
    assert frame.outputs_identical and sums is not None
    assert sums.records == sums.launches * 2 * frame.warps
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
