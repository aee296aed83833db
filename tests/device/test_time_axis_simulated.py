"""The kernel that reads SMs' clocks beside their timer, on simulated SMs, whose clocks agree."""

from __future__ import annotations

import numpy as np
import pytest

from gpuwatch.analysis.time_axis import fit
from gpuwatch.device.cuda.time_axis import SOURCE, STEPS
from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session

SMS = 72
CLOCK_GHZ = 1.695
WORDS = SMS * 2 * STEPS * 3


def _noted(sm_count: int) -> np.ndarray:  # type: ignore[type-arg]
    values = (
        f"taken=u32[{SMS}]:zeros",
        f"steps=u64[{WORDS}]:zeros",
        f"sm_count={sm_count}",
        f"steps_each={STEPS}",
        "apart_ns=20000",
    )
    session = Session(
        Options(str(SOURCE), device="sim:a10", grid=str(4 * SMS), block="1", values=values)
    )
    try:
        session.prepare()
        kernel = session.build.plains[session.selected[0]].runner.loaded
        return kernel.read_buffers()[1].view(np.uint64).reshape(SMS, 2 * STEPS, 3)
    finally:
        session.close()


def test_every_sm_notes_its_steps_once_and_their_clocks_agree() -> None:
    steps = _noted(SMS)
    before, after, time = (steps[:, :, part].astype(np.int64) for part in range(3))
    assert (before > 0).all() and (before < after).all()
    assert (np.diff(time, axis=1) > 0).all()
    assert (time[:, STEPS] - time[:, 0] >= 20_000).all()
    axis = fit(steps)
    assert axis is not None and axis.covers(np.arange(SMS))
    assert np.ptp(axis.origin) == 0
    assert axis.ns_per_cycle == pytest.approx(1 / CLOCK_GHZ, rel=1e-3)


def test_sms_beyond_the_count_note_nothing() -> None:
    steps = _noted(5)
    assert (steps[:5] > 0).all() and not steps[5:].any()
