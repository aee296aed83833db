"""What goes wrong while a program is probed: it goes on as it would, and it is told why."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from inject_support import (
    Fake,
    Start,
    beside,
    whole,
)


def test_a_probed_kernel_that_cannot_be_launched(run: Start) -> None:
    watched = run("many", 3, "FAKE_REFUSE_PROBED=1", kernel="vadd")
    assert "it cannot be launched: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" in watched.errors
    assert watched.errors.count("it cannot be launched") == 1
    assert watched.seen == []
    kernel = watched.kernel("vadd")
    assert (kernel.launches, kernel.probed) == (3, 0)


def test_one_that_cannot_be_launched_when_gpuwatch_goes_away(start: Start, fake: Fake) -> None:
    environment = ("FAKE_REFUSE_PROBED=1", "FAKE_SLOW_LAUNCH=300000")
    watched = start("many", 1, *environment, kernel="vadd")
    loaded: list[object] = []
    watched.session._HANDLERS = watched.session._HANDLERS | {  # type: ignore[misc]
        "loaded": lambda *words: loaded.append(words)
    }
    watched.until(lambda: loaded)
    watched.session.close()
    assert watched.session.wait() == 0
    assert watched.output.read_text() == fake.alone(fake.command("many", 1)).output


def test_no_memory_for_maps(run: Start) -> None:
    """There is enough for the program, and for a few of the slots."""
    watched = run("many", 3, "FAKE_MEMORY=15000", kernel="vadd")
    assert "no memory for its maps: CUDA_ERROR_OUT_OF_MEMORY" in watched.errors
    assert watched.seen == []
    assert watched.kernel("vadd").launches == 3


@pytest.mark.parametrize("mode", ["wide", "constant", "constant-extra"])
def test_what_a_probed_kernel_needs_cannot_be_given(run: Start, mode: str) -> None:
    watched = run(mode, 3, "FAKE_BROKEN_UPLOAD=1", kernel="scale" if mode != "wide" else mode)
    assert "its parameters cannot be given" in watched.errors
    assert watched.seen == []


@pytest.mark.parametrize("what", ["DOWNLOAD", "EVENTS"])
def test_records_that_cannot_be_copied(run: Start, what: str) -> None:
    watched = run("many", 3, f"FAKE_BROKEN_{what}=1", kernel="vadd")
    assert "the records of a launch were lost" in watched.errors
    assert watched.seen == []


def _mounts() -> bool:
    """Whether a folder in memory can be mounted, so small that it is soon full."""
    words = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/dev/shm"]
    try:
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not _mounts(), reason="nothing can be mounted here")
@pytest.mark.parametrize(("mode", "count", "size"), [("sizes", 40, "4k"), ("large", 3, "8m")])
def test_no_room_for_the_table_and_for_records(
    fake: Fake, tmp_path: Path, mode: str, count: int, size: str
) -> None:
    """What is mapped from a file that has no room behind it ends a program that writes there."""
    output = tmp_path / "output"
    command = fake.command(mode, count, "file")
    watched = beside(fake, output, "nothing", *command)
    mount = f'mount -t tmpfs -o size={size} none /dev/shm && exec "$@"'
    words = ["unshare", "-rm", "sh", "-c", mount, "sh", *watched]
    told = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "\nnot seen\n0 " in told
    assert ("no memory for its maps" in told) == (mode == "large")
    assert output.read_text() == fake.alone(command).output


def test_another_profiler(run: Start) -> None:
    watched = run("many", 3, "FAKE_SECOND_SUBSCRIBER=1", kernel="vadd")
    assert "another profiler has subscribed" in watched.errors
    assert (watched.seen, watched.kernels) == ([], [])


@pytest.mark.parametrize("kernel", ["", "vadd"])
def test_no_times(run: Start, kernel: str) -> None:
    """Launches are counted all the same, and probed."""
    watched = run("many", 5, "FAKE_NO_ACTIVITY=1", kernel=kernel, hold=bool(kernel))
    assert "CUPTI gives no times" in watched.errors
    vadd = watched.kernel("vadd")
    assert (vadd.launches, vadd.total_seconds) == (5, None)
    probed = list(range(5)) if kernel else []
    assert (watched.launches, vadd.probed) == (probed, len(probed))
    assert {one.seconds for one in watched.seen} <= {0.0}
    assert whole(watched.seen)


def test_fewer_blocks_on_an_sm(run: Start) -> None:
    watched = run("many", 2, "FAKE_FEW_RESIDENT=1", kernel="vadd")
    assert watched.launches == [0, 1]
    (attachment,) = watched.session.attachments.values()
    (build,) = attachment.builds.values()
    assert (build.resident_plain, build.resident_probed) == (8, 4)
