"""A probed kernel that is shown before the plain one has run."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwatch.device.base import GaveWay
from gpuwatch.engine.build import Build
from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError

SOURCE = """\
__global__ void add(int *data, int turns)
{
    for (int k = 0; k < turns; ++k) data[threadIdx.x] += k;
}
int main() {
    int *data;
    cudaMalloc(&data, 512);
    add<<<1, 128>>>(data, TURNS);
}
"""
ADD = "_Z3addPii"
PROBE = "block_sched"
FOR_EVER = "1 << 30"
SECONDS = 60.0


def _session(folder: Path, turns: str = "3", body: str = "") -> Session:
    source = folder / "add.cu"
    source.write_text(SOURCE.replace("TURNS", turns).replace("+= k", f"+= k{body}"))
    return Session(Options(str(source), device="sim:a10", probe=PROBE, timeout=SECONDS))


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    one = _session(tmp_path)
    yield one
    one.close()


def _show(session: Session) -> Build:
    """The probe alone, as after a save."""
    session.build.attach(ADD, PROBE, print, compared=False)
    session.select(ADD, PROBE)
    return session.build


def test_what_is_not_known_yet_is_not_claimed(session: Session) -> None:
    build = _show(session)
    frame = session.frame()
    assert (frame.outputs_identical, frame.seconds_plain, frame.ratio) == (None, 0.0, None)
    assert frame.records > 0
    build.compare(ADD, PROBE)
    frame = session.frame()
    assert frame.outputs_identical is True
    assert frame.seconds_plain > 0 and frame.ratio is not None


def test_later_launches_do_not_change_what_is_compared(session: Session) -> None:
    build = _show(session)
    results = build.probeds[ADD, PROBE].results
    assert results is not None
    results.buffers[0][0] ^= 1
    session.step()
    build.compare(ADD, PROBE)
    assert session.frame().outputs_identical is False


def test_a_comparison_that_gave_way_is_made_after_all(session: Session) -> None:
    build = _show(session)
    with pytest.raises(GaveWay):
        build.compare(ADD, PROBE, lambda: True)
    assert session.frame().outputs_identical is None
    build.compare(ADD, PROBE)
    assert session.frame().outputs_identical is True


def test_what_is_attached_next_is_compared_at_once(session: Session) -> None:
    build = _show(session)
    build.attach(ADD, "warp_duration", print)
    assert build.probeds[ADD, "warp_duration"].outputs_identical is True
    build.compare(ADD, PROBE)
    assert build.probeds[ADD, PROBE].outputs_identical is True


def test_an_error_of_the_kernel_itself_is_not_told_of_the_probe(tmp_path: Path) -> None:
    session = _session(tmp_path, body=" + data[1 << 24]")
    with pytest.raises(UserError) as caught:
        session.build.attach(ADD, PROBE, print, compared=False)
    assert "with probe" not in caught.value.message
    assert session.build.plains == {} and session.build.probeds == {}
    session.close()


def test_a_build_that_is_closed_ends_its_comparison(tmp_path: Path) -> None:
    session = _session(tmp_path, turns=FOR_EVER)
    build = session.build
    running, ended = threading.Event(), threading.Event()

    def asked() -> bool:
        running.set()
        return False

    def compare() -> None:
        with pytest.raises(GaveWay):
            build._run_plain(ADD, build._opened(ADD, print), asked)
        ended.set()

    thread = threading.Thread(target=compare, daemon=True)
    thread.start()
    assert running.wait(SECONDS)
    session.close()
    thread.join(SECONDS)
    assert ended.is_set()
