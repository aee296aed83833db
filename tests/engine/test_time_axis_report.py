"""The common time axis in sessions and reports, and when a GPU's is measured."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import numpy as np
import pytest
from rich.console import Console

from gpuwatch.analysis.time_axis import TimeAxis
from gpuwatch.device.base import DeviceInfo
from gpuwatch.device.cuda import CudaDevice
from gpuwatch.engine import report, report_time_axis, time_axis
from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session
from gpuwatch.engine.time_axis import TimeAxisKeeper
from gpuwatch.probe.catalogue import folder
from gpuwatch.toolchain import Toolchain, find

GEMM = str(folder("kernels") / "gemm.cu")


def _frame(probe: str = "block_sched"):  # type: ignore[no-untyped-def]
    session = Session(Options(GEMM, device="sim:a10", probe=probe, arguments=("64",) * 3))
    try:
        session.prepare()
        session.step()
        return session.frame()
    finally:
        session.close()


def test_a_simulated_gpu_has_a_modelled_axis() -> None:
    frame = _frame()
    values = json.loads(json.dumps(report.as_json(frame)))["time_axis"]
    assert values["modelled"] and values["drift_ns"] is None
    used = [row["sm"] for row in report.as_json(frame)["sm"] if row["warps"]]
    assert [row["sm"] for row in values["sm"]] == used
    busy = max(row["busy_cycles"] for row in report.as_json(frame)["sm"])
    longest = max(row["end_us"] - row["start_us"] for row in values["sm"])
    assert longest == pytest.approx(busy * values["ns_per_cycle"] / 1e3)
    output = io.StringIO()
    report.render(frame, Console(file=output, width=200))
    assert "One time axis for all SMs" in output.getvalue()
    assert "(modelled)" in report_time_axis.sentence(frame)


def test_a_probe_without_sms_has_none() -> None:
    frame = _frame("gmem_traffic")
    assert frame.time_axis is None and report_time_axis.as_json(frame) is None
    assert report_time_axis.sentence(frame) == ""


def test_a_measured_axis_tells_how_good_it_is() -> None:
    frame = _frame()
    late = np.zeros(72, np.int64)
    late[1] = -20_000
    frame.time_axis = TimeAxis(late, 0.5, 32.0, 9.25, 1e-6, drift_ns=40.4, drift_seconds=2.5)
    assert "the last SM starts at 10.00 us" in report_time_axis.sentence(frame)
    assert "steps of 32 ns, fit within 9.2 ns" in report_time_axis.sentence(frame)
    assert "SMs moved 40 ns apart in 2.5 s" in report_time_axis.sentence(frame)


class _Gpu(CudaDevice):
    """One that nothing is asked of."""

    def __init__(self) -> None:
        self._info = DeviceInfo("GPU", "cuda", "0", "sm_90", 2, 64, 2e9, False)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock, in seconds; each measurement finds SM 1 further on by 100 cycles."""
    now, moved = [50.0], [0]

    def measure(_device: CudaDevice, _toolchain: Toolchain) -> TimeAxis:
        moved[0] += 100
        return TimeAxis(np.array([5, 7 + moved[0]]), 0.5, 32.0, 9.0, 0.0)

    monkeypatch.setattr(time_axis, "measure", measure)
    monkeypatch.setattr(time_axis.time, "monotonic", lambda: now[0])
    return now


def _settling(calls: list[str]) -> Callable[[], None]:
    return lambda: calls.append("settled")


def test_a_gpu_is_measured_again_after_a_while(gpu: list[float]) -> None:
    keeper, calls = TimeAxisKeeper(_Gpu()), list[str]()
    first = keeper.newest(find(), _settling(calls))
    gpu[0] += 1.0
    assert keeper.newest(find(), _settling(calls)) is first
    assert calls == ["settled"]
    gpu[0] += 4.0
    again = keeper.newest(find(), _settling(calls))
    assert first is not None and first.drift_ns is None and first.error_ns == 9.0
    assert again is not None and (again.drift_ns, again.drift_seconds) == (50.0, 5.0)
    assert again.error_ns == 50.0 and calls == ["settled"] * 2
