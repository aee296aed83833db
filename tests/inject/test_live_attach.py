"""A probe put on a program that launches without a pause, and taken off again."""

from __future__ import annotations

import os
import signal

import pytest
from inject_support import Fake, wait_for

from gpuwatch.engine.program_session import ProgramOptions, ProgramSession


@pytest.mark.parametrize("slow", ["0", "100"], ids=["sampled", "each seen"])
def test_a_probe_is_switched_on_and_off_while_launches_go_on(
    fake: Fake, slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CUPTI waits for callbacks under way before it enables or disables one."""
    for name, value in {**fake.environment(), "FAKE_SLOW_LAUNCH": slow}.items():
        monkeypatch.setenv(name, value)
    session = ProgramSession(ProgramOptions(tuple(fake.command("many", 10**9)), pace=0.0))
    session.start()
    try:
        wait_for(lambda: _launches(session) > 5000, lambda: session.poll(0.02))
        (process,) = session.processes.values()
        (kernel,) = process.listed()
        for probe in ("block_sched", "warp_duration"):
            attachment = session.attach(kernel.key, probe)
            wait_for(lambda one=attachment: one.taken >= 30, lambda: session.poll(0.02))
            session.detach(kernel.key)
            before = _launches(session)
            wait_for(lambda old=before: _launches(session) > old + 100, lambda: session.poll(0.02))
    finally:
        os.kill(session.pid, signal.SIGKILL)
        session.wait()
        session.close()
        session.remove()


def _launches(session: ProgramSession) -> int:
    tables = [process.link.table for process in session.processes.values()]
    return sum(table.launches for table in tables if table is not None)
