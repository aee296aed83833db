"""Building what a capture runs: the stand-in runtime, and the program against it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gpuwatch import cache
from gpuwatch.errors import UserError
from gpuwatch.toolchain.compile import SECONDS, run_nvcc
from gpuwatch.toolchain.find import require_host_compiler
from gpuwatch.toolchain.model import Toolchain
from gpuwatch.toolchain.process import run

RUNTIME = Path(__file__).with_name("runtime")
OTHER_WAYS = "give the launch with --grid, --block and --arg, or in a .toml file beside the source"
_RELOCATABLE = ("-rdc=true", "--relocatable-device-code=true", "-dc", "--device-c")
_UNDEFINED = re.compile(r"undefined reference to [`']([^']+)'")
_RUNTIME_CALL = re.compile(r"(?:__)?cuda[A-Z]\w*$")


def runtime_text() -> list[bytes]:
    """The stand-in runtime's source, file by file."""
    return [file.read_bytes() for file in sorted(RUNTIME.iterdir()) if file.suffix in (".c", ".h")]


def place_runtime(toolchain: Toolchain, folder: Path) -> Path:
    """Puts the stand-in runtime into `folder` under the name that programs look for.

    Built once for each toolkit and kept in the cache.
    """
    require_host_compiler()
    major = toolchain.version.partition(".")[0]
    name = f"libcudart.so.{major}"
    key = cache.key_of(["runtime", str(toolchain.nvcc), toolchain.version, *runtime_text()])
    library = folder / name
    known = cache.load("runtime", key)
    if known is None:
        known = _built_runtime(toolchain, name)
        cache.store("runtime", key, known)
    library.write_bytes(known)
    (folder / "libcudart.so").symlink_to(name)
    return library


def _built_runtime(toolchain: Toolchain, name: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="gpuwatch-") as made:
        folder = Path(made)
        versions = folder / "versions"
        versions.write_text(f"{name} {{ global: cuda*; __cuda*; cuLaunch*; local: *; }};\n")
        linker = f"-Xlinker=--version-script={versions},-soname={name}"
        how = ["-O2", "-Xcompiler=-fPIC", linker, "-shared", "-cudart", "none"]
        files = [folder / name, *sorted(RUNTIME.glob("*.c"))]
        _run_tool([toolchain.nvcc, *how, "-o", *files], folder, "the stand-in runtime")
        return (folder / name).read_bytes()


def build_program(
    toolchain: Toolchain,
    sources: Sequence[Path],
    flags: Sequence[str],
    number: str,
    folder: Path,
) -> tuple[Path, list[Path]]:
    """Compiles and links `sources` against the runtime in `folder`; gives the program and the
    local files that went in.

    `number` is the target's, like "86"; machine code is made only where device code must be
    linked. Several sources are compiled as relocatable device code. Raises UserError when they
    do not compile or link.
    """
    further = [*relocatable(sources), *flags]
    code = "sm" if any(flag in _RELOCATABLE for flag in further) else "compute"
    how = [f"-gencode=arch=compute_{number},code={code}_{number}", *further]
    return _linked(toolchain, sources, how, ["-cudart", "shared", "-L", folder], folder)


def build_for_gpu(
    toolchain: Toolchain,
    sources: Sequence[Path],
    flags: Sequence[str],
    number: str,
    folder: Path,
) -> Path:
    """The same program for a real GPU: with machine code for the target `number`, source lines
    and the toolkit's own runtime. Raises UserError as `build_program` does."""
    how = [f"-gencode=arch=compute_{number},code=sm_{number}", "-lineinfo"]
    how += [*relocatable(sources), *flags]
    return _linked(toolchain, sources, how, ["-cudart", "static"], folder)[0]


def _linked(
    toolchain: Toolchain,
    sources: Sequence[Path],
    how: Sequence[str],
    runtime: Sequence[str | Path],
    folder: Path,
) -> tuple[Path, list[Path]]:
    files: list[Path] = []
    objects = [folder / f"{index}.o" for index, _ in enumerate(sources)]
    for source, result in zip(sources, objects, strict=True):
        files += run_nvcc(toolchain, source, ["-c", "-O3", *how], result, folder)
    program = folder / "program"
    libraries = toolchain.nvcc.resolve().parent.parent / "lib"  # nvcc of the wheels misses it
    link: list[str | Path] = [*runtime, "-L", libraries, "-o", program]
    _run_tool([toolchain.nvcc, *link, *objects, *how], folder, sources[0].name)
    if not program.is_file():
        raise UserError(
            f"nvcc linked no program from {sources[0].name}",
            hint="leave out flags that change what nvcc writes or where, such as -o, --dryrun",
        )
    return program, files


def relocatable(sources: Sequence[Path]) -> list[str]:
    """The flags by which several sources call each other's device functions."""
    return ["-rdc=true"] if len(sources) > 1 else []


def _run_tool(command: Sequence[str | Path], folder: Path, what: str) -> None:
    done = run(command, timeout=SECONDS, environment={"TMPDIR": str(folder)})
    if done.timed_out:
        raise UserError(f"building {what} took longer than {SECONDS:.0f} s", status=1)
    if done.status != 0:
        raise _link_error(what, done.output)


def _link_error(what: str, output: str) -> UserError:
    missing = sorted(set(_UNDEFINED.findall(output)))
    calls = [name for name in missing if _RUNTIME_CALL.match(name)]
    if "main" in missing:
        return UserError(f"{what} has no main() to run", hint=OTHER_WAYS)
    if calls:
        return UserError(
            f"{what} uses what the stand-in runtime lacks: {', '.join(calls)}", hint=OTHER_WAYS
        )
    if missing:
        return UserError(
            f"{what} uses what it does not define: {', '.join(missing)}",
            detail=output,
            hint="name the other source files with --link, libraries with --nvcc-flags=-lNAME",
        )
    return UserError(f"{what} does not build", detail=output, hint=OTHER_WAYS)
