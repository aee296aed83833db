"""Where things lie: the address windows, and the structures that generated code and host share."""

from __future__ import annotations

ARENA_BASE = 0x10_0000_0000
"""Device address of the arena; fixed, so that addresses and hence cycles repeat."""
SHARED_WINDOW = 0x1_0000_0000
LOCAL_WINDOW = 0x2_0000_0000
WINDOW_BYTES = 1 << 24

SECTOR_BYTES = 32
WAVEFRONT_SECTORS = 4
"""Sectors that one pass through the L1 moves."""
LINE_BYTES = 128
TAG_COUNT = 1024
"""Lines of the modelled L1: 128 KB."""


class LaunchField:
    """Byte offsets in the block that describes a launch."""

    BLOCK = 0  # 3 x i32
    GRID = 12  # 3 x i32
    ARENA_DELTA = 24  # i64, host address minus device address
    ARENA_BYTES = 32  # i64
    WAVEFRONT_CYCLES = 40  # i64 each
    MISS_CYCLES = 48
    CONFLICT_CYCLES = 56
    ATOMIC_CYCLES = 64
    BARRIER_CYCLES = 72
    STOP = 80  # i32, not 0 ends the run
    SM_COUNT = 84  # i32
    TIMER_BASE = 88  # i64, ns
    TIMER_SCALE = 96  # double, ns per cycle
    SM = 104  # ptr to i32 per block of the wave
    START = 112  # ptr to i64 per block of the wave, cycles
    DURATION = 120  # ptr to i64 per block of the wave, cycles
    FIRST_BLOCK = 128  # i64
    BLOCK_COUNT = 136  # i64
    NEXT = 144  # i64, index in the wave that is handed out next
    SHARED_BYTES = 152  # i64
    WARPS = 160  # i32
    COSTS = 192  # i64 per basic block, cycles


class WorkerField:
    """Byte offsets in the state that one host thread owns."""

    INSTRUCTIONS = 0  # i64
    FAULT = 8  # i32, instruction index plus 1, 0 for none
    FAULT_MASK = 12  # i32
    FAULT_BLOCK = 16  # i64
    FAULT_WARP = 24  # i32
    FAULT_KIND = 28  # i32
    ADDRESSES = 64  # 32 x i64
    TAGS = 320  # TAG_COUNT x i64
    BYTES = TAGS + TAG_COUNT * 8


class WarpField:
    """Byte offsets in a suspended warp."""

    STATE = 0  # i32
    CYCLES = 8  # i64
    COUNTERS = 64  # 32 x i32
    REGISTERS = 256  # 256 bytes each


class WarpState:
    FRESH = 0
    WAITING = 1
    DONE = 2
    FAULTED = 3


class FaultKind:
    ADDRESS = 0
    TRAP = 1
    STOPPED = 2


WAITING_PC = 1 << 20
"""Added to a lane's program counter while it waits at a barrier."""
EXITED_PC = 1 << 24
