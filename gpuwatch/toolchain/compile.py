"""CUDA C++ to PTX."""

from __future__ import annotations

import difflib
import os
import re
import shlex
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from gpuwatch.errors import Location, UserError
from gpuwatch.toolchain import dependencies
from gpuwatch.toolchain.find import require_host_compiler
from gpuwatch.toolchain.model import Toolchain
from gpuwatch.toolchain.process import run
from gpuwatch.toolchain.targets import require_target

SECONDS = 300.0
"""Time limit of one run of nvcc."""

_NVCC_ERROR = re.compile(
    r"^(?P<file>[^\s():][^():\n]*)\((?P<line>\d+)\): (?:catastrophic )?error", re.M
)
_GCC_ERROR = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?P<column>\d+): (?:fatal )?error", re.M
)
_UNKNOWN_TARGET = re.compile(r"Unsupported gpu architecture '\w*?(\d+)\w*'")
_WORD = re.compile(r"\w+|\S")


def compile_to_ptx(toolchain: Toolchain, source: Path, arch: str, flags: Sequence[str] = ()) -> str:
    """PTX of `source` with line numbers, for `arch` like "sm_86"; cached by content.

    A `.ptx` file is returned as it is. `flags` are nvcc's. Raises UserError with the compiler's
    own words when the source has errors.
    """
    require_source(source)
    if source.suffix == ".ptx":
        return _read_ptx(source)
    source = source.resolve()
    base = dependencies.base_key(toolchain, source, flags, arch)
    known = dependencies.recall("ptx", base)
    if known is not None:
        return known.decode()
    with tempfile.TemporaryDirectory(prefix="gpuwatch-") as folder:
        ptx = Path(folder) / "kernel.ptx"
        how = [f"-arch={arch}", "-ptx", "-lineinfo", *flags]
        files = run_nvcc(toolchain, source, how, ptx, Path(folder), one_pass=True)
        text = ptx.read_text()
    dependencies.record("ptx", base, files, text.encode())
    return text


def _read_ptx(source: Path) -> str:
    try:
        return source.read_text()
    except UnicodeDecodeError as problem:
        raise UserError(
            f"{source.name} is not PTX: byte {problem.start} is no text",
            hint="name the text that `nvcc -ptx` writes; a cubin has no PTX",
        ) from problem


def require_source(source: Path) -> None:
    """Raises UserError when `source` is no readable file."""
    if not source.is_file():
        raise UserError(
            f"{source}: no such file" if not source.exists() else f"{source} is not a file",
            hint=near(source) or "name a CUDA source (.cu) or a PTX file (.ptx)",
        )
    if not os.access(source, os.R_OK):
        raise UserError(f"{source} may not be read", hint=f"chmod u+r {shlex.quote(str(source))}")


def near(source: Path) -> str:
    """Sources beside it that it may be meant for, as a question; "" when there are none."""
    beside = sorted(one.name for end in ("*.cu", "*.ptx") for one in source.parent.glob(end))
    names = difflib.get_close_matches(source.name, beside)
    return f"did you mean {' or '.join(names)}?" if names else ""


def run_nvcc(
    toolchain: Toolchain,
    source: Path,
    flags: Sequence[str],
    output: Path,
    scratch: Path,
    *,
    one_pass: bool = False,
) -> list[Path]:
    """Compiles `source` to `output`; gives the local files that went in.

    `scratch` is a temporary folder that also takes nvcc's intermediate files. Where the source
    is preprocessed in `one_pass`, that pass lists the files; nvcc makes one more for the list.
    Raises UserError when compiling fails.
    """
    require_host_compiler()
    rule = scratch / "dependencies"
    done = run(
        [toolchain.nvcc, *flags, "-x", "cu", *_listing(rule, one_pass), "-o", output, source],
        timeout=SECONDS,
        environment={"TMPDIR": str(scratch)},
    )
    if done.timed_out:
        raise UserError(f"nvcc took longer than {SECONDS:.0f} s on {source.name}", status=1)
    if done.status != 0:
        unknown = _UNKNOWN_TARGET.search(done.output)
        if unknown is not None:
            require_target(toolchain, unknown[1])
        raise UserError(
            f"{source.name} does not compile",
            at=_first_error(done.output),
            detail=done.output,
            hint="" if _first_error(done.output) else "nvcc's words are above",
        )
    if not output.is_file() or not rule.is_file():
        raise UserError(
            f"nvcc wrote nothing for {source.name}",
            hint="leave out flags that change what nvcc writes or where, such as -o, --dryrun",
        )
    return dependencies.read_make_rule(rule, toolchain)


def _listing(rule: Path, one_pass: bool) -> list[str]:
    """The flags that have the files listed in `rule`."""
    if not one_pass:
        return ["-MMD", "-MF", str(rule)]
    words = ("-MMD", "-MF", shlex.quote(str(rule).replace(",", "\\,")))
    return [flag for word in words for flag in ("-Xcompiler", word)]


def _first_error(output: str) -> Location | None:
    matches = [m for m in (_NVCC_ERROR.search(output), _GCC_ERROR.search(output)) if m]
    if not matches:
        return None
    match = min(matches, key=lambda m: m.start())
    line = int(match["line"])
    text = _line_of(Path(match["file"]), line)
    column = int(match.groupdict().get("column") or 0) or _caret_column(output, match.end(), text)
    return Location(match["file"], line, column, text)


def _line_of(file: Path, line: int) -> str:
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return lines[line - 1] if 0 < line <= len(lines) else ""


def _caret_column(output: str, start: int, text: str) -> int:
    """The column of what nvcc's caret stands under.

    nvcc repeats the line with its macros expanded, so the word under the caret is looked up in
    the source line, counted from its end.
    """
    for echo, marker in pairwise(output[start:].splitlines()[1:4]):
        if marker.strip() == "^":
            at = marker.index("^")
            word = _WORD.match(echo[at:])
            if word is None:
                return 1
            behind = echo[at + len(word[0]) :].count(word[0])
            places = [found.start() for found in re.finditer(re.escape(word[0]), text)]
            return places[-1 - behind] + 1 if behind < len(places) else 1
    return 1
