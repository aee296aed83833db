"""An NVIDIA GPU through PyCUDA and the driver."""

from gpuwatch.device.cuda.device import CudaDevice, open_cuda
from gpuwatch.device.cuda.driver import device_count, load_libcuda

__all__ = ["CudaDevice", "device_count", "load_libcuda", "open_cuda"]
