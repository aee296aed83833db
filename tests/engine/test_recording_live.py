"""The worker records while it is watched."""

from __future__ import annotations

from pathlib import Path

import pytest
from worker_support import until

from gpuwatch.engine.client import WorkerClient
from gpuwatch.engine.options import Options
from gpuwatch.engine.replay import ReplaySession
from gpuwatch.probe.catalogue import folder


def said(watch: WorkerClient, words: str) -> bool:
    return any(words in entry.text for entry in watch.log())


def test_recording_beside_the_launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = str(folder("kernels") / "gemm.cu")
    options = Options(source=source, device="sim:a10", arguments=("128", "128", "128"))
    with WorkerClient(options) as watch:
        until(lambda: watch.latest() is not None)
        target = watch.record(3)
        until(lambda: said(watch, f"recorded 3 launches in {target}"))
        session = ReplaySession(tmp_path / target)
        session.prepare()
        assert (session.count, session.frame().records) == (3, 576)
        monkeypatch.setattr("gpuwatch.engine.client.default_folder", lambda: Path("/dev/null/x"))
        watch.record(1)
        until(lambda: said(watch, "cannot write /dev/null/x"))
        before = watch.latest()
        assert before is not None
        until(lambda: (now := watch.latest()) is not None and now.launches > before.launches)
        assert watch.status().state == "running"
