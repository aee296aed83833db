"""The common time axis in sessions and reports, and when a GPU's is measured."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from gpuwatch.analysis.time_axis import TimeAxis
from gpuwatch.device.base import DeviceInfo
from gpuwatch.device.cuda import CudaDevice
from gpuwatch.engine import report, report_time_axis, time_axis
from gpuwatch.engine.frame import Frame
from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session
from gpuwatch.engine.time_axis import TimeAxisKeeper
from gpuwatch.probe.catalogue import folder
from gpuwatch.toolchain import Toolchain, find

GEMM = str(folder("kernels") / "gemm.cu")


def _frame(probe: str = "block_sched") -> Frame:
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


def _late(frame: Frame, **others: Any) -> TimeAxis:
    """SM 1 started 20000 cycles after the others' first."""
    warps = frame.warps_table
    assert warps is not None
    warps.start[:] += 1_000_000
    origin = np.full(72, int(warps.start.min()), np.int64)
    origin[1] -= 20_000
    values = {"drift_ns": 40.4, "drift_seconds": 2.5, **others}
    return TimeAxis(origin, 0.5, 32.0, 9.25, 1e-6, **values)


def test_a_measured_axis_tells_how_good_it_is() -> None:
    frame = _frame()
    frame.time_axis = _late(frame)
    said = report_time_axis.sentence(frame)
    assert "the last SM starts at 10.00 us" in said
    assert "(+-9 ns: timer steps of 32 ns, fit within 9.2 ns" in said
    assert "SMs moved 40 ns apart in 2.5 s" in said
    values = report_time_axis.as_json(frame)
    assert values is not None and values["usable"] and not values["own_rates"]
    assert {row["ns_per_cycle"] for row in values["sm"]} == {0.5}


def test_own_rates_are_told_and_used() -> None:
    frame = _frame()
    rates = np.full(72, 0.5)
    rates[1] *= 2
    frame.time_axis = _late(frame, rates=rates)
    alike, apart = _frame(), report_time_axis.sm_times(frame)
    alike.time_axis = _late(alike)
    former = report_time_axis.sm_times(alike)
    assert [one.sm for one in apart] == [one.sm for one in former]
    assert apart[0] == former[0]
    assert apart[1].start_us == pytest.approx(2 * former[1].start_us)
    assert apart[1].end_us == pytest.approx(2 * former[1].end_us)
    said = report_time_axis.sentence(frame)
    assert "SMs' own rates up to 1.0e-06 off" in said and "apart beyond them in 2.5 s" in said
    values = json.loads(json.dumps(report_time_axis.as_json(frame)))
    assert values["own_rates"]
    assert [row["ns_per_cycle"] for row in values["sm"][:3]] == [0.5, 1.0, 0.5]


def test_clocks_that_drift_too_much_are_on_no_axis() -> None:
    frame = _frame()
    frame.time_axis = _late(frame, drift_ns=730_000.0, drift_seconds=0.002)
    assert report_time_axis.sm_times(frame) == []
    said = report_time_axis.sentence(frame)
    assert said.startswith("No time axis for all SMs: their clocks drift too much for one, by")
    assert "where 2.0 us would do" in said and "starts at" not in said
    values = json.loads(json.dumps(report.as_json(frame)))["time_axis"]
    assert values["usable"] is False and values["sm"] == []
    assert values["error_ns"] > values["limit_ns"] == 2000.0
    output = io.StringIO()
    report.render(frame, Console(file=output, width=200))
    assert "drift too much for one" in output.getvalue()


class _Gpu(CudaDevice):
    """One that nothing is asked of."""

    def __init__(self) -> None:
        self._info = DeviceInfo("GPU", "cuda", "0", "sm_90", 2, 64, 2e9, False)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time in seconds; each measurement finds SM 1 further on by 100 cycles."""
    now, moved = [50.0], [0]

    def measure(_device: CudaDevice, _toolchain: Toolchain) -> TimeAxis:
        moved[0] += 100
        clock = int(now[0] * 2e9)
        return TimeAxis(np.array([clock, clock + moved[0]]), 0.5, 32.0, 9.0, 0.0)

    monkeypatch.setattr(time_axis, "measure", measure)
    monkeypatch.setattr("time.monotonic", lambda: now[0])
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
    assert first is not None and first.drift_ns is None and first.error_ns(0.0) == 9.0
    assert again is not None and again.drift_ns == 50.0
    assert again.drift_seconds == pytest.approx(5.0)
    assert again.error_ns(5.0) == pytest.approx(59.0) and calls == ["settled"] * 2


def test_a_gpu_is_measured_again_when_its_axis_is_too_old_for_a_launch(gpu: list[float]) -> None:
    keeper, calls = TimeAxisKeeper(_Gpu()), list[str]()
    first = keeper.newest(find(), _settling(calls))
    gpu[0] += 0.1
    again = keeper.newest(find(), _settling(calls), lambda axis: axis is first)
    assert again is not None and again is not first and calls == ["settled"] * 2
    assert keeper.newest(find(), _settling(calls), lambda axis: axis is first) is again
    third = keeper.newest(find(), _settling(calls), lambda axis: axis is again)
    assert third is not again and len(calls) == 3


def test_a_gpu_whose_axis_does_not_get_better_is_left_alone_for_a_while(gpu: list[float]) -> None:
    keeper, calls = TimeAxisKeeper(_Gpu()), list[str]()
    keeper.newest(find(), _settling(calls))
    for _ in range(5):
        gpu[0] += 0.1
        keeper.newest(find(), _settling(calls), lambda _axis: True)
    assert len(calls) == 2
    gpu[0] += 2.1
    keeper.newest(find(), _settling(calls), lambda _axis: False)
    assert len(calls) == 3


def test_a_session_asks_for_an_axis_near_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session(Options(GEMM, device="sim:a10", probe="block_sched", arguments=("64",) * 3))
    asked: list[bool] = []

    def newest(_toolchain: Toolchain, _settle: object, stale: Callable[[TimeAxis], bool]) -> None:
        axis = TimeAxis(np.zeros(72, np.int64), 0.5, 32.0, 9.0, 0.0, drift_seconds=2.0)
        far = replace(axis, origin=np.full(72, 10**10))
        asked.extend(stale(replace(one, drift_ns=9000.0)) for one in (axis, far))

    try:
        session.prepare()
        session.step()
        monkeypatch.setattr(session._axes, "newest", newest)
        assert session.frame().time_axis is None
    finally:
        session.close()
    assert asked == [False, True]
