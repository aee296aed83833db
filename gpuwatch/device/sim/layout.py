"""Where things lie: the address windows, and the structures that generated code and host share."""

from __future__ import annotations

ARENA_BASE = 0x10_0000_0000
"""Device address of the arena; fixed, so that addresses and hence cycles repeat."""
SHARED_WINDOW = 0x1_0000_0000
LOCAL_WINDOW = 0x2_0000_0000
CODE_WINDOW = 0x3_0000_0000
"""Where functions have their addresses."""
PARAMETER_WINDOW = 0x4_0000_0000
"""Generic addresses of the kernel's parameters, for `cvta.param`."""
WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAMETER_WINDOW}
"""Where the generic addresses of a space begin."""
WINDOW_BYTES = 1 << 24
STACK_BYTES = 64 << 10
"""Local memory that the frames of a thread's recursive functions may take."""

SECTOR_BYTES = 32
WAVEFRONT_SECTORS = 4
"""Sectors that one pass through the L1 moves."""
WAVEFRONT_BYTES = WAVEFRONT_SECTORS * SECTOR_BYTES
WIDE_BYTES = 16
"""An access of this many bytes a lane takes two passes at least, whatever its addresses."""
SCATTERED_ATOMIC_TURNS = 5
"""Turns of a line's L2 slice that each sector of an atomic takes, when it touches several; one
sector takes a single turn (measured on H200)."""
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
    SECTOR_CYCLES = 48
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
    THREADS = 164  # i32, of a block
    SHARED_STRIDE = 168  # i64 each: bytes from one block in flight to the next
    LOCAL_STRIDE = 176
    WARPS_STRIDE = 184
    GRID_STATE = 192  # i64, device address of the grid barrier's state, or 0
    PRINT = 200  # ptr to the host's function that prints
    WRITTEN_CYCLES = 208  # i64
    COSTS = 256  # i64 per basic block, cycles; then as many of its misses


class WorkerField:
    """Byte offsets in the state that one host thread owns."""

    INSTRUCTIONS = 0  # i64
    FAULT = 8  # i32, instruction index plus 1, 0 for none
    FAULT_MASK = 12  # i32
    FAULT_BLOCK = 16  # i64
    FAULT_WARP = 24  # i32
    FAULT_KIND = 28  # i32
    FAULT_SLOT = 32  # i64, which of the blocks in flight
    ADDRESSES = 64  # 32 x i64
    TAGS = 320  # TAG_COUNT x i64
    ATOMICS = TAGS + TAG_COUNT * 8  # TAG_COUNT x i64, turns of atomics by the line they touch
    BYTES = ATOMICS + TAG_COUNT * 8


class WarpField:
    """Byte offsets in a suspended warp; its state comes first, an i32."""

    EXITED = 4  # i32, lanes that have exited or never were
    CYCLES = 8  # i64
    SEEN = 16  # i32, barriers of the block that had completed when the warp last ran
    COUNTERS = 64  # 32 x i32
    REGISTERS = 256


class WarpState:
    FRESH = 0
    WAITING = 1
    DONE = 2
    FAULTED = 3
    PAUSED = 4
    RELEASED = 5
    STUCK = 6


class BlockField:
    """Byte offsets in the state of a block in flight."""

    INDEX = 0  # i64, in the wave
    LINEAR = 8  # i64, in the grid
    START = 16  # i64, cycles
    X = 24  # i32 each
    Y = 28
    Z = 32
    SM = 36
    LIVE = 40  # i32
    EXITED = 44  # i32, threads
    COMPLETED = 48  # i32, barriers that have completed
    BARRIERS = 64
    BYTES = 1088


BARRIER_COUNT = 16


class BarrierField:
    """Byte offsets in a named barrier."""

    ARRIVED = 0  # i32, threads
    COUNT = 4  # i32, threads wanted, 0 for all
    PHASE = 8  # i32, how often it has completed
    YES = 12  # i32, threads whose predicate held
    NO = 16  # i32, the others
    LATEST = 24  # i64, cycles of the last arrival
    RELEASED_AT = 32  # i64, the same of the last completed phase
    RESULT = 28  # from YES and NO to those of the last completed phase
    BYTES = 64


class FaultKind:
    ADDRESS = 0
    TRAP = 1
    STOPPED = 2
    ASSERT = 3
    STACK = 4
    CALL = 5
    BRANCH = 6
    DEADLOCK = 7


MEETING_PC = 1 << 18
"""Added to a lane's program counter while it waits for other lanes of its warp."""
WAITING_PC = 1 << 20
"""Added to a lane's program counter while it waits at a barrier."""
EXITED_PC = 1 << 24

PLAIN_QUANTUM = 1 << 20
"""Cycles that a warp runs between two looks at whether the host wants to stop."""
POLLING_QUANTUM = 1024
"""Cycles that lanes run before others get their turn, in kernels with loops that poll."""
