"""A trace folder as it comes to be: under a temporary name, given its own when it is done."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpuwatch.errors import UserError
from gpuwatch.instrument.model import MapLayout
from gpuwatch.trace import info
from gpuwatch.trace.binary import ReadMap, write_result
from gpuwatch.trace.facts import KernelFacts, LaunchFacts

EVENTS = "event.log"
KERNELS = "kernel"
RESULTS = "result"
PRINTED_BYTES = 64 << 10
"""Most of what a launch printed that is kept."""


@dataclass(frozen=True, slots=True)
class Build:
    """One build of a kernel: PTX, cubin, and the assembler's words."""

    ptx: str
    cubin: bytes
    log: str = ""


class TraceWriter:
    """Writes to a hidden folder beside `target`; every file in it is whole or not there.

    `finish` gives the folder its name, `abandon` keeps what there is when there is a launch, and
    else removes it. A process that is killed leaves the hidden folder, which can be read.

    Raises UserError when `target` exists or cannot be written.
    """

    def __init__(self, target: Path) -> None:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise UserError(f"{target} exists", hint="name another folder with -o")
        self._target = target
        self._began = time.monotonic()
        self._launches = 0
        self._last = -1
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            made = tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.recording-")
        except OSError as problem:
            raise _cannot_write(target, problem) from problem
        self.folder = Path(made)
        try:
            _allow_what_is_usual(self.folder)
            _make(self.folder / RESULTS)
            self.event(time.strftime("recording begins, %Y-%m-%d %H:%M:%S %z"))
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    @property
    def launches(self) -> int:
        """Launches written so far."""
        return self._launches

    def event(self, text: str) -> None:
        """A line of `event.log`: seconds since the recording began, and what happened."""
        path = self.folder / EVENTS
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(f"{time.monotonic() - self._began:.6f} {text}\n")
        except OSError as problem:
            raise _cannot_write(path, problem) from problem

    def text(self, name: str, content: str) -> None:
        """A text file at the top of the trace."""
        self._whole(self.folder / name, content.encode("utf-8", "surrogateescape"))

    def kernel(self, number: int, facts: KernelFacts, builds: Mapping[str, Build]) -> str:
        """The folder of a kernel, with its builds "original", "pruned" and "probed"; gives the
        folder's name."""
        original = builds["original"].ptx.encode("utf-8", "surrogateescape")
        digest = hashlib.sha1(original + b"\0" + facts.mangled.encode(), usedforsecurity=False)
        name = f"{number}_{digest.hexdigest()}"
        folder = self.folder / KERNELS / name
        _make(folder)
        for build, one in builds.items():
            self._whole(folder / f"{build}.ptx", one.ptx.encode("utf-8", "surrogateescape"))
            self._whole(folder / f"{build}.bin", one.cubin)
        self._whole(folder / "process.log", builds["probed"].log.encode())
        self._whole(folder / info.NAME, info.write_info(facts).encode())
        self.event(f"kernel {KERNELS}/{name}: {facts.name}")
        return name

    def launch(
        self, facts: KernelFacts, layout: MapLayout, read_map: ReadMap, launch: LaunchFacts
    ) -> Path:
        """One launch's result file, named after the seconds since the recording began."""
        self._last = max(self._last + 1, int((time.monotonic() - self._began) * 1e6))
        path = self.folder / RESULTS / f"{self._last // 10**6}.{self._last % 10**6:06}.bin"
        partial = path.with_suffix(".partial")
        shared = facts.dynamic_shared_bytes
        try:
            with partial.open("wb") as file:
                write_result(file, facts.grid, facts.block, shared, layout, read_map, launch)
            partial.replace(path)
        except OSError as problem:
            partial.unlink(missing_ok=True)
            raise _cannot_write(path, problem) from problem
        self._launches += 1
        took = f"{launch.kernel_seconds * 1e6:.1f} us"
        self.event(f"launch {launch.number} of {KERNELS}/{launch.kernel}: {took}, {path.name}")
        return path

    def finish(self) -> Path:
        """Gives the folder its name, even where there is no room for a last event; gives that."""
        with contextlib.suppress(UserError):
            self.event(f"recording ends, {self._launches} launches")
        try:
            self.folder.rename(self._target)
        except OSError as problem:
            raise UserError(
                f"cannot give {self.folder} its name {self._target}: {problem.strerror}",
                hint="the trace is whole: move it yourself",
                status=1,
            ) from problem
        return self._target

    def abandon(self) -> Path | None:
        """After an interruption: keeps the launches so far, if there are any; gives the folder."""
        if self._launches:
            return self.finish()
        shutil.rmtree(self.folder, ignore_errors=True)
        return None

    def _whole(self, path: Path, content: bytes) -> None:
        partial = path.with_name(path.name + ".partial")
        try:
            partial.write_bytes(content)
            partial.replace(path)
        except OSError as problem:
            raise _cannot_write(path, problem) from problem


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise _cannot_write(folder, problem) from problem


def _allow_what_is_usual(folder: Path) -> None:
    """Temporary folders are for their owner alone."""
    try:
        folder.chmod(0o777 & ~_umask())
    except OSError as problem:
        raise _cannot_write(folder, problem) from problem


def _umask() -> int:
    """What new files are not allowed; there is no way to ask without setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _cannot_write(path: Path, problem: OSError) -> UserError:
    return UserError(
        f"cannot write {path}: {problem.strerror}",
        hint="name a folder on a disk with room, that you may write to, with -o",
        status=1,
    )
