"""A launch that was stored in a folder, with its memory, while its program ran."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from gpuwatch.errors import UserError
from gpuwatch.launch.exchange import read_capture
from gpuwatch.launch.model import Capture
from gpuwatch.ptx.model import Module
from gpuwatch.toolchain.process import Finished

FACTS = "stored.toml"
PARAMETERS = "0.parameters"
_PARTS = ("launches", "0.buffers", "0.variables", PARAMETERS)
_UNUSUAL = re.compile(r"[^\w.-]+")


def stored_source(folder: Path) -> Path | None:
    """The PTX file of a folder in which a launch was stored; None for another folder."""
    if not (folder / FACTS).is_file():
        return None
    return next(iter(sorted(folder.glob("*.ptx"))), None)


def is_stored(source: Path) -> bool:
    """Whether `source` is such a PTX file."""
    return source.suffix == ".ptx" and (source.parent / FACTS).is_file()


def read_stored(source: Path, module: Module) -> Capture:
    """The launch stored beside the PTX file `source`, whose module this is. Raises UserError for
    a folder that lacks a part, and for memory that cannot be given to another module."""
    folder = source.parent
    missing = [name for name in _PARTS if not (folder / name).is_file()]
    if missing:
        raise UserError(
            f"{folder} lacks {', '.join(missing)} of its stored launch",
            hint="store it again: gpuwatch capture -k KERNEL -o DIR -- CMD",
        )
    found = read_capture(folder, module.entries(), None, Finished(0, ""))
    if not found.launches:
        why = found.listed[0].error if found.listed else "it holds no launch"
        raise UserError(
            f"the launch stored in {folder} cannot be made again: {why}",
            hint="store another one: gpuwatch capture --launch N",
        )
    counts = {one.kernel: 1 for one in found.launches}
    return replace(found, counts=counts, total=1)


def require_free(target: Path) -> None:
    """Raises UserError where a launch cannot be stored because something is there."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UserError(f"{target} exists", hint="name another folder with -o")


def store(parts: Path, target: Path, name: str, ptx: str, facts: Mapping[str, str]) -> Path:
    """Makes the folder `target` of what the injected library has left in `parts`; gives the path
    of its PTX file, which is named after the kernel.

    `facts` say where it came from. Raises UserError when the folder holds something already or
    cannot be written.
    """
    require_free(target)
    source = target / f"{_UNUSUAL.sub('_', name)[:60] or 'kernel'}.ptx"
    try:
        target.mkdir(parents=True, exist_ok=True)
        for part in _PARTS:
            shutil.copyfile(parts / part, target / part)
        source.write_text(ptx)
        lines = [f"{key} = {_quoted(value)}\n" for key, value in facts.items()]
        (target / FACTS).write_text("".join(lines))
    except OSError as problem:
        shutil.rmtree(target, ignore_errors=True)
        raise UserError(
            f"cannot write {target}: {problem.strerror}",
            hint="name a folder on a disk with room, that you may write to, with -o",
            status=1,
        ) from problem
    return source


def _quoted(text: str) -> str:
    plain = "".join(one if one.isprintable() else " " for one in text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'
