"""A cache of slow results on disk, keyed by content."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import platformdirs

from gpuwatch.errors import UserError


def root() -> Path:
    """The cache folder: `GPUWATCH_CACHE_DIR`, or the user's own cache folder."""
    chosen = os.environ.get("GPUWATCH_CACHE_DIR")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("gpuwatch"))


def key_of(parts: Iterable[str | bytes]) -> str:
    """A key that differs whenever any part, or the division into parts, differs."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.hexdigest()


def load(kind: str, key: str) -> bytes | None:
    """What was stored under (`kind`, `key`), or None. Raises UserError when it is unreadable."""
    try:
        return (root() / kind / key).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise _unusable(problem) from problem


def store(kind: str, key: str, content: bytes) -> None:
    """Stores atomically: a reader sees all of `content` or nothing.

    Raises UserError when the folder cannot be written, or is full.
    """
    try:
        _store(root() / kind, key, content)
    except OSError as problem:
        raise _unusable(problem) from problem


def _unusable(problem: OSError) -> UserError:
    return UserError(
        f"the cache folder {root()} cannot be used: {problem.strerror or problem}",
        hint="name another one: GPUWATCH_CACHE_DIR=DIR gpuwatch ...",
    )


def _store(folder: Path, key: str, content: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=folder, prefix=".partial-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(name).replace(folder / key)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
