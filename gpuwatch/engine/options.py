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
    program_timeout: float = 60.0
    """Seconds that the program may take to make its launches."""
    link: tuple[str, ...] = ()
    """Further sources of the program."""
    launch: int | None = None
    """Which launch of the program is watched; None for the first of the kernel."""
    no_run: bool = False
    """Whether the program is not run: `grid`, `block`, `shared` and `values`, or a file beside
    the source, say how its kernels are launched."""
    grid: str = ""
    block: str = ""
    shared: str = ""
    values: tuple[str, ...] = ()
    """NAME=VALUE of the kernel's arguments."""
    others: tuple[str, ...] = ()
    """Further sources to switch to; each is a program of its own."""
    map_limit: int = DEFAULT_MAP_LIMIT
    """Most bytes that a probe's maps may take."""
    callback: str | None = ""
    """What runs for what the screen records: a file, "" for the one that ships with the preset,
    None for none."""
    callback_timeout: float = 60.0
    """Seconds that it may take."""

    @property
    def sources(self) -> tuple[str, ...]:
        return self.source, *self.others
