"""PTX that compilers leave in folders, beside or apart from the cubins that programs load."""

from __future__ import annotations

import contextlib
import getpass
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpuwatch.errors import UserError
from gpuwatch.inject.cubin import Signatures, cubin_signatures, ptx_signatures
from gpuwatch.ptx import parse

TRITON = "Triton's cache"
XLA = "XLA's dump"

_DEEPEST = 4
"""Levels of folders below a cache's own that are looked at."""
_SETTLED = 2.0
"""Seconds after which no more is written within one tick of a file system's clock."""
_DUMP = re.compile(r"""--xla_dump_to=(?:"([^"]*)"|'([^']*)'|(\S+))""")


class PtxCaches:
    """The folders that a program's environment names, with what was seen in them.

    Files may come and go meanwhile; what cannot be read counts as not there. `folder` is where
    the program was started, for relative paths.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.folder = Path(environment.get("PWD") or Path.cwd())
        roots = (_triton_folder(environment), _inductor_folder(environment) / "triton")
        self._triton = _CubinFiles([self.folder / root for root in roots])
        dumps = _dump_folder(environment, self.folder)
        self._xla = None if dumps is None else _Dumps(self.folder / dumps)

    def find(self, cubin: bytes, loaded: float) -> tuple[str, str] | None:
        """The PTX text that `cubin` was made from, and TRITON or XLA for its origin; None when
        no folder has it.

        `loaded` is when the program loaded it, in seconds since the epoch: compilers have written
        their files by then. Triton's are known by the whole cubin, XLA's by names and parameters
        of its kernels, of several the last one that was written before.
        """
        text = self._triton.ptx(cubin, loaded)
        if text is not None:
            return text, TRITON
        text = self._xla.ptx(cubin, loaded) if self._xla is not None else None
        return None if text is None else (text, XLA)


def triton_ptx(cubin: Path) -> str | None:
    """The PTX text beside a cubin in a cache of Triton's, which keeps a .json file there too."""
    if not cubin.with_suffix(".json").is_file():
        return None
    return _text(cubin.with_suffix(".ptx"))


def _triton_folder(environment: Mapping[str, str]) -> Path:
    named = environment.get("TRITON_CACHE_DIR")
    if named:
        return Path(named)
    home = environment.get("TRITON_HOME") or environment.get("HOME")
    return Path(home or os.path.expanduser("~")) / ".triton" / "cache"  # noqa: PTH111


def _inductor_folder(environment: Mapping[str, str]) -> Path:
    """PyTorch's: its own setting, else named after the user in the folder of temporary files."""
    named = environment.get("TORCHINDUCTOR_CACHE_DIR")
    if named:
        return Path(named)
    names = (environment.get(key) for key in ("LOGNAME", "USER", "LNAME", "USERNAME"))
    user = re.sub(r'[\\/:*?"<>|]', "_", next(filter(None, names), "") or _own_name())
    folders = (environment.get(key) for key in ("TMPDIR", "TEMP", "TMP"))
    return Path(next(filter(None, folders), "/tmp")) / f"torchinductor_{user}"


def _own_name() -> str:
    with contextlib.suppress(KeyError, OSError):
        return getpass.getuser()
    return ""


def _dump_folder(environment: Mapping[str, str], folder: Path) -> Path | None:
    """Where XLA writes what it compiles; its flags may stand in a file."""
    flags = environment.get("XLA_FLAGS", "").strip()
    if flags and not flags.startswith("-"):
        flags = _text(folder / flags) or ""
    found = _DUMP.findall(flags)
    return Path("".join(found[-1])) if found else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace") if path.is_file() else None
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class _Folder:
    """What a folder held at `seen`; `changed` is its time of change, both in seconds."""

    changed: float
    seen: float
    folders: tuple[str, ...]
    cubins: tuple[tuple[str, int], ...]
    """Paths and sizes in bytes."""


class _CubinFiles:
    """The *.cubin files in folders and below, by size."""

    def __init__(self, roots: list[Path]) -> None:
        self._roots = [str(root) for root in roots]
        self._folders: dict[str, _Folder] = {}
        self._by_size: dict[int, list[str]] = {}
        self._seen = 0.0

    def ptx(self, cubin: bytes, loaded: float) -> str | None:
        """The text beside a file that equals `cubin`."""
        if self._seen < loaded + _SETTLED:
            self._look()
        for path in self._by_size.get(len(cubin), ()):
            with contextlib.suppress(OSError):
                if Path(path).read_bytes() == cubin:
                    text = _text(Path(path).with_suffix(".ptx"))
                    if text is not None:
                        return text
        return None

    def _look(self) -> None:
        self._seen = time.time()
        found: dict[str, _Folder] = {}
        waiting = [(root, 0) for root in self._roots]
        while waiting:
            path, depth = waiting.pop()
            folder = None if path in found else self._folder(path)
            if folder is not None:
                found[path] = folder
                if depth < _DEEPEST:
                    waiting += [(one, depth + 1) for one in folder.folders]
        self._folders = found
        self._by_size = {}
        for folder in found.values():
            for path, size in folder.cubins:
                self._by_size.setdefault(size, []).append(path)

    def _folder(self, path: str) -> _Folder | None:
        """What the folder holds now; what was seen before where it has not changed since."""
        known = self._folders.get(path)
        try:
            changed = Path(path).stat().st_mtime
            if known and known.changed == changed and known.seen > changed + _SETTLED:
                return known
            with os.scandir(path) as entries:
                return _listed(entries, changed, self._seen)
        except OSError:
            return None


def _listed(entries: Iterator[os.DirEntry[str]], changed: float, seen: float) -> _Folder:
    folders, cubins = [], []
    for entry in entries:
        with contextlib.suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif entry.name.endswith(".cubin"):
                cubins.append((entry.path, entry.stat().st_size))
    return _Folder(changed, seen, tuple(folders), tuple(cubins))


@dataclass(frozen=True, slots=True)
class _Dump:
    """A PTX file: its size in bytes, when it was written, in seconds, and its kernels; None where
    it cannot be read."""

    size: int
    written: float
    signatures: Signatures | None


class _Dumps:
    """The *.ptx files in XLA's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, _Dump] = {}

    def ptx(self, cubin: bytes, loaded: float) -> str | None:
        """The text of a file whose kernels are those of `cubin`."""
        try:
            wanted = cubin_signatures(cubin)
        except UserError:
            return None
        if not wanted:
            return None
        self._look()
        fitting = [path for path, one in self._known.items() if one.signatures == wanted]

        def distance(path: str) -> tuple[bool, float]:
            written = self._known[path].written
            return written > loaded, abs(written - loaded)

        texts = (_text(Path(path)) for path in sorted(fitting, key=distance))
        return next((text for text in texts if text is not None), None)

    def _look(self) -> None:
        known, self._known = self._known, {}
        try:
            with os.scandir(self._folder) as entries:
                files = [entry for entry in entries if entry.name.endswith(".ptx")]
        except OSError:
            return
        for entry in files:
            with contextlib.suppress(OSError):
                now = entry.stat()
                one = known.get(entry.path)
                if one is None or (one.size, one.written) != (now.st_size, now.st_mtime):
                    one = _Dump(now.st_size, now.st_mtime, _signatures(Path(entry.path)))
                self._known[entry.path] = one


def _signatures(path: Path) -> Signatures | None:
    try:
        return ptx_signatures(parse(_text(path) or "", path.name))
    except UserError:
        return None
