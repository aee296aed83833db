"""Launches that the simulator refuses."""

from __future__ import annotations

from gpuwatch.device.sim.profiles import Profile
from gpuwatch.device.sim.program import Program, read
from gpuwatch.errors import UserError
from gpuwatch.launch.model import Launch


def refuse_clusters(launch: Launch, program: Program) -> None:
    """Raises UserError where blocks of a cluster of several would ask who they are."""
    if launch.cluster is None or launch.cluster == (1, 1, 1):
        return
    if any("cluster" in name for i in program.instructions for name in read(i)):
        extent = " x ".join(map(str, launch.cluster))
        raise UserError(
            f"the simulator runs no clusters of several blocks: {launch.kernel} asks for "
            f"{extent} and reads its place in the cluster",
            hint="run this kernel on a GPU (--device cuda)",
        )


def too_many_blocks(launch: Launch, profile: Profile, resident: int) -> UserError:
    """Of a cooperative launch; `resident` blocks fit on an SM."""
    return UserError(
        f"cooperative launch too large: all {launch.blocks} blocks of {launch.kernel} must be "
        f"resident at once, but {profile.title} holds {resident} on each of its "
        f"{profile.sm_count} SMs, {resident * profile.sm_count} in all",
        hint="launch fewer blocks, as cudaOccupancyMaxActiveBlocksPerMultiprocessor advises",
        status=1,
    )
