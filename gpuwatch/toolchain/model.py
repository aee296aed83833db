"""What the toolchain gives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Toolchain:
    """Where the programs are; `origin` says how they were found ("CUDA_HOME", "PATH", "pip")."""

    nvcc: Path
    ptxas: Path
    version: str
    origin: str


@dataclass(frozen=True, slots=True)
class Assembled:
    """A cubin and what ptxas said of the entry: registers per thread, bytes of static shared
    memory, bytes of spill stores, and its whole log."""

    cubin: bytes
    registers: int
    shared_bytes: int
    spill_store_bytes: int
    log: str
