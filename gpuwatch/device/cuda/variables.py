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
        found = ((name, module.variable(name)) for name in names)
        self._places = {name: place for name, place in found if place is not None}
        self._first = self.read()
        self._copies: dict[str, Any] = {}

    def read(self) -> dict[str, NDArray[np.uint8]]:
        """Their contents now."""
        contents = {}
        for name, (address, size) in self._places.items():
            contents[name] = np.empty(size, np.uint8)
            self._driver.memcpy_dtoh(contents[name], address)
        return contents

    def changed(self) -> frozenset[str]:
        now = self.read()
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
