"""Devices that execute a kernel image: CUDA and simulated."""

from gpuwatch.device.open import FORMS, check_device, open_device

__all__ = ["FORMS", "check_device", "open_device"]
