"""What a session is to watch, as the command line says it."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_MAP_LIMIT = 1 << 30


@dataclass(frozen=True, slots=True)
class Options:
    """`source` is a path; `kernel` a name or a unique part of one ("" takes the first that the
    program launched); `probe` a preset or a path; `arguments` those of the program itself.
    `timeout` is in seconds, for one launch."""

    source: str
    device: str = "auto"
    kernel: str = ""
    probe: str = "block_sched"
    arguments: tuple[str, ...] = ()
    nvcc_flags: tuple[str, ...] = ()
    cuda_home: str | None = None
    timeout: float = 10.0
    plain_every: int = 16
    """On a GPU one probed launch in so many is followed by a plain one, and both are timed."""
    max_rate: float = 0.0
    """Most launches a second on a GPU; 0 for no limit."""
    map_limit: int = DEFAULT_MAP_LIMIT
    """Most bytes that a probe's maps may take."""
