"""The common time axis of a real GPU's SMs."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest

from gpuwatch.device.cuda import CudaDevice, open_cuda
from gpuwatch.engine import report_time_axis
from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session
from gpuwatch.engine.time_axis import measure
from gpuwatch.probe.catalogue import folder
from gpuwatch.toolchain import find

pytestmark = pytest.mark.gpu


@pytest.fixture
def device() -> Iterator[CudaDevice]:
    device = open_cuda()
    yield device
    device.close()


def test_every_sm_lies_on_the_axis_within_a_step_of_the_timer(device: CudaDevice) -> None:
    axis = measure(device, find())
    assert axis is not None
    print(f"{axis.step_ns} ns steps, residual {axis.residual_ns:.1f} ns, ", end="")
    print(f"{1 / axis.ns_per_cycle:.4f} GHz, rates within {axis.rate_spread:.1e}, ", end="")
    print(f"origins apart by {np.ptp(axis.origin):,} cycles")
    assert axis.covers(np.arange(device.info.sm_count))
    assert axis.residual_ns <= max(axis.step_ns, 50.0)
    assert 1 <= axis.step_ns <= 2000
    assert axis.rate_spread < 1e-3


@pytest.mark.parametrize("apart", [0.0, 0.1, 2.0])
def test_sms_keep_their_distance(device: CudaDevice, apart: float) -> None:
    first = measure(device, find())
    time.sleep(apart)
    again = measure(device, find())
    assert first is not None and again is not None
    drift = again.drift_from(first)
    print(f"{drift:.1f} ns apart after {apart:g} s")
    assert drift < 500


def test_blocks_of_a_launch_start_within_microseconds_of_each_other() -> None:
    source = str(folder("kernels") / "gemm_tiled.cu")
    session = Session(Options(source, device="cuda", probe="block_sched"))
    try:
        session.prepare()
        session.step()
        frame = session.frame()
    finally:
        session.close()
    times = report_time_axis.sm_times(frame)
    print(report_time_axis.sentence(frame))
    assert len(times) == frame.device.sm_count
    assert max(one.start_us for one in times) < 10
    longest = max(one.end_us for one in times)
    assert longest == pytest.approx(frame.seconds_probed * 1e6, rel=0.25)
