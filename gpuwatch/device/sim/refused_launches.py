"""Launches that the simulator refuses."""

from __future__ import annotations

from gpuwatch.device.sim.occupancy import Residency
from gpuwatch.device.sim.profiles import Profile
from gpuwatch.device.sim.program import Program, read
from gpuwatch.errors import UserError
from gpuwatch.launch.model import Launch


def refuse(launch: Launch, program: Program, profile: Profile, residency: Residency) -> None:
    """Raises UserError where blocks of a cluster of several would ask who they are, and where
    not all blocks of a cooperative launch fit on the GPU at once."""
    _refuse_clusters(launch, program)
    if launch.cooperative and launch.blocks > profile.sm_count * residency.blocks:
        raise _too_many_blocks(launch, profile, residency.blocks)


def _refuse_clusters(launch: Launch, program: Program) -> None:
    if launch.cluster is None or launch.cluster == (1, 1, 1):
        return
    if any("cluster" in name for i in program.instructions for name in read(i)):
        extent = " x ".join(map(str, launch.cluster))
        raise UserError(
            f"the simulator runs no clusters of several blocks: {launch.kernel} asks for "
            f"{extent} and reads its place in the cluster",
            hint="run this kernel on a GPU (--device cuda)",
        )


def _too_many_blocks(launch: Launch, profile: Profile, resident: int) -> UserError:
    return UserError(
        f"cooperative launch too large: all {launch.blocks} blocks of {launch.kernel} must be "
        f"resident at once, but {profile.title} holds {resident} on each of its "
        f"{profile.sm_count} SMs, {resident * profile.sm_count} in all",
        hint="launch fewer blocks, as cudaOccupancyMaxActiveBlocksPerMultiprocessor advises",
        status=1,
    )
