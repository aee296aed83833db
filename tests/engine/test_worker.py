"""The worker process: frames, switching, death and restart, and nothing left behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from worker_support import until

from gpuwatch.engine.client import WorkerClient
from gpuwatch.engine.messages import Problems
from gpuwatch.engine.options import Options
from gpuwatch.errors import UserError
from gpuwatch.probe.catalogue import folder


def _options(**changes: str) -> Options:
    given = {"source": str(folder("kernels") / "gemm.cu"), "device": "sim:a10", **changes}
    return Options(**given, arguments=("128", "128", "128"))  # type: ignore[arg-type]


@pytest.fixture
def watch() -> Iterator[WorkerClient]:
    client = WorkerClient(_options())
    yield client
    client.close()


def _is_gone(process: int) -> bool:
    return not Path(f"/proc/{process}").exists()


def test_frames_arrive_and_grow(watch: WorkerClient) -> None:
    until(lambda: watch.latest() is not None)
    first = watch.latest()
    assert first is not None
    until(lambda: (frame := watch.latest()) is not None and frame.serial > first.serial)
    later = watch.latest()
    assert later is not None
    assert later is not first
    assert later.launches > first.launches
    assert watch.status().state == "running"
    assert watch.device() is not None
    assert [choice.mangled for choice in watch.kernels()] == ["_Z8gemm_gpuPKfS0_Pfiii"]


def test_after_a_switch_only_frames_of_the_new_probe_show(watch: WorkerClient) -> None:
    until(lambda: watch.latest() is not None)
    watch.select(probe="warp_duration")
    assert watch.latest() is None
    until(lambda: watch.latest() is not None)
    frame = watch.latest()
    assert frame is not None
    assert frame.probe == "warp_duration"


def test_a_switch_that_fails_is_told_and_the_old_probe_goes_on(watch: WorkerClient) -> None:
    until(lambda: watch.latest() is not None)
    watch.select(probe="no_such_probe")
    until(lambda: watch.status().error is not None)
    assert "no_such_probe" in str(watch.status().error)
    until(lambda: watch.latest() is not None)
    frame = watch.latest()
    assert frame is not None
    assert frame.probe == "block_sched"


def test_a_killed_worker_is_told_and_restarted(watch: WorkerClient) -> None:
    until(lambda: watch.latest() is not None)
    assert watch.process_id is not None
    os.kill(watch.process_id, signal.SIGKILL)
    until(lambda: watch.status().state == "failed")
    assert "SIGKILL" in str(watch.status().error)
    watch.restart()
    until(lambda: watch.latest() is not None)
    assert watch.status().state == "running"


def test_a_worker_that_is_killed_after_a_switch_that_failed_is_told(watch: WorkerClient) -> None:
    until(lambda: watch.latest() is not None)
    watch.select(kernel="no_such_kernel")
    until(lambda: watch.status().error is not None)
    assert watch.process_id is not None
    os.kill(watch.process_id, signal.SIGKILL)
    until(lambda: "SIGKILL" in str(watch.status().error))


def test_closing_ends_the_worker(watch: WorkerClient) -> None:
    until(lambda: watch.latest() is not None)
    process = watch.process_id
    assert process is not None
    watch.close()
    assert _is_gone(process)


def test_an_error_of_the_source_crosses_whole(tmp_path: Path) -> None:
    source = tmp_path / "broken.cu"
    source.write_text("__global__ void k() { int x = ; }\nint main() { k<<<1, 1>>>(); }\n")
    client = WorkerClient(_options(source=str(source)))
    try:
        until(lambda: client.status().error is not None)
        error = client.status().error
        assert error is not None
        assert error.status == 2
        assert error.at is not None
        assert error.at.line == 1
    finally:
        client.close()


def test_an_unknown_probe_is_refused_before_a_worker_starts() -> None:
    with pytest.raises(UserError, match="no_such_probe"):
        WorkerClient(_options(probe="no_such_probe"))


def test_requests_to_a_worker_without_a_device_are_told() -> None:
    client = WorkerClient(_options(device="sim:no_such_device"))
    try:
        until(lambda: client.status().state == "failed")
        assert "no_such_device" in str(client.status().error)
        client.reset()
        client.select(probe="warp_duration")
        until(lambda: "no_such_device" not in str(client.status().error))
        assert "the worker has no device" in str(client.status().error)
    finally:
        client.close()


def test_a_restart_forgets_why_probes_could_not_attach(watch: WorkerClient) -> None:
    until(lambda: watch.latest() is not None)
    watch._accept(Problems((("dmat", "did not end within 10 s"),)))
    assert any(probe.problem for probe in watch.probes())
    with patch.object(watch, "_start"):
        watch.restart()
        assert not any("10 s" in probe.problem for probe in watch.probes())
    watch._start()
