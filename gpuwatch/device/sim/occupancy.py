"""How many blocks fit on one SM at a time, by the rules of CUDA's occupancy calculator."""

from __future__ import annotations

from dataclasses import dataclass

from gpuwatch.device.sim.profiles import Profile
from gpuwatch.device.sim.program import align_up
from gpuwatch.errors import UserError

THREADS_PER_BLOCK = 1024
REGISTERS_PER_THREAD = 255


@dataclass(frozen=True, slots=True)
class Residency:
    """`blocks` fit on one SM at a time; `limited_by` says what stops one more: "blocks",
    "warps", "registers" or "shared memory"."""

    blocks: int
    limited_by: str


def resident_blocks(
    profile: Profile, threads_per_block: int, registers: int, shared_bytes: int
) -> Residency:
    """Blocks per SM for `registers` a thread and `shared_bytes` (static and dynamic) a block.

    The smallest of four limits: blocks per SM; warps per SM; registers, which a warp takes in
    `register_unit`s from one scheduler's share of the file (whether a block fits at all is checked
    with its warps rounded up to `warp_unit`); shared memory, in `shared_unit`s with the reserved
    bytes added. Source: the CUDA occupancy calculator (`cuda_occupancy.h`).

    Raises UserError (status 1, as the launch would fail) when not even one block fits.
    """
    _check(profile, threads_per_block, registers, shared_bytes)
    warps = -(-threads_per_block // 32)
    limits = {
        "warps": profile.warps_per_sm // warps,
        "registers": _blocks_by_registers(profile, warps, registers),
        "shared memory": _blocks_by_shared(profile, shared_bytes),
        "blocks": profile.blocks_per_sm,
    }
    limited_by = min(limits, key=limits.__getitem__)
    if limits[limited_by] == 0:
        raise _too_large(
            profile,
            f"a block of {threads_per_block} threads with {registers} registers each",
            f"{profile.registers_per_sm} registers per SM",
        )
    return Residency(limits[limited_by], limited_by)


def resident_warps(profile: Profile, resident: int, blocks: int, warps_per_block: int) -> int:
    """Warps on one SM in the launch's full waves: fewer than fit when the grid is small."""
    return max(1, min(resident, -(-blocks // profile.sm_count)) * warps_per_block)


def _blocks_by_registers(profile: Profile, warps: int, registers: int) -> int:
    if registers == 0:
        return profile.blocks_per_sm
    per_warp = align_up(registers * 32, profile.register_unit)
    if per_warp * align_up(warps, profile.warp_unit) > profile.registers_per_sm:
        return 0
    warps_per_scheduler = profile.registers_per_sm // profile.schedulers // per_warp
    return warps_per_scheduler * profile.schedulers // warps


def _blocks_by_shared(profile: Profile, shared_bytes: int) -> int:
    taken = align_up(shared_bytes + profile.shared_reserved, profile.shared_unit)
    return profile.shared_per_sm // taken if taken else profile.blocks_per_sm


def _check(profile: Profile, threads: int, registers: int, shared_bytes: int) -> None:
    for what, value, most in (
        ("threads in a block", threads, THREADS_PER_BLOCK),
        ("registers in a thread", registers, REGISTERS_PER_THREAD),
        ("bytes of shared memory in a block", shared_bytes, profile.shared_per_block_max),
    ):
        if value > most:
            raise _too_large(profile, f"{value} {what}", f"{most}")
    if threads < 1:
        raise UserError("a block needs at least one thread", status=1)


def _too_large(profile: Profile, asked: str, limit: str) -> UserError:
    return UserError(
        f"the launch is out of resources: {asked}; {profile.title} allows {limit}",
        hint="launch with smaller blocks, less shared memory, or build with -maxrregcount",
        status=1,
    )
