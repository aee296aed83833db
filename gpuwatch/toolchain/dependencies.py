"""Results that depend on a source file and on every local file that it includes.

What a compilation included is known only afterwards. So two things are stored: under a key of
what is known before, the list of included files; under a key of that list and the files'
contents, the result. A changed header changes the second key.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from gpuwatch import cache
from gpuwatch.toolchain.model import Toolchain

_VARIABLES = (
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "NVCC_CCBIN",
    "CPATH",
    "CPLUS_INCLUDE_PATH",
)


def base_key(toolchain: Toolchain, source: Path, flags: Sequence[str], *others: str) -> str:
    """The key of what is known before compiling: source text and place, flags, compiler.

    The place counts because the result carries it (`.file`) and because it decides which
    headers are meant; the current folder counts with flags, which may name relative folders.
    """
    surroundings = [f"{name}={os.environ.get(name, '')}" for name in _VARIABLES]
    folder = str(Path.cwd()) if flags else ""
    return cache.key_of(
        [
            source.read_bytes(),
            str(source),
            toolchain.version,
            folder,
            *surroundings,
            f"{len(flags)} flags",
            *flags,
            *others,
        ]
    )


def recall(kind: str, base: str) -> bytes | None:
    """The stored result, if every file that it was made from is still the same."""
    listed = cache.load(f"{kind}-files", base)
    if listed is None:
        return None
    return cache.load(kind, _full_key(base, json.loads(listed)))


def record(kind: str, base: str, files: Iterable[Path], content: bytes) -> None:
    """Stores `content` as made from `files`."""
    names = sorted({str(file) for file in files})
    cache.store(kind, _full_key(base, names), content)
    cache.store(f"{kind}-files", base, json.dumps(names).encode())


def read_make_rule(path: Path, toolchain: Toolchain) -> list[Path]:
    """The prerequisites of the one rule in a dependency file, without the toolkit's own."""
    text = path.read_text(errors="replace").replace("\\\n", " ")
    _, _, listed = text.partition(" : ") if " : " in text else text.partition(": ")
    words = listed.replace("\\ ", "\0").split()
    toolkit = toolchain.nvcc.resolve().parent.parent
    files = [Path(word.replace("\0", " ").replace("$$", "$")).absolute() for word in words]
    return [file for file in files if not file.resolve().is_relative_to(toolkit)]


def _full_key(base: str, names: Sequence[str]) -> str:
    return cache.key_of([base, *(part for name in names for part in (name, _digest(name)))])


def _digest(name: str) -> str:
    try:
        return hashlib.sha256(Path(name).read_bytes()).hexdigest()
    except OSError:
        return "missing"
