"""Device memory of a launch: its buffers, their first contents, and the maps of a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwatch.launch.model import Launch
from gpuwatch.ptx import parse
from gpuwatch.ptx.model import Module
from gpuwatch.ptx.pointers import parameters_read_through

_ALIGN = 256


def _offsets(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Aligned offsets (bytes) of consecutive buffers, and their total size."""
    offsets, at = [], 0
    for size in sizes:
        offsets.append(at)
        at += -(-max(size, 1) // _ALIGN) * _ALIGN
    return offsets, at


class LaunchMemory:
    """The launch's buffers on the device, shared by the plain and the probed kernel.

    A pristine copy of every buffer stays on the device; `restore` copies back those that a
    launch was seen to change and may read, so that kernels which update in place start from the
    same inputs. `ptx` is the plain kernel's module.
    """

    def __init__(self, driver: Any, launch: Launch, ptx: str) -> None:
        self._driver = driver
        self.launch = launch
        self._work = [driver.mem_alloc(max(b.nbytes, 1)) for b in launch.buffers]
        self._first = [driver.mem_alloc(max(b.nbytes, 1)) for b in launch.buffers]
        addresses = self._addresses()
        relocations = launch.buffer_relocations
        self._contents = [
            relocations[index].written(contents, addresses) if index in relocations else contents
            for index, contents in enumerate(launch.buffers)
        ]
        """The buffers' first contents with device addresses in them."""
        for work, first, contents in zip(self._work, self._first, self._contents, strict=True):
            if contents.nbytes:
                driver.memcpy_htod(first, contents)
                driver.memcpy_dtod(work, first, contents.nbytes)
        module = parse(ptx)
        self.variables = tuple(one.name for one in module.variables if one.space == "global")
        """Module variables that a kernel may write."""
        self._read = _buffers_read(launch, module)
        self._changed: set[int] = set(range(len(launch.buffers)))
        """Buffers to restore: all of them, until a launch's results were compared once."""

    def _addresses(self) -> list[int]:
        return [int(work) for work in self._work]

    def variable(self, name: str) -> bytes:
        """First content of a module variable that the host set."""
        content = self.launch.globals[name]
        pointers = self.launch.global_relocations.get(name)
        if pointers is None:
            return content
        return pointers.written(np.frombuffer(content, np.uint8), self._addresses()).tobytes()

    def parameters(self) -> bytes:
        """The parameter block with the buffers' device addresses filled in."""
        block = bytearray(self.launch.parameters)
        for place in self.launch.relocations:
            address = int(self._work[place.buffer]) + place.addend
            block[place.offset : place.offset + 8] = address.to_bytes(8, "little")
        return bytes(block)

    def restore(self, stream: Any, *, everything: bool = False) -> None:
        """Copies back what a launch may have changed and the next may read; `everything` also
        takes back what is only written, so that results cannot be another kernel's."""
        for index in self._changed if everything else self._changed & self._read:
            size = self.launch.buffers[index].nbytes
            if size:
                self._driver.memcpy_dtod_async(self._work[index], self._first[index], size, stream)

    def read(self) -> list[NDArray[np.uint8]]:
        """Contents of every buffer now; learns from them which ones the kernel writes."""
        contents = []
        for work, first in zip(self._work, self.launch.buffers, strict=True):
            now = np.empty(first.nbytes, np.uint8)
            if first.nbytes:
                self._driver.memcpy_dtoh(now, work)
            contents.append(now)
        return contents

    def learn_changed(self) -> None:
        """From now on `restore` copies only the buffers that differ from their first contents.

        Call after a launch. A buffer seen changed stays in the set for good.
        """
        contents = self.read()
        self._changed = {
            index
            for index, (now, first) in enumerate(zip(contents, self._contents, strict=True))
            if not np.array_equal(now, first)
        }

    def close(self) -> None:
        for allocation in (*self._work, *self._first):
            allocation.free()
        self._work, self._first = [], []


class MapMemory:
    """The map buffers of one probed kernel: those that launches write lie in one allocation,
    which one memset clears; `fixed` ones behind it."""

    def __init__(
        self, driver: Any, sizes: Sequence[int], fixed: Mapping[int, NDArray[np.uint8]]
    ) -> None:
        self._driver = driver
        self._sizes = tuple(sizes)
        order = sorted(range(len(sizes)), key=lambda index: index in fixed)
        offsets, total = _offsets([sizes[index] for index in order])
        placed = dict(zip(order, offsets, strict=True))
        self._offsets = [placed[index] for index in range(len(sizes))]
        self._cleared = min((placed[index] for index in fixed), default=total)
        self._base = driver.mem_alloc(total) if sizes else None
        for index, contents in fixed.items():
            if contents.nbytes and self._base is not None:
                driver.memcpy_htod(int(self._base) + placed[index], contents)
        self._host: dict[int, NDArray[np.uint8]] = {}

    @property
    def cleared_bytes(self) -> int:
        """Bytes from buffer 0 on that launches write: all buffers but the fixed ones."""
        return self._cleared

    def address(self, index: int) -> int:
        """Device address of buffer `index`."""
        if self._base is None:
            raise IndexError("there are no map buffers")
        return int(self._base) + self._offsets[index]

    def part(self, copy: NDArray[np.uint8], index: int) -> NDArray[np.uint8]:
        """Buffer `index` in a copy of the `cleared_bytes`."""
        at = self._offsets[index]
        return copy[at : at + self._sizes[index]]

    def addresses(self) -> bytes:
        """Device addresses of the buffers as packed u64."""
        if self._base is None:
            return b""
        base = int(self._base)
        return b"".join((base + at).to_bytes(8, "little") for at in self._offsets)

    def clear(self, stream: Any) -> None:
        if self._base is not None and self._cleared:
            self._driver.memset_d8_async(self._base, 0, self._cleared, stream)

    def read(self, index: int) -> NDArray[np.uint8]:
        """Bytes of buffer `index` in pinned memory, valid until the next read of it."""
        size = self._sizes[index]
        if index not in self._host:
            self._host[index] = self._driver.pagelocked_empty(max(size, 1), np.uint8)
        host = self._host[index]
        if size and self._base is not None:
            self._driver.memcpy_dtoh(host[:size], int(self._base) + self._offsets[index])
        return host[:size]

    def close(self) -> None:
        if self._base is not None:
            self._base.free()
            self._base = None
        self._host = {}


def _buffers_read(launch: Launch, module: Module) -> set[int]:
    """Buffers that the kernel may read: all of them where its PTX does not tell."""
    function = next(one for one in module.entries() if one.name == launch.kernel)
    names = parameters_read_through(function)
    everything = set(range(len(launch.buffers)))
    elsewhere = launch.buffer_relocations or launch.global_relocations
    if names is None or not launch.slots or elsewhere:
        return everything
    read = set()
    for place in launch.relocations:
        slot = max((s for s in launch.slots if s.offset <= place.offset), key=lambda s: s.offset)
        if slot.name in names:
            read.add(place.buffer)
    return read
