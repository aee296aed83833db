"""Which resource bounds a launch, and that what the code adds up follows it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sim_support import launch_of

from gpuwatch import ptx
from gpuwatch.device.base import KernelImage
from gpuwatch.device.sim import open_sim, profiles
from gpuwatch.device.sim.balance import MOST_INSTRUCTIONS, Sample, balance, sampled_blocks
from gpuwatch.device.sim.costs import Costs, Load, ResourceCosts, resource_costs
from gpuwatch.device.sim.linking import build_program

H200 = profiles.load("h200")
BODY = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .pred %p<3>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, 0;
A:
  ex2.approx.f32 %f1, %f1;
  add.s32 %r2, %r2, 1;
  setp.lt.s32 %p1, %r2, COUNT;
  @%p1 bra A;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.f32 [%rd3], %f1;
  ret;
}
"""


def costs_of(warps: int = 64) -> ResourceCosts:
    module = ptx.parse(BODY.replace("COUNT", "100"))
    program = build_program(module, module.entries()[0])
    return resource_costs(program, H200, Load(10_000, 1, warps, 0))


class Machine:
    """Runs block 1, the loop, as often as each warp wants it, and writes a sector."""

    def __init__(self, turns: Sequence[int], executed: int = 1000) -> None:
        self.turns = np.array(turns)
        self.executed = executed
        self.runs = 0

    def cycles(self, costs: Costs) -> np.ndarray:
        return self.turns * costs.blocks[1] + costs.written

    def __call__(self, costs: Costs, blocks: Sequence[int]) -> list[Sample]:
        self.runs += len(blocks)
        return [Sample(self.cycles(costs), self.executed) for _ in blocks]


def resource_times(costs: ResourceCosts, machine: Machine) -> np.ndarray:
    alone = np.eye(len(costs.names))
    return np.array([machine.cycles(costs.combined(row)).max() for row in alone])


@given(st.integers(1, 100_000))
def test_samples_spread_over_the_grid(blocks: int) -> None:
    places = sampled_blocks(blocks)
    assert len(set(places)) == len(places) == min(4, blocks)
    assert 0 <= min(places) <= max(places) < blocks


def test_a_block_lasts_about_as_long_as_its_slowest_resource() -> None:
    costs, machine = costs_of(), Machine([100, 100])
    slowest = resource_times(costs, machine).max()
    lasts = machine.cycles(balance(costs, 10_000, machine)).max()
    assert slowest * 0.99 <= lasts <= slowest * 1.3


def test_warps_that_end_early_leave_the_units_to_the_others() -> None:
    costs = costs_of()
    even, uneven = Machine([100] * 8), Machine([100] + [10] * 7)
    lasts = [machine.cycles(balance(costs, 10_000, machine)).max() for machine in (even, uneven)]
    assert lasts[1] < lasts[0] / 2


def test_few_warps_are_bound_by_their_own_chain() -> None:
    costs, machine = costs_of(warps=1), Machine([100])
    chain = machine.cycles(costs.combined(np.eye(len(costs.names))[0])).max()
    assert machine.cycles(balance(costs, 1, machine)).max() == pytest.approx(chain, rel=0.1)


def test_long_blocks_are_sampled_once_and_endless_ones_hardly() -> None:
    costs = costs_of()
    for executed, runs in ((MOST_INSTRUCTIONS // 2, len(costs.names) + 1), (10**10, 1)):
        machine = Machine([100], executed)
        balance(costs, 10_000, machine)
        assert machine.runs == runs


def launched(count: int, threads: int) -> tuple[list[float], bytes]:
    """Seconds of three launches, and what the kernel wrote."""
    device = open_sim("h200", threads=threads)
    out = np.zeros(256, np.float32)
    image = KernelImage("k", BODY.replace("COUNT", str(count)), b"", 16, 0)
    loaded = device.load(image, launch_of("k", (2000, 1, 1), (256, 1, 1), [out]), [])
    try:
        seconds = [loaded.run().kernel_seconds for _ in range(3)]
        return seconds, loaded.read_buffers()[0].tobytes()
    finally:
        loaded.close()


def test_every_launch_takes_the_same_time_with_any_number_of_host_threads() -> None:
    one, two = launched(50, 1), launched(50, 2)
    assert one == two
    assert len(set(one[0])) == 1


def test_time_follows_the_work_of_the_bounding_unit() -> None:
    few, many = (launched(count, 2)[0][0] for count in (200, 2000))
    idle = H200.launch_overhead / H200.clock_hz
    assert (many - idle) / (few - idle) == pytest.approx(10, rel=0.25)


def test_samples_leave_no_trace_in_local_memory() -> None:
    body = BODY.replace(
        "mov.u32 %r2, 0;",
        """mov.u32 %r2, 0;
  .local .align 4 .b8 own[8];
  mov.u64 %rd5, own;
  ld.local.u32 %r3, [%rd5];
  st.local.u32 [%rd5], 7;""",
    ).replace("st.global.f32 [%rd3], %f1;", "st.global.u32 [%rd3], %r3;")
    loaded = open_sim("h200", threads=1).load(
        KernelImage("k", body.replace("COUNT", "3"), b"", 16, 0),
        launch_of("k", (1, 1, 1), (256, 1, 1), [np.ones(256, np.uint32)]),
        [],
    )
    try:
        loaded.run()
        assert not loaded.read_buffers()[0].any()
    finally:
        loaded.close()
