"""A session on the simulated device, with the shipped kernels at a small size."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from rich.console import Console

from gpuwatch.analysis.metrics import lines_of, metrics_of
from gpuwatch.device.base import Batch, Reduced
from gpuwatch.engine import report
from gpuwatch.engine.attach import naming
from gpuwatch.engine.options import Options
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError
from gpuwatch.probe import load
from gpuwatch.probe.catalogue import folder

SMALL = ("128", "128", "128")
SLOW = """
#include <cuda_runtime.h>
__global__ void slow(unsigned *out) {
  unsigned v = threadIdx.x;
#pragma unroll 1
  for (int k = 0; k < 20000; k++) v = v * 3 + (v >> 7);
  out[threadIdx.x] = v;
}
int main() {
  unsigned *out;
  cudaMalloc(&out, 4 * 768);
  slow<<<288, 768>>>(out);
  return cudaDeviceSynchronize();
}
"""
FOUR_WARPS = """\
__global__ void add(int *data) { data[threadIdx.x] += 1; }
int main() {
    int *data;
    cudaMalloc(&data, 512);
    add<<<1, 128>>>(data);
}
"""


def _options(kernel: str = "gemm", **changes: object) -> Options:
    given: dict[str, object] = {
        "source": str(folder("kernels") / f"{kernel}.cu"),
        "device": "sim:a10",
        "arguments": SMALL,
        **changes,
    }
    return Options(**given)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    one = Session(_options())
    one.prepare()
    yield one
    one.close()


def test_every_warp_arrives_and_outputs_are_identical(session: Session) -> None:
    session.select(probe="block_sched")
    session.reset()
    for _ in range(3):
        session.step()
    frame = session.frame()
    assert frame.launches == 3
    assert (frame.records, frame.missing, frame.dropped) == (frame.warps, 0, 0)
    assert frame.outputs_identical is True
    assert frame.warps_table is not None
    assert np.array_equal(frame.warps_table.warp, np.arange(frame.warps))
    assert set(frame.warps_table.count) == {3}


def test_two_launches_on_the_simulated_device_are_equal(session: Session) -> None:
    tables = []
    for _ in range(2):
        session.step()
        table = session.frame().warps_table
        assert table is not None
        tables.append(table)
    assert np.array_equal(tables[0].start, tables[1].start)
    assert np.array_equal(tables[0].elapsed, tables[1].elapsed)
    assert np.array_equal(tables[0].sm, tables[1].sm)


def test_warp_duration_names_each_persistent_warp_once(session: Session) -> None:
    session.select(probe="warp_duration")
    session.step()
    table = session.frame().warps_table
    assert table is not None
    assert np.array_equal(np.sort(table.fields["warpid"]), np.arange(len(table)))


def test_reset_forgets_the_launches(session: Session) -> None:
    session.step()
    session.reset()
    session.step()
    assert session.frame().launches == 1


class _Idle:
    """A pipeline whose launches bring no new records."""

    def advance(self, _until: float) -> Batch:
        return Batch(1, (1e-6,), (1e-6,), fresh=False)

    def reduced(self) -> Reduced:
        zero = np.zeros(1, np.int64)
        return Reduced(7, 96, 0, 0, 960, 5, 20, zero, zero, zero, zero, zero)

    def reset(self) -> None: ...

    settle = close = reset

    def read_map(self, _index: int) -> NDArray[np.uint8]:
        raise NotImplementedError


@pytest.fixture
def pipelined(session: Session) -> Iterator[Session]:
    """With `block_sched` launched by a pipeline."""
    session.select(probe="block_sched")
    session.step()
    probed = session.build.probeds[session.selected]
    probed.pipeline = _Idle()
    yield session
    probed.pipeline = None


def test_a_pair_that_is_back_shows_its_own_last_launch(pipelined: Session) -> None:
    own = pipelined.frame().thread_instructions
    pipelined.select(probe="warp_duration")
    pipelined.step()
    other = pipelined.frame().thread_instructions
    pipelined.select(probe="block_sched")
    pipelined.step()
    assert pipelined.frame().thread_instructions == own != other


def test_the_json_sums_up_all_launches_where_the_device_does(pipelined: Session) -> None:
    frame = pipelined.frame()
    assert frame.reduced is not None
    sums = {"launches": 7, "elapsed_sum": 960, "elapsed_min": 5, "elapsed_max": 20}
    assert report.as_json(frame)["all_launches"] == sums
    (block_sched,) = frame.maps
    untimed = replace(block_sched, columns={})
    values = report.as_json(replace(frame, maps=(untimed,)))
    assert values["all_launches"] == {"launches": 7}
    assert "all_launches" not in report.as_json(replace(frame, reduced=None))


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Session]:
    """With two maps, of launches long enough to give way."""
    source = tmp_path / "slow.cu"
    source.write_text(SLOW)
    session = Session(Options(str(source), device="sim:a10", probe="block_sched,gmem_traffic"))
    session.prepare()
    yield session
    session.close()


def _give_way(session: Session) -> None:
    """A launch that ends in the middle."""
    asked: list[bool] = []

    def interrupt() -> bool:
        asked.append(True)
        return len(asked) == 3

    session.step(interrupt)
    assert len(asked) == 3


def test_a_launch_that_gives_way_does_not_count(slow: Session) -> None:
    before = slow.frame()
    _give_way(slow)
    assert (slow.launches, slow.has_frame) == (before.launches, False)
    with pytest.raises(RuntimeError, match="gave way"):
        slow.frame()
    slow.step()
    assert (slow.launches, slow.has_frame) == (before.launches + 1, True)
    figures = [[(one.name, one.records) for one in frame.maps] for frame in (before, slow.frame())]
    assert figures[0] == figures[1]


def test_what_a_launch_that_gave_way_left_is_not_shown_when_its_probe_is_back(
    slow: Session,
) -> None:
    both = slow.selected[1]
    before = slow.frame()
    _give_way(slow)
    slow.select(probe="warp_duration")
    assert slow.has_frame
    slow.select(probe=both)
    assert (slow.launches, slow.has_frame) == (0, False)
    slow.step()
    after = slow.frame()
    assert (after.launches, after.records, after.missing) == (1, before.records, 0)


def test_lines_of_a_sampled_map_add_up_to_its_total(tmp_path: Path) -> None:
    source = tmp_path / "add.cu"
    source.write_text(FOUR_WARPS)
    sampled = tmp_path / "sampled.py"
    preset = (folder("probes") / "mem_latency.py").read_text()
    sampled.write_text(preset.replace('level="warp"', 'level="warp", sample=32'))
    session = Session(Options(str(source), device="sim:a10", probe=str(sampled)))
    session.prepare()
    maps = session.frame().maps
    lines = [line.get("loads_measured", 0) for line in lines_of(maps)]
    assert sum(lines) == metrics_of(maps)["loads_measured"] == 4  # type: ignore[arg-type]
    session.close()


def test_a_failed_selection_keeps_the_former_one(session: Session) -> None:
    session.select(probe="block_sched")
    with pytest.raises(UserError, match="no_such_probe"):
        session.select(probe="no_such_probe")
    session.step()
    assert session.frame().probe == "block_sched"


def test_a_kernel_name_that_matches_none_lists_them(session: Session) -> None:
    with pytest.raises(UserError) as caught:
        session.select(kernel="no_such_kernel")
    assert "gemm_gpu" in caught.value.detail


@pytest.mark.parametrize(
    "name", ["gemm_gpu", "gemm", "_Z8gemm_gpuPKfS0_Pfiii", "gemm_gpu(const float *, const"]
)
def test_a_kernel_is_found_by_name_or_unique_part(session: Session, name: str) -> None:
    assert session.program.find_kernel(name) == "_Z8gemm_gpuPKfS0_Pfiii"


def test_the_json_has_the_promised_keys_and_is_plain(session: Session) -> None:
    session.step()
    values = json.loads(json.dumps(report.as_json(session.frame())))
    assert {
        "kernel", "mangled", "probe", "device", "launch", "launches", "blocks", "warps",
        "records", "missing", "dropped", "running_cycles_mean", "idle_cycles_mean", "elapsed",
        "sm", "occupancy_mean", "outputs_identical", "registers", "kernel_seconds",
        "wall_seconds_per_launch", "thread_instructions",
    } <= set(values)  # fmt: skip
    assert set(values["device"]) == {"name", "kind", "profile", "sm_count", "modelled"}
    assert set(values["elapsed"]) == {"min", "p50", "p90", "p99", "max", "mean"}
    assert set(values["kernel_seconds"]) == {"plain", "probed", "ratio"}
    assert len(values["sm"]) == 72
    assert set(values["sm"][0]) == {
        "sm", "blocks", "warps", "occupancy", "busy_cycles", "idle_cycles"
    }  # fmt: skip


def test_the_text_labels_modelled_figures(session: Session) -> None:
    session.select(probe="warp_duration")
    session.step()
    console = Console(width=120, record=True, file=io.StringIO())
    report.render(session.frame(), console)
    text = console.export_text()
    assert "Total Blocks: " in text
    assert "Average Running Time: " in text
    assert "(modelled cycles)" in text
    assert "Warp ID" in text


def test_outputs_that_differ_are_explained(session: Session) -> None:
    console = Console(record=True, width=160, file=io.StringIO())
    report.render(replace(session.frame(), outputs_identical=False), console)
    shown = " ".join(console.export_text().split())
    assert "outputs DIFFERENT" in shown and "which warp comes first (a race)" in shown


@pytest.mark.parametrize("spec", ["gpu", "sim:none", "cuda:x", "auto:1", ""])
def test_an_unknown_device_is_refused(spec: str) -> None:
    with pytest.raises(UserError):
        Session(_options(device=spec))


def test_the_article_launch_shapes() -> None:
    shapes = {}
    for device in ("sim:a10", "sim:h200"):
        one = Session(_options(device=device, arguments=()))
        choice = one.kernels()[0]
        shapes[device] = (choice.grid, choice.block, choice.launches)
        one.close()
    assert shapes == {
        "sim:a10": ((32, 43, 1), (32, 24, 1), 1),
        "sim:h200": ((32, 32, 1), (32, 32, 1), 1),
    }


def test_a_probe_that_does_not_apply_says_what_the_kernel_lacks(session: Session) -> None:
    with pytest.raises(UserError) as caught:
        session.select(probe="smem_conflicts")
    assert caught.value.message == "gemm_gpu has no ld.shared"
    assert caught.value.at is not None and caught.value.at.file.endswith("smem_conflicts.py")


def test_an_error_in_a_probed_launch_names_the_probe() -> None:
    with pytest.raises(UserError) as caught, naming(load("dmat")):
        raise UserError("the kernel gemm_gpu did not end within 10 s")
    assert caught.value.message == "with probe dmat: the kernel gemm_gpu did not end within 10 s"
