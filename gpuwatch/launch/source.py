"""The PTX of whatever the user named: CUDA sources, PTX, or a program that is already built."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpuwatch.errors import UserError
from gpuwatch.launch import binary
from gpuwatch.launch.build import relocatable
from gpuwatch.launch.merge import merge
from gpuwatch.toolchain import compile_to_ptx
from gpuwatch.toolchain.compile import require_source
from gpuwatch.toolchain.model import Toolchain


def read_ptx(
    toolchain: Toolchain,
    source: Path,
    arch: str,
    flags: Sequence[str] = (),
    link: Sequence[Path] = (),
) -> str:
    """The PTX of `source` and of the further sources `link` as one module, for `arch` ("sm_86").

    `source` is CUDA or PTX text, or a compiled program with PTX in it (then `flags` and `link`
    mean nothing). Raises UserError when something does not compile, when two sources define the
    same name, and when a program holds no PTX that fits.
    """
    require_source(source)
    if binary.is_program(source):
        if link:
            raise UserError(
                f"{source.name} is already linked", hint="leave out --link, or name its sources"
            )
        texts = binary.embedded_ptx(source, arch)
        return merge(texts, [f"module {n} of {source.name}" for n, _ in enumerate(texts)])
    sources = [source, *link]
    flags = [*relocatable(sources), *flags]
    texts = [compile_to_ptx(toolchain, one, arch, flags) for one in sources]
    return merge(texts, [one.name for one in sources])
