"""Summing up a launch's records on the GPU that made them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwatch.device.base import FieldPlace, Reduced, Reduction
from gpuwatch.device.cuda.module import CudaModule, check, library

SOURCE = Path(__file__).with_name("reduce.cu")
"""CUDA C++ of the kernel; whoever compiles it hands its cubin to the device."""
ENTRY = "gpuwatch_reduce"
BUCKETS = 1024
MAX_SMS = 512
_THREADS = 512
_SLOTS_PER_BLOCK = 4 * _THREADS
"""Few, full blocks: each keeps one of the watched kernel's blocks off an SM for a moment."""
_MOST_BLOCKS = 264
_WORD = 8
_SUMS = 8
"""u64 words of `Sums` and, times four, of an SM's row in reduce.cu."""
_SM_WORDS = 4
_LAUNCH_WORDS = 5
"""u64 words of `Launch` in reduce.cu."""


class _Map(ctypes.Structure):
    """`Map` of reduce.cu."""

    _fields_ = (
        ("slots", ctypes.c_uint64),
        ("size", ctypes.c_uint32),
        ("capacity", ctypes.c_uint32),
        ("mark", ctypes.c_int32),
        ("start", ctypes.c_int32),
        ("start_bytes", ctypes.c_int32),
        ("elapsed", ctypes.c_int32),
        ("elapsed_bytes", ctypes.c_int32),
        ("sm", ctypes.c_int32),
        ("sm_bytes", ctypes.c_int32),
        ("unused", ctypes.c_int32),
    )


@dataclass(frozen=True, slots=True)
class ReductionGroup:
    """Launches that are reduced together: their table in device memory, how many there are, and
    the arguments of the kernel."""

    table: Any
    launches: int
    arguments: Any
    values: tuple[Any, ...]


class Reducer:
    """The sums of one watched kernel: totals in device memory, scratch for each map set.

    `cubin` is the compiled `reduce.cu`. A scratch holds one launch's per-SM rows and the ticket
    by which the last block is known; it is cleared together with the maps.
    """

    def __init__(self, driver: Any, cubin: bytes, reduction: Reduction, sms: int) -> None:
        self._driver = driver
        self._reduction = reduction
        self._sms = min(sms, MAX_SMS)
        self._module = CudaModule(cubin)
        self._function = self._module.function(ENTRY)
        self._rows = _WORD * _SM_WORDS * self._sms
        self._totals_bytes = _WORD * (_SUMS + BUCKETS) + self._rows
        self._totals = driver.mem_alloc(self._totals_bytes)
        self._host = driver.pagelocked_empty(self._totals_bytes // _WORD, np.uint64)
        self._host[:] = 0
        driver.memset_d8(self._totals, 0, self._totals_bytes)
        self._tables: list[Any] = []

    @property
    def scratch_bytes(self) -> int:
        return self._rows + _WORD

    def prepare(self, sets: Sequence[tuple[Sequence[int], int]]) -> ReductionGroup:
        """What `start` needs for launches with these map buffers and scratch, by address."""
        one = self._reduction
        rows = np.zeros((len(sets), _LAUNCH_WORDS), np.uint64)
        for row, (buffers, scratch) in zip(rows, sets, strict=True):
            offsets = buffers[one.offsets] if one.offsets >= 0 else 0
            places = buffers[one.records], buffers[one.counts], offsets, scratch
            row[:] = *places, scratch + self._rows
        table = self._driver.mem_alloc(rows.nbytes)
        self._driver.memcpy_htod(table, rows)
        self._tables.append(table)
        sums = int(self._totals)
        histogram = sums + _WORD * _SUMS
        values = (
            self._map(),
            ctypes.c_int(self._sms),
            ctypes.c_uint64(sums),
            ctypes.c_uint64(histogram),
            ctypes.c_uint64(histogram + _WORD * BUCKETS),
            ctypes.c_uint64(int(table)),
        )
        pointers = [ctypes.addressof(value) for value in values]
        arguments = (ctypes.c_void_p * len(values))(*pointers)
        return ReductionGroup(table, len(sets), arguments, values)

    def _map(self) -> _Map:
        one = self._reduction
        return _Map(
            one.slots,
            one.size,
            one.capacity,
            one.mark,
            *_place(one.start),
            *_place(one.elapsed),
            *_place(one.sm if one.start is not None else None),
            0,
        )

    def start(self, group: ReductionGroup, stream: Any) -> None:
        """Puts the reduction of a group's launches into a stream."""
        blocks = max(1, min(_MOST_BLOCKS, -(-self._reduction.slots // _SLOTS_PER_BLOCK)))
        check(
            library().cuLaunchKernel(
                self._function, blocks, group.launches, 1, _THREADS, 1, 1, 0,
                ctypes.c_void_p(stream.handle), group.arguments, None,
            )
        )  # fmt: skip

    def clear(self, stream: Any) -> None:
        self._driver.memset_d8_async(self._totals, 0, self._totals_bytes, stream)

    def copy(self, stream: Any) -> None:
        """Puts a copy of the sums into a stream; `read` gives them once it has run."""
        self._driver.memcpy_dtoh_async(self._host, self._totals, stream)

    def read(self) -> Reduced:
        """The sums as last copied."""
        return decode(self._host, self._sms)

    def close(self) -> None:
        for memory in (self._totals, *self._tables):
            memory.free()
        self._module.close()


def decode(words: NDArray[np.uint64], sms: int) -> Reduced:
    """What reduce.cu wrote: `Sums`, the histogram, then a row for each of `sms` SMs; u64."""
    launches, records, missing, dropped, elapsed, least, most, _ = map(int, words[:_SUMS])
    rows = words[_SUMS + BUCKETS :][: sms * _SM_WORDS].reshape(sms, _SM_WORDS).astype(np.int64)
    return Reduced(
        launches=launches,
        records=records,
        missing=missing,
        dropped=dropped,
        elapsed_sum=elapsed,
        elapsed_min=(~least) & ((1 << 64) - 1) if records else 0,
        elapsed_max=most,
        histogram=words[_SUMS : _SUMS + BUCKETS].astype(np.int64),
        sm_sum=rows[:, 0],
        sm_span=rows[:, 1],
        sm_launches=rows[:, 2],
        sm_records=rows[:, 3],
    )


def _place(place: FieldPlace | None) -> tuple[int, int]:
    return (-1, 0) if place is None else (place.offset, place.size)
