"""A simulated GPU: PTX runs on the CPU with exact values and modelled cycles."""

from gpuwatch.device.sim.device import SimDevice, open_sim

__all__ = ["SimDevice", "open_sim"]
