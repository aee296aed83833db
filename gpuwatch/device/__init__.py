"""Devices that execute a kernel image: CUDA, simulated, replayed."""
