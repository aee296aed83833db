"""The driver's own answer to how many blocks of a kernel fit on an SM."""

from __future__ import annotations

import ctypes

from gpuwatch.device.base import KernelImage
from gpuwatch.errors import UserError
from gpuwatch.launch.model import Launch

_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES of cuda.h."""
_STATIC_LIMIT = 48 << 10


def resident_blocks(image: KernelImage, launch: Launch) -> int:
    """Blocks of `launch` that fit on one SM of the current context.

    Asks `cuOccupancyMaxActiveBlocksPerMultiprocessor` about a second copy of the module, since
    PyCUDA gives no access to the driver's function handle; the copy is unloaded at once.
    Raises UserError (status 1) when the driver refuses the module.
    """
    library = ctypes.CDLL("libcuda.so.1")
    module, function, blocks = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    _check(library, library.cuModuleLoadData(ctypes.byref(module), image.cubin))
    try:
        name = image.entry.encode()
        _check(library, library.cuModuleGetFunction(ctypes.byref(function), module, name))
        if launch.shared_bytes > _STATIC_LIMIT:
            attribute = _MAX_DYNAMIC_SHARED_SIZE_BYTES
            _check(library, library.cuFuncSetAttribute(function, attribute, launch.shared_bytes))
        _check(
            library,
            library.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                ctypes.byref(blocks),
                function,
                launch.threads_per_block,
                ctypes.c_size_t(launch.shared_bytes),
            ),
        )
    finally:
        library.cuModuleUnload(module)
    return blocks.value


def _check(library: ctypes.CDLL, status: int) -> None:
    if status:
        text = ctypes.c_char_p()
        library.cuGetErrorString(status, ctypes.byref(text))
        raise UserError(
            f"the driver does not load this kernel: {(text.value or b'unknown').decode()}",
            hint="a driver older than the toolkit, or a cubin for another GPU, answers so; "
            "see `gpuwatch doctor`",
            status=1,
        )
