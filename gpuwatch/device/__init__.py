"""Devices that execute a kernel image: CUDA and simulated."""

from gpuwatch.device.open import FORMS, open_device

__all__ = ["FORMS", "open_device"]
