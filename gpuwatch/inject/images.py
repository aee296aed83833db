"""The PTX behind an image that a program has loaded."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gpuwatch.errors import UserError
from gpuwatch.inject.ptx_caches import TRITON, PtxCaches, triton_ptx
from gpuwatch.launch.binary import PTX, fat_binaries
from gpuwatch.launch.merge import merge

MACHINE_CODE = "machine code only"
IN_PROGRAM = "in the program"
PTX_TEXT = "PTX text"
AT_RUN_TIME = "compiled at run time"

_ELF = b"\x7fELF"
_TARGET = re.compile(r"^[ \t]*\.target[ \t]+sm_(\d{1,4})([af]?)\b", re.M | re.ASCII)
_BY_LIBRARY = re.compile(r"^//.*\bLLVM NVPTX Back-End", re.M)
"""The heading of what LLVM writes, which programs use as a library; nvcc's own is another."""


@dataclass(frozen=True, slots=True)
class ImagePtx:
    """The PTX text of an image, and where it was found in words.

    Where there is none, `text` is "", `origin` "machine code only", and `why` says why.
    """

    text: str = ""
    origin: str = MACHINE_CODE
    target: str = ""
    """What to assemble the text for, like "sm_90": text for sm_90a runs on such GPUs alone, and
    ptxas takes it for nothing but sm_90a."""
    why: str = ""


def image_ptx(kind: str, path: Path, arch: str, caches: PtxCaches) -> ImagePtx:
    """The PTX of the image that was stored in the file `path`, for a GPU of `arch` ("sm_90").

    `kind` is what the file holds: "ptx" a text, "fatbin" a fat binary or entries of one, "cubin"
    machine code, whose text compilers may have left in `caches`, and "file" the path of a file
    that is one of these. The file's time counts as the time of loading. Raises nothing for files
    that are damaged, missing or of another kind: `why` tells.
    """
    try:
        content = path.read_bytes()
        image = _Image(content, path.stat().st_mtime, arch, caches)
        return _READERS.get(kind, _unknown)(image)
    except OSError as problem:
        return ImagePtx(why=f"what was loaded cannot be read: {problem.strerror or problem}")
    except UserError as problem:
        return ImagePtx(why=problem.message)


class Target(NamedTuple):
    """`.target` of a PTX text: `suffix` is "a" for this one target alone, "f" for the later ones
    of its family, "" for all later ones."""

    number: int
    suffix: str

    def fits(self, wanted: int) -> bool:
        """Whether a GPU of the target `wanted` (90 for sm_90) runs it."""
        if self.suffix == "a":
            return self.number == wanted
        within = self.suffix == "" or self.number // 10 == wanted // 10
        return within and self.number <= wanted

    def __str__(self) -> str:
        return f"sm_{self.number}{self.suffix}"


def target_of(text: str) -> Target:
    """The target of a PTX text. Raises UserError when it names none."""
    found = _TARGET.search(text)
    if found is None or ".version" not in text:
        raise UserError("what was loaded is no PTX text, or damaged")
    return Target(int(found[1]), found[2])


@dataclass(frozen=True, slots=True)
class _Image:
    """The content of a file, and when it was loaded, in seconds since the epoch."""

    content: bytes
    loaded: float
    arch: str
    caches: PtxCaches

    @property
    def number(self) -> int:
        """86 for "sm_86"."""
        return int("".join(c for c in self.arch if c.isdigit()))

    def found(self, text: str, origin: str) -> ImagePtx:
        suffix = target_of(text).suffix
        return ImagePtx(text, origin, f"sm_{self.number}{suffix}")


def _ptx(image: _Image, origin: str = "") -> ImagePtx:
    text = image.content.partition(b"\0")[0].decode(errors="replace")
    return image.found(text, origin or (AT_RUN_TIME if _BY_LIBRARY.search(text) else PTX_TEXT))


def _fatbin(image: _Image) -> ImagePtx:
    """A fat binary has one module for several targets; where there are several, they are one
    program's, linked when it was loaded."""
    chosen: list[str] = []
    unfit: list[Target] = []
    for entries in fat_binaries(image.content):
        texts = [entry.text("what was loaded") for entry in entries if entry.kind == PTX]
        pairs = [(target_of(text), text) for text in texts]
        unfit += [target for target, _ in pairs]
        fitting = [pair for pair in pairs if pair[0].fits(image.number)]
        if fitting:
            chosen.append(max(fitting, key=lambda pair: pair[0])[1])
    if chosen:
        names = [f"module {number}" for number, _ in enumerate(chosen)]
        return image.found(merge(chosen, names), IN_PROGRAM)
    return ImagePtx(why=_no_fitting(unfit) if unfit else MACHINE_CODE)


def _no_fitting(targets: Sequence[Target]) -> str:
    words = [str(one) for one in sorted(set(targets)) if one.suffix]
    plain = [one for one in targets if not one.suffix]
    if plain:
        words.append(f"{min(plain)} and above")
    return f"PTX only for {', '.join(words)}"


def _cubin(image: _Image) -> ImagePtx:
    found = image.caches.find(image.content, image.loaded)
    return ImagePtx(why=MACHINE_CODE) if found is None else image.found(*found)


def _file(image: _Image) -> ImagePtx:
    path = image.caches.folder / os.fsdecode(image.content)
    if not path.is_file():
        return ImagePtx(why=f"{path.name} was loaded, and is no file now")
    inner = _Image(path.read_bytes(), image.loaded, image.arch, image.caches)
    if not inner.content.startswith(_ELF):
        packed = next(fat_binaries(inner.content[:64]), None) is not None
        return _fatbin(inner) if packed else _ptx(inner, PTX_TEXT)
    beside = triton_ptx(path)
    return _cubin(inner) if beside is None else inner.found(beside, TRITON)


def _unknown(_: _Image) -> ImagePtx:
    return ImagePtx(why="what was loaded is of a kind that is not known here")


_READERS: dict[str, Callable[[_Image], ImagePtx]] = {
    "ptx": _ptx,
    "fatbin": _fatbin,
    "cubin": _cubin,
    "file": _file,
}
