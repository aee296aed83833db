"""What the injected library and gpuwatch tell each other; `injection/` is the other side.

README.md beside this file describes it whole. Lines of words go through a socket; the figures of
all launches lie in a table that the library writes and gpuwatch reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpuwatch.launch.model import Dim3

VERSION = 1
RUN = "GPUWATCH_RUN"
"""Names, to the library, the folder of the run."""
INJECTION = "CUDA_INJECTION64_PATH"
"""Names, to the CUDA driver, the library that it loads (CUDA driver API, "Environment Variables";
CUPTI, "Injection")."""
CONTROL = "control"
TABLE = "table"
RECENT = 12
MOST_CONSTANTS = 16

HEAD = np.dtype(
    [
        ("magic", "u4"), ("version", "u4"), ("row_bytes", "u4"), ("capacity", "u4"),
        ("rows", "u8"), ("launches", "u8"), ("lost_rows", "u8"), ("lost_records", "u8"),
        ("records", "u8"), ("sampled", "u8"), ("spare", "u1", 192),
    ]
)  # fmt: skip
ROW = np.dtype(
    [
        ("kernel", "u4"), ("device", "u4"), ("grid", "u4", 3), ("block", "u4", 3),
        ("dynamic_shared", "u4"), ("static_shared", "u4"), ("registers", "u4"),
        ("unused", "u4"),
        ("launches", "u8"), ("total_ns", "u8"), ("max_ns", "u8"), ("probed", "u8"),
        ("probed_ns", "u8"), ("in_graphs", "u8"), ("seen", "u8"), ("skipped", "u8"),
        ("recent", "u4", RECENT), ("recent_probed", "u4", RECENT),
        ("recents", "u4"), ("recents_probed", "u4"), ("spare", "u8", 5),
    ]
)  # fmt: skip
"""Of a kernel on a device in one shape. `total_ns` are those of launches without the probe,
`recent` the last of those in a ring; `seen` counts launches since the kernel was first watched,
`skipped` those of them without the probe."""
MAGIC = 0x77757067


@dataclass(frozen=True, slots=True)
class Shape:
    """How a kernel is launched; `dynamic_shared` in bytes."""

    grid: Dim3
    block: Dim3
    dynamic_shared: int

    def words(self) -> str:
        return " ".join(map(str, (*self.grid, *self.block, self.dynamic_shared)))

    @staticmethod
    def of(words: Iterable[str]) -> Shape:
        """From seven numbers. Raises ValueError for anything else."""
        gx, gy, gz, bx, by, bz, shared = map(int, words)
        return Shape((gx, gy, gz), (bx, by, bz), shared)

    @staticmethod
    def of_row(row: NDArray[np.void]) -> Shape:
        gx, gy, gz = (int(one) for one in row["grid"])
        bx, by, bz = (int(one) for one in row["block"])
        return Shape((gx, gy, gz), (bx, by, bz), int(row["dynamic_shared"]))


@dataclass(frozen=True, slots=True)
class DeviceWords:
    """A GPU as the driver of the program describes it; clock in kHz, shared memory in bytes."""

    name: str
    ordinal: int
    major: int
    minor: int
    sm_count: int
    threads_per_sm: int
    clock_khz: int
    registers_per_sm: int
    shared_per_sm: int
    blocks_per_sm: int
    shared_reserved: int

    @staticmethod
    def of(words: list[str]) -> DeviceWords:
        """Raises ValueError for too few words."""
        return DeviceWords(" ".join(words[10:]), *map(int, words[:10]))

    @property
    def arch(self) -> str:
        """Like "sm_90"."""
        return f"sm_{self.major}{self.minor}"


@dataclass(frozen=True, slots=True)
class BuildOrder:
    """A probed kernel that the library is to launch in place of the program's own; `number` is
    that of what it wanted.

    `buffers` are the sizes of the maps in bytes, `fixed` the files with those that the kernel only
    reads, by their index; `constants` variables that are copied from the program's own module.
    """

    number: int
    cubin: Path
    entry: str
    takes_pointers: bool
    variable: str
    parameters: int
    parameter_bytes: int
    slots: int
    buffers: tuple[int, ...]
    constants: tuple[str, ...] = ()
    fixed: tuple[tuple[int, Path], ...] = ()

    def line(self) -> str:
        words: list[object] = ["build", self.number]
        words += [self.cubin, self.entry, int(self.takes_pointers), self.variable or "-"]
        words += [self.parameters, self.parameter_bytes, self.slots]
        words += [len(self.buffers), *self.buffers, len(self.constants), *self.constants]
        words += [len(self.fixed)]
        words += [word for pair in self.fixed for word in pair]
        return " ".join(map(str, words))


class Table:
    """The figures of one process's launches, as they are now."""

    def __init__(self, path: Path) -> None:
        memory = np.memmap(path, np.uint8, "r")
        self._head = memory[: HEAD.itemsize].view(HEAD)[0]
        if (int(self._head["magic"]), int(self._head["version"])) != (MAGIC, VERSION):
            raise ValueError(f"{path} is no table of version {VERSION}")
        self._rows = memory[HEAD.itemsize :].view(ROW)

    def rows(self) -> NDArray[np.void]:
        """A copy of all rows."""
        return self._rows[: int(self._head["rows"])].copy()

    def row(self, number: int) -> NDArray[np.void]:
        """A copy of one."""
        copy: NDArray[np.void] = self._rows[number : number + 1].copy().reshape(())
        return copy

    @property
    def launches(self) -> int:
        return int(self._head["launches"])

    @property
    def sampled(self) -> int:
        """How many of the launches were not seen themselves: others stand for them."""
        return int(self._head["sampled"])

    @property
    def lost(self) -> tuple[int, int]:
        """Kernels or shapes for which there was no row, launches whose times were lost."""
        return int(self._head["lost_rows"]), int(self._head["lost_records"])
