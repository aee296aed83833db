"""A cubin loaded through the driver itself, and its kernel's launches.

PyCUDA keeps the driver's function handle to itself and knows neither cooperative launches nor
clusters, so modules and launches go through `libcuda` (CUDA driver API 13.0: "Module
Management", "Execution Control"). Contexts, memory, streams and events are PyCUDA's.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

from gpuwatch.errors import UserError
from gpuwatch.launch.model import Launch

_STATIC_SHARED_LIMIT = 48 << 10
_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14
_ATTRIBUTE_COOPERATIVE = 2
_ATTRIBUTE_CLUSTER_DIMENSION = 4
_MAX_PORTABLE_CLUSTER = 8
_OUT_OF_MEMORY = 2
_NOT_FOUND = 500

_LOAD_HINT = (
    "a driver older than the toolkit, or a cubin for another GPU, answers so; see `gpuwatch doctor`"
)


class DriverError(Exception):
    """`status` is a CUresult, the text its name and description."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute."""

    _fields_ = (
        ("id", ctypes.c_int),
        ("pad", ctypes.c_char * 4),
        ("value", ctypes.c_uint32 * 16),
    )


class _Configuration(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("attribute_count", ctypes.c_uint),
    )


@cache
def library() -> ctypes.CDLL:
    """The driver's library."""
    return ctypes.CDLL("libcuda.so.1")


def check(status: int) -> None:
    """Raises DriverError unless `status` is 0."""
    if status:
        name, words = ctypes.c_char_p(), ctypes.c_char_p()
        library().cuGetErrorName(status, ctypes.byref(name))
        library().cuGetErrorString(status, ctypes.byref(words))
        text = (name.value or b"error").decode() + f" ({status}): "
        raise DriverError(status, text + (words.value or b"unknown").decode())


class CudaModule:
    """A cubin in the current context.

    Raises UserError (status 1) when the driver refuses it.
    """

    def __init__(self, cubin: bytes) -> None:
        self._handle = ctypes.c_void_p()
        try:
            check(library().cuModuleLoadData(ctypes.byref(self._handle), cubin))
        except DriverError as problem:
            if problem.status == _OUT_OF_MEMORY:
                raise
            raise UserError(
                "the driver does not load this kernel",
                detail=str(problem),
                hint=_LOAD_HINT,
                status=1,
            ) from problem

    def variable(self, name: str) -> tuple[int, int] | None:
        """Address and bytes of a module variable; None when ptxas left it out."""
        address, size = ctypes.c_uint64(), ctypes.c_size_t()
        status = library().cuModuleGetGlobal_v2(
            ctypes.byref(address), ctypes.byref(size), self._handle, name.encode()
        )
        if status == _NOT_FOUND:
            return None
        check(status)
        return address.value, size.value

    def function(self, name: str) -> ctypes.c_void_p:
        """The handle of a kernel."""
        function = ctypes.c_void_p()
        check(library().cuModuleGetFunction(ctypes.byref(function), self._handle, name.encode()))
        return function

    def close(self) -> None:
        library().cuModuleUnload(self._handle)


class PreparedLaunch:
    """A kernel with shape, attributes and arguments of a launch; `start` costs one driver call.

    `parameters` is the packed parameter block; the arguments lie in it at `offsets`.
    """

    def __init__(
        self,
        function: ctypes.c_void_p,
        launch: Launch,
        parameters: bytes,
        offsets: Sequence[int],
    ) -> None:
        self._function = function
        self._launch = launch
        self._block = ctypes.create_string_buffer(parameters, max(1, len(parameters)))
        base = ctypes.addressof(self._block)
        places = [base + offset for offset in offsets]
        self._arguments = (ctypes.c_void_p * max(1, len(places)))(*places)
        self._attributes = _attributes(launch)
        self._configuration = _Configuration(
            launch.grid,
            launch.block,
            launch.shared_bytes,
            None,
            self._attributes,
            len(self._attributes),
        )
        self._allow_large_shape()

    def resident_blocks(self) -> int:
        """Blocks that fit on one SM at a time, as the driver counts them."""
        blocks = ctypes.c_int()
        check(
            library().cuOccupancyMaxActiveBlocksPerMultiprocessor(
                ctypes.byref(blocks),
                self._function,
                self._launch.threads_per_block,
                ctypes.c_size_t(self._launch.shared_bytes),
            )
        )
        return blocks.value

    def start(self, stream: Any) -> None:
        """Puts the launch into a PyCUDA stream. Raises DriverError when it cannot start."""
        self._configuration.stream = stream.handle
        check(
            library().cuLaunchKernelEx(
                ctypes.byref(self._configuration), self._function, self._arguments, None
            )
        )

    def _allow_large_shape(self) -> None:
        wanted = []
        if self._launch.shared_bytes > _STATIC_SHARED_LIMIT:
            wanted.append((_MAX_DYNAMIC_SHARED_SIZE_BYTES, self._launch.shared_bytes))
        x, y, z = self._launch.cluster or (1, 1, 1)
        if x * y * z > _MAX_PORTABLE_CLUSTER:
            wanted.append((_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1))
        for attribute, value in wanted:
            check(library().cuFuncSetAttribute(self._function, attribute, value))


def _attributes(launch: Launch) -> ctypes.Array[_Attribute]:
    found: list[tuple[int, tuple[int, ...]]] = []
    if launch.cooperative:
        found.append((_ATTRIBUTE_COOPERATIVE, (1,)))
    if launch.cluster is not None:
        found.append((_ATTRIBUTE_CLUSTER_DIMENSION, launch.cluster))
    array = (_Attribute * len(found))()
    for place, (number, values) in zip(array, found, strict=True):
        place.id = number
        place.value[: len(values)] = values
    return array
