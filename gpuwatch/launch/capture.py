"""A launch, captured from the program's own main() without a GPU."""

from __future__ import annotations

import pickle
import re
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gpuwatch.errors import UserError
from gpuwatch.launch import exchange
from gpuwatch.launch.model import Capture, DeviceAnswers
from gpuwatch.ptx.model import Function, Module
from gpuwatch.toolchain import assemble, dependencies
from gpuwatch.toolchain.compile import SECONDS, require_source, run_nvcc
from gpuwatch.toolchain.model import Toolchain
from gpuwatch.toolchain.process import Finished, run

RUNTIME = Path(__file__).with_name("runtime.c")
FORMAT = "capture 1"
"""Part of the cache key: changes whenever the stored form of a Capture does."""
OTHER_WAYS = "name a CUDA source (.cu) whose own main() launches the kernel"
_UNDEFINED = re.compile(r"undefined reference to [`']([^']+)'")


def capture(
    toolchain: Toolchain,
    source: Path,
    module: Module,
    answers: DeviceAnswers,
    arguments: Sequence[str] = (),
    flags: Sequence[str] = (),
    timeout: float = 60.0,
) -> Capture:
    """Runs the program of `source` with `arguments` and notes what it launches.

    The program runs in the current folder for at most `timeout` seconds against a stand-in
    runtime that answers for the device and executes no kernel, so its own check may fail: that
    is no error. `module` is the PTX of the same source; `flags` are nvcc's. Cached by content.
    Raises UserError when the program does not build, crashes before a launch, launches nothing
    or takes too long.
    """
    require_source(source)
    if source.suffix == ".ptx":
        raise UserError(f"{source.name} is PTX and has no main() to run", hint=OTHER_WAYS)
    source = source.resolve()
    kernels = module.entries()
    if not kernels:
        raise UserError(
            f"{source.name} has no kernel", hint="name a file with a __global__ function"
        )
    base = dependencies.base_key(
        toolchain,
        source,
        flags,
        FORMAT,
        RUNTIME.read_text(),
        module.text,
        repr(answers),
        *arguments,
    )
    known = dependencies.recall("capture", base)
    if known is not None:
        return _restored(known)
    with tempfile.TemporaryDirectory(prefix="gpuwatch-") as name:
        folder = Path(name)
        program, files = _build(toolchain, source, flags, answers, folder)
        arch = f"sm_{answers.compute_major}{answers.compute_minor}"
        assembled = [(k, assemble(toolchain, module.text, arch, k.name)) for k in kernels]
        (folder / "request").write_text(exchange.request(answers, assembled))
        done = run(
            [program, *arguments],
            timeout=timeout,
            environment={"GPUWATCH_CAPTURE_DIR": name},
        )
        captured = _read(folder, kernels, done, source.name, timeout)
    dependencies.record("capture", base, files, pickle.dumps(captured, protocol=5))
    return captured


def _restored(content: bytes) -> Capture:
    captured = pickle.loads(content)
    if not isinstance(captured, Capture):
        raise TypeError("the cached capture is of another kind")
    return captured


def _build(
    toolchain: Toolchain,
    source: Path,
    flags: Sequence[str],
    answers: DeviceAnswers,
    folder: Path,
) -> tuple[Path, list[Path]]:
    virtual = f"compute_{answers.compute_major}{answers.compute_minor}"
    compile_flags = ["-c", "-O3", f"-gencode=arch={virtual},code={virtual}", *flags]
    files = run_nvcc(toolchain, source, compile_flags, folder / "program.o", folder)
    runtime = folder / "runtime.o"
    _run_tool([toolchain.nvcc, "-c", "-O2", "-o", runtime, RUNTIME], folder, "the stand-in runtime")
    program = folder / "program"
    _run_tool(
        [toolchain.nvcc, "-cudart", "none", "-o", program, folder / "program.o", runtime, *flags],
        folder,
        source.name,
    )
    if not program.is_file():
        raise UserError(
            f"nvcc linked no program from {source.name}",
            hint="leave out flags that change what nvcc writes or where, such as -o, --dryrun",
        )
    return program, files


def _run_tool(command: Sequence[str | Path], folder: Path, what: str) -> None:
    done = run(command, timeout=SECONDS, environment={"TMPDIR": str(folder)})
    if done.timed_out:
        raise UserError(f"building {what} took longer than {SECONDS:.0f} s", status=1)
    if done.status == 0:
        return
    missing = sorted(set(_UNDEFINED.findall(done.output)))
    if missing:
        raise UserError(
            f"{what} uses what the stand-in runtime lacks: {', '.join(missing)}", hint=OTHER_WAYS
        )
    raise UserError(f"{what} does not build", detail=done.output, hint=OTHER_WAYS)


def _read(
    folder: Path, kernels: list[Function], done: Finished, name: str, timeout: float
) -> Capture:
    if done.timed_out:
        raise UserError(
            f"{name} ran longer than {timeout:g} s",
            detail=done.output,
            hint="give it smaller sizes after --, or a longer time limit with --timeout",
            status=1,
        )
    found = tuple(exchange.launches(folder, kernels))
    if found:
        counts = exchange.counts(folder, kernels)
        return Capture(found, counts, done.output, done.status)
    if done.status < 0:
        how = signal.Signals(-done.status).name
        raise UserError(
            f"{name} was ended by {how} before it launched a kernel",
            detail=done.output,
            hint=OTHER_WAYS,
            status=1,
        )
    raise UserError(
        f"{name} launched no kernel (exit status {done.status})",
        detail=done.output,
        hint="give it, after --, the arguments that make it launch",
    )
