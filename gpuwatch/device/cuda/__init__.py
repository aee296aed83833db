"""An NVIDIA GPU through PyCUDA and the driver."""

from gpuwatch.device.cuda.binding import import_pycuda
from gpuwatch.device.cuda.device import CudaDevice, open_cuda
from gpuwatch.device.cuda.driver import NoGpuError, load_libcuda, require_driver_for
from gpuwatch.device.cuda.gpus import Gpu, require_usable, shown_gpus

__all__ = [
    "CudaDevice",
    "Gpu",
    "NoGpuError",
    "import_pycuda",
    "load_libcuda",
    "open_cuda",
    "require_driver_for",
    "require_usable",
    "shown_gpus",
]
