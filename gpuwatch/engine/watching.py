"""Which files a program is made of, and when one of them is saved."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.M)

Stamp = tuple[int, int, int]
"""Time of the last change (ns), bytes, inode."""


def local_files(sources: Iterable[Path]) -> set[Path]:
    """The sources and the files beside them that they include with quotes, however deep."""
    found: set[Path] = set()
    waiting = [source.absolute() for source in sources]
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        found.add(file)
        try:
            text = file.read_text(errors="replace")
        except OSError:
            continue
        near = [file.parent / name for name in _INCLUDE.findall(text)]
        waiting += [other for other in near if _is_file(other)]
    return found


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long, or in a folder that may not be read
        return False


class Saves:
    """Notices when a file of a program changes. A file that is missing, as in the middle of a
    save, counts as unchanged until it is back."""

    def __init__(self, sources: Iterable[Path]) -> None:
        self._sources = list(sources)
        self._stamps: dict[Path, Stamp] = {}
        self.changed()

    def changed(self) -> bool:
        """Whether anything was saved since the last call."""
        seen = {file: stamp for file in self._files() if (stamp := _stamp(file)) is not None}
        fresh = any(self._stamps.get(file) != stamp for file, stamp in seen.items())
        self._stamps |= seen
        if fresh:
            self._known = local_files(self._sources)
            self._stamps |= {f: s for f in self._known if (s := _stamp(f)) is not None}
        return fresh

    def _files(self) -> Iterable[Path]:
        if not self._stamps:
            self._known = local_files(self._sources)
        return self._known


def _stamp(file: Path) -> Stamp | None:
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino
