"""The whole path on a real GPU."""

from __future__ import annotations

import numpy as np
import pytest

from gpuwatch.engine.frame import Frame
from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session
from gpuwatch.probe.catalogue import folder

pytestmark = pytest.mark.gpu

SIZES = ((), ("512", "512", "512"), ("100", "70", "33"))


def _frame(kernel: str, probe: str, device: str, arguments: tuple[str, ...]) -> Frame:
    source = str(folder("kernels") / f"{kernel}.cu")
    session = Session(Options(source, device=device, probe=probe, arguments=arguments))
    try:
        session.prepare()
        for _ in range(3):
            session.step()
        return session.frame()
    finally:
        session.close()


@pytest.mark.parametrize("arguments", SIZES, ids=lambda a: "x".join(a) or "default")
@pytest.mark.parametrize("probe", ["block_sched", "warp_duration"])
@pytest.mark.parametrize("kernel", ["gemm", "gemm_tiled"])
def test_every_warp_arrives_and_outputs_are_identical(
    kernel: str, probe: str, arguments: tuple[str, ...]
) -> None:
    frame = _frame(kernel, probe, "cuda", arguments)
    assert frame.outputs_identical
    assert (frame.records, frame.missing, frame.dropped) == (frame.warps, 0, 0)
    table = frame.warps_table
    assert table is not None
    assert np.array_equal(table.warp, np.arange(frame.warps))
    assert table.elapsed.min() > 0
    assert 0 <= table.sm.min() <= table.sm.max() < frame.device.sm_count


def test_the_gpu_and_the_simulated_one_see_the_same_launch() -> None:
    real = _frame("gemm_tiled", "block_sched", "cuda", ("256", "256", "256"))
    modelled = _frame("gemm_tiled", "block_sched", "sim:h200", ("256", "256", "256"))
    assert (real.grid, real.block, real.records) == (
        modelled.grid,
        modelled.block,
        modelled.records,
    )
