"""The simulated device."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gpuwatch.device.base import DeviceInfo, KernelImage, LoadedKernel, Reduction
from gpuwatch.device.sim import profiles
from gpuwatch.device.sim.kernel import SimKernel
from gpuwatch.launch.model import DeviceAnswers, Launch

TIMEOUT_SECONDS = 10.0


class SimDevice:
    """See `Device`. `threads` are host threads; the results do not depend on them."""

    def __init__(
        self,
        profile: profiles.Profile,
        *,
        threads: int | None = None,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self._profile = profile
        self._threads = threads or min(8, len(os.sched_getaffinity(0)))
        self._timeout = timeout

    @property
    def info(self) -> DeviceInfo:
        profile = self._profile
        return DeviceInfo(
            name=profile.title,
            kind="sim",
            profile=profile.name,
            arch=profile.arch,
            sm_count=profile.sm_count,
            warps_per_sm=profile.warps_per_sm,
            clock_hz=profile.clock_hz,
            modelled=True,
        )

    @property
    def answers(self) -> DeviceAnswers:
        return profiles.answers(self._profile)

    def load(
        self,
        image: KernelImage,
        launch: Launch,
        map_buffers: Sequence[int],
        fixed: Mapping[int, NDArray[np.uint8]] | None = None,
    ) -> SimKernel:
        """Raises UserError (status 2) with every instruction that cannot be executed."""
        return SimKernel(
            self._profile,
            image,
            launch,
            map_buffers,
            fixed or {},
            threads=self._threads,
            timeout=self._timeout,
        )

    def pipeline(
        self,
        _probed: LoadedKernel,
        _plain: LoadedKernel,
        _reduction: Reduction,
        _cubin: bytes,
        _seconds: float,
        *,
        plain_every: int,  # noqa: ARG002
        max_rate: float,  # noqa: ARG002
    ) -> None:
        """None: its launches are one by one."""
        return

    def close(self) -> None:
        """Nothing is held beyond the kernels."""


def open_sim(
    profile: str = "a10", *, threads: int | None = None, timeout: float = TIMEOUT_SECONDS
) -> SimDevice:
    """A simulated GPU by the name of its profile, or by the path of a `.toml` profile.

    `timeout` is the wall time in seconds after which a launch counts as never ending.
    """
    return SimDevice(profiles.load(profile), threads=threads, timeout=timeout)
