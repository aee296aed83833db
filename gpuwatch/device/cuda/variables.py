"""A loaded module's own global variables: what they held at first, and putting it back."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuwatch.device.cuda.module import CudaModule


class VariableMemory:
    """The variables of `names` that the module has, as they are when this is made.

    A copy on the device is made of those only that are to be put back.
    """

    def __init__(self, driver: Any, module: CudaModule, names: Iterable[str]) -> None:
        self._driver = driver
        numbered = [(name, number, module.variable(name)) for number, name in enumerate(names)]
        self._places = {name: place for name, _, place in numbered if place is not None}
        self._numbers = {name: number for name, number, _ in numbered}
        self._first = self._contents()
        self._copies: dict[str, Any] = {}

    def read(self) -> dict[str, NDArray[np.uint8]]:
        """Their contents now, the same in every module that computed the same: addresses of the
        variables themselves, which differ, are given as the variable's number and the offset."""
        contents = self._contents()
        for content in contents.values():
            words = content[: content.size // 8 * 8].view(np.uint64)
            for name, (address, size) in self._places.items():
                offsets = words - np.uint64(address)
                pointing = offsets < size
                words[pointing] = np.uint64(self._numbers[name] << 48) + offsets[pointing]
        return contents

    def _contents(self) -> dict[str, NDArray[np.uint8]]:
        contents = {}
        for name, (address, size) in self._places.items():
            contents[name] = np.empty(size, np.uint8)
            self._driver.memcpy_dtoh(contents[name], address)
        return contents

    def changed(self) -> frozenset[str]:
        now = self._contents()
        return frozenset(
            name for name, first in self._first.items() if not np.array_equal(now[name], first)
        )

    def restore(self, stream: Any, names: Collection[str]) -> None:
        for name in names:
            address, size = self._places[name]
            if name not in self._copies:
                self._copies[name] = self._driver.mem_alloc(size)
                self._driver.memcpy_htod(self._copies[name], self._first[name])
            self._driver.memcpy_dtod_async(address, self._copies[name], size, stream)

    def close(self) -> None:
        for copy in self._copies.values():
            copy.free()
        self._copies = {}
