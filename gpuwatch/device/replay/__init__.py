"""A recorded trace as a device."""

from gpuwatch.device.replay.kernel import ReplayKernel, replay_info

__all__ = ["ReplayKernel", "replay_info"]
