"""Building the library that is injected, with the compiler at hand."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from gpuwatch import cache
from gpuwatch.errors import UserError
from gpuwatch.toolchain.model import Toolchain
from gpuwatch.toolchain.process import run

SOURCES = Path(__file__).parent / "injection"
_MAIN = SOURCES / "injection.c"
_WHEEL = "nvidia-cuda-cupti"
_CUPTI = "libcupti.so.13"
_SECONDS = 120.0
_FLAGS = ("-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-pthread")
_HINT = (
    'install CUPTI with: pip install "gpuwatch-live[run]"; or name a CUDA installation that has '
    "it with --cuda-home"
)


@dataclass(frozen=True, slots=True)
class Cupti:
    """Folders of cupti.h, cuda.h and the library."""

    include: Path
    cuda_include: Path
    library: Path


def build_library(toolchain: Toolchain) -> Path:
    """The library for this toolkit's driver API, compiled at first use and kept in the cache.

    Raises UserError when CUPTI or a C compiler is missing, or the compiler refuses.
    """
    cupti, compiler = find_cupti(toolchain), require_compiler()
    texts = [path.read_bytes() for path in sorted(SOURCES.glob("*.[ch]"))]
    key = cache.key_of([*texts, *_FLAGS, compiler, str(cupti), toolchain.version])
    if cache.load("injection", key) is None:
        cache.store("injection", key, _compiled(compiler, cupti))
    return cache.root() / "injection" / key


def require_compiler() -> str:
    """The C compiler: CC, else the first on PATH. Raises UserError when there is none."""
    named = os.environ.get("CC")
    if named and shutil.which(named) is None:
        raise UserError(
            f"the library that is injected needs a C compiler, and CC names none: {named}",
            hint="unset CC, or name one that is on PATH",
        )
    found = named or next((one for one in ("cc", "gcc", "clang") if shutil.which(one)), None)
    if found is None:
        raise UserError(
            "the library that is injected needs a C compiler, and PATH has none",
            hint="install one (Debian, Ubuntu: apt install gcc), or set CC",
        )
    return found


def find_cupti(toolchain: Toolchain) -> Cupti:
    """Of the toolkit itself, else of the pip wheel. Raises UserError when neither has it."""
    home = toolchain.nvcc.resolve().parent.parent
    places = [home, home / "extras" / "CUPTI", *home.glob("targets/*")]
    files = _wheel_files()
    for place in [*places, *files]:
        include = place / "include"
        libraries = (place / "lib64" / _CUPTI, place / "lib" / _CUPTI)
        library = next((one for one in libraries if one.exists()), None)
        if library is None or not (include / "cupti.h").exists():
            continue
        for cuda in (
            include,
            home / "include",
            *(one / "include" for one in home.glob("targets/*")),
        ):
            if (cuda / "cuda.h").exists():
                return Cupti(include, cuda, library)
    raise UserError("CUPTI, through which kernels are seen, is not installed", hint=_HINT)


def _wheel_files() -> list[Path]:
    try:
        files = importlib.metadata.distribution(_WHEEL).files or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [Path(str(one.locate())).resolve().parents[1] for one in files if one.name == "cupti.h"]


def _compiled(compiler: str, cupti: Cupti) -> bytes:
    """Linked with CUPTI itself and, so that the driver's functions are found when it is loaded,
    with an empty library of the driver's name."""
    with tempfile.TemporaryDirectory(prefix="gpuwatch-") as name:
        folder = Path(name)
        stub, output = folder / "libcuda.so", folder / "injection.so"
        steps = (
            ["-shared", "-x", "c", "-Wl,-soname,libcuda.so.1", "-o", stub, "/dev/null"],
            [
                *_FLAGS, f"-I{cupti.cuda_include}", f"-I{cupti.include}", "-o", output, _MAIN,
                f"-L{folder}", "-Wl,--no-as-needed", "-lcuda", cupti.library,
                "-Wl,--enable-new-dtags", f"-Wl,-rpath,{cupti.library.parent}",
            ],
        )  # fmt: skip
        for words in steps:
            done = run([compiler, *map(str, words)], timeout=_SECONDS)
            if done.status != 0:
                raise UserError(
                    "the library that is injected does not compile",
                    detail=done.output,
                    hint="CC names another compiler; please report this",
                    status=1,
                )
        return output.read_bytes()
