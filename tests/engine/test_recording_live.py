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
        until(lambda: said(watch, "callback block_sched_callback.py:\nTotal Blocks: 24, Total "))
        monkeypatch.setattr("gpuwatch.engine.client.default_folder", lambda: Path("/dev/null/x"))
        watch.record(1)
        until(lambda: said(watch, "cannot write /dev/null/x"))
        before = watch.latest()
        assert before is not None
        until(lambda: (now := watch.latest()) is not None and now.launches > before.launches)
        assert watch.status().state == "running"


@pytest.mark.parametrize("callback", ["mine.py", None])
def test_a_callback_of_what_the_screen_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, callback: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("print('mine', 6 * 7); raise SystemExit(3)")
    source = str(folder("kernels") / "gemm.cu")
    small = ("128", "128", "128")
    options = Options(source=source, device="sim:a10", arguments=small, callback=callback)
    with WorkerClient(options) as watch:
        until(lambda: watch.latest() is not None)
        watch.record(1)
        until(lambda: said(watch, "recorded 1 launches in"))
        if callback is None:
            watch.record(1)
            until(lambda: str(watch.log()).count("recorded 1 launches in") == 2)
            assert not said(watch, "callback")
        else:
            until(lambda: said(watch, "callback mine.py failed: it ended with status 3"))
            assert said(watch, "callback mine.py:\nmine 42")
            assert watch.status().state == "running"
