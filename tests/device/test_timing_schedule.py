"""The block scheduler against one that takes single blocks from a heap."""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpuwatch.device.sim.schedule import BlockScheduler, kernel_cycles


def waves(scheduler: BlockScheduler, durations: list[int]) -> list[tuple[int, int, int, int]]:
    """SM, slot, start, end of each block."""
    placed: list[tuple[int, int, int, int]] = []
    while len(placed) < len(durations):
        sm, slot, start = scheduler.next_wave(len(durations) - len(placed))
        ran = np.array(durations[len(placed) : len(placed) + sm.size], np.int64)
        assert sm.size > 0
        scheduler.finish(ran)
        placed += zip(sm.tolist(), slot.tolist(), start.tolist(), (start + ran).tolist(),
                      strict=True)  # fmt: skip
    return placed


def one_by_one(
    sms: int, resident: int, overhead: int, durations: list[int]
) -> list[tuple[int, int, int, int]]:
    free = [(0, slot, sm) for slot in range(resident) for sm in range(sms)]
    placed = []
    for duration in durations:
        time, slot, sm = heapq.heappop(free)
        start = time + overhead
        placed.append((sm, slot, start, start + duration))
        heapq.heappush(free, (start + duration, slot, sm))
    return placed


def test_fills_breadth_first() -> None:
    sm, slot, start = BlockScheduler(3, 2, 10).next_wave(5)
    assert sm.tolist() == [0, 1, 2, 0, 1]
    assert slot.tolist() == [0, 0, 0, 1, 1]
    assert start.tolist() == [10] * 5
    assert (sm.dtype, start.dtype) == (np.int32, np.int64)


@given(
    st.integers(1, 5),
    st.integers(1, 3),
    st.integers(0, 7),
    st.lists(st.integers(0, 40), max_size=60),
)
@example(2, 2, 7, [9, 17, 17, 10, 0, 0])
def test_is_greedy_when_the_shortest_block_is_in_the_first_wave(
    sms: int, resident: int, overhead: int, rest: list[int]
) -> None:
    durations = [1] + [duration + 1 for duration in rest]
    placed = waves(BlockScheduler(sms, resident, overhead), durations)
    assert placed == one_by_one(sms, resident, overhead, durations)


@given(st.integers(1, 5), st.integers(1, 3), st.lists(st.integers(1, 1000), max_size=60))
def test_every_slot_runs_one_block_at_a_time(sms: int, resident: int, durations: list[int]) -> None:
    ends: dict[tuple[int, int], int] = {}
    for sm, slot, start, end in waves(BlockScheduler(sms, resident, 5), durations):
        assert 0 <= sm < sms and 0 <= slot < resident
        assert start == ends.get((sm, slot), 0) + 5
        ends[sm, slot] = end


def test_one_long_block_holds_only_its_slot() -> None:
    placed = waves(BlockScheduler(2, 1), [1000, *[10] * 50])
    assert [sm for sm, *_ in placed] == [0] + [1] * 50


def test_the_kernel_ends_with_its_last_block() -> None:
    scheduler = BlockScheduler(2, 1, 5)
    waves(scheduler, [100, 300, 50])
    assert scheduler.last_end == 305
    assert kernel_cycles(scheduler.last_end, 3000) == 3305


def test_waves_alternate() -> None:
    scheduler = BlockScheduler(2, 1)
    scheduler.next_wave(2)
    with pytest.raises(RuntimeError):
        scheduler.next_wave(1)
    with pytest.raises(ValueError, match="durations"):
        scheduler.finish(np.zeros(1, np.int64))
