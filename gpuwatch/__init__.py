"""gpuwatch: a live view inside a running CUDA kernel."""

__version__ = "0.1.0"
