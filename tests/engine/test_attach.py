"""What attaching leaves behind, and how its errors read, when it fails in the middle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from gpuwatch.device.base import GaveWay, Interrupt
from gpuwatch.device.sim.device import SimDevice
from gpuwatch.device.sim.kernel import SimKernel
from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError

KERNEL = """\
__global__ void add(int *data) { data[threadIdx.x] += 1; }
int main() {
    int *data;
    cudaMalloc(&data, 512);
    add<<<1, 128>>>(data);
}
"""
ADD = "_Z3addPi"
TRAIL = """\
import gpuwatch.language as gl

from gpuwatch import Map, probe


@Map(level="thread", type="array", size=8, cap="dynamic")
class trail:
    address: gl.u64


@probe(pos="st.global", level="thread", before=True)
def at_store():
    trail.save(gl.addr)
"""


class _Kernels:
    """How many of the simulated kernels that were loaded are open."""

    def __init__(self) -> None:
        self.loaded = self.open = 0

    def load(self, *_given: object) -> None:
        self.loaded += 1
        self.open += 1

    def close(self) -> None:
        self.open -= 1


@pytest.fixture
def kernels() -> Iterator[_Kernels]:
    count = _Kernels()
    load, close = SimDevice.load, SimKernel.close

    def loaded(*given: Any) -> SimKernel:
        count.load()
        return load(*given)

    def closed(kernel: SimKernel) -> None:
        count.close()
        close(kernel)

    with patch.object(SimDevice, "load", loaded), patch.object(SimKernel, "close", closed):
        yield count


@pytest.fixture
def session(tmp_path: Path, kernels: _Kernels) -> Iterator[Session]:
    source = tmp_path / "add.cu"
    source.write_text(KERNEL)
    one = Session(Options(str(source), device="sim:a10", probe="block_sched"))
    yield one
    one.close()
    assert kernels.open == 0


def _asks() -> bool:
    return True


@pytest.mark.parametrize(("fatal", "left"), [(False, 0), (True, 1)])
def test_a_plain_kernel_that_fails_is_closed_if_it_can_be(
    session: Session, kernels: _Kernels, fatal: bool, left: int
) -> None:
    lost = UserError("lost", fatal=fatal)
    with patch.object(SimKernel, "run", side_effect=lost), pytest.raises(UserError) as caught:
        session.prepare()
    assert caught.value.message == "lost"
    assert (kernels.loaded, kernels.open) == (1, left)
    kernels.open = 0


def test_a_probed_kernel_whose_results_cannot_be_read_is_closed_and_named(
    session: Session, kernels: _Kernels
) -> None:
    lost = patch("gpuwatch.engine.attach.compare_results", side_effect=UserError("lost"))
    with lost, pytest.raises(UserError) as caught:
        session.prepare()
    assert caught.value.message == "with probe block_sched: lost"
    assert (kernels.loaded, kernels.open) == (2, 1)


@pytest.mark.parametrize(
    ("problem", "told"),
    [(UserError("lost"), "with probe trail: lost"), (GaveWay(), "")],
    ids=["fails", "gives way"],
)
def test_a_launch_that_only_counts_is_named_and_gives_way(
    session: Session, kernels: _Kernels, tmp_path: Path, problem: Exception, told: str
) -> None:
    (tmp_path / "trail.py").write_text(TRAIL)
    session.build.plain(ADD, print)
    asked: list[Interrupt] = []

    def run(_kernel: SimKernel, interrupt: Interrupt, /) -> None:
        asked.append(interrupt)
        raise problem

    with patch.object(SimKernel, "run", run), pytest.raises(type(problem)) as caught:
        session.build.attach(ADD, str(tmp_path / "trail.py"), print, _asks)
    assert getattr(caught.value, "message", "") == told
    assert asked == [_asks]
    assert (kernels.loaded, kernels.open) == (2, 1)


@pytest.mark.parametrize("fatal", [False, True])
def test_a_build_that_cannot_take_over_is_closed_if_it_can_be(
    session: Session, kernels: _Kernels, fatal: bool
) -> None:
    session.prepare()
    build = session.compile(session.source)
    build.plain(ADD, print)
    lost = UserError("lost", fatal=fatal)
    with patch("gpuwatch.engine.build.load_probed", side_effect=lost), pytest.raises(UserError):
        session.adopt(build)
    assert (kernels.loaded, kernels.open) == (3, 3 if fatal else 2)
    build.close()


@pytest.mark.parametrize("fatal", [False, True])
def test_a_relaunch_that_fails_is_closed_if_it_can_be(
    session: Session, kernels: _Kernels, fatal: bool
) -> None:
    session.prepare()
    lost = UserError("lost", fatal=fatal)
    with patch("gpuwatch.engine.build.load_probed", side_effect=lost), pytest.raises(UserError):
        session.choose_launch(0)
    assert (kernels.loaded, kernels.open) == (3, 3 if fatal else 2)
    kernels.open -= 2 if fatal else 0
