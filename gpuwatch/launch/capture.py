"""A launch, captured from the program's own main() without a GPU."""

from __future__ import annotations

import os
import pickle
import signal
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuwatch.errors import UserError
from gpuwatch.launch import binary, exchange
from gpuwatch.launch.build import OTHER_WAYS, build_program, place_runtime, runtime_text
from gpuwatch.launch.model import Capture, DeviceAnswers, LaunchRecord
from gpuwatch.ptx.model import Module
from gpuwatch.toolchain import assemble_all, demangle, dependencies
from gpuwatch.toolchain.compile import require_source
from gpuwatch.toolchain.model import Toolchain
from gpuwatch.toolchain.process import Finished, run

FORMAT = "capture 2"
"""Part of the cache key: changes whenever the stored form of a Capture does."""
CACHED_BYTES = 256 << 20
"""A capture with more contents than this is made anew each time."""
_CAPTURE_FAILED = 125
"""Exit status by which the stand-in runtime says that it could not go on."""


def capture(
    toolchain: Toolchain,
    source: Path,
    module: Module,
    answers: DeviceAnswers,
    arguments: Sequence[str] = (),
    flags: Sequence[str] = (),
    timeout: float = 60.0,
    *,
    link: Sequence[Path] = (),
    launch: int | None = None,
) -> Capture:
    """Runs the program of `source` with `arguments` and notes what it launches.

    `source` is a CUDA source with a main(), together with the sources `link`; or a program that
    is already built and linked with the shared runtime. `module` is the PTX of all of it, as
    `read_ptx` gives it; `flags` are nvcc's. The program runs in the current folder for at most
    `timeout` seconds against a stand-in runtime that answers for the device and executes no
    kernel, so its own check may fail or never hold: what it launched until then counts. Contents
    are kept of each kernel's first launch and, in place of its kernel's first, of the launch with
    index `launch`. Cached by content. Raises UserError when the program does not build, crashes
    before a launch, launches nothing in time, not that often or only what fails.
    """
    require_source(source)
    if source.suffix == ".ptx":
        raise UserError(f"{source.name} is PTX and has no main() to run", hint=OTHER_WAYS)
    source = source.resolve()
    linked = [file.resolve() for file in link]
    if not module.entries():
        raise UserError(
            f"{source.name} has no kernel", hint="name a file with a __global__ function"
        )
    asked = [repr(answers), repr(launch), repr(timeout), str(Path.cwd())]
    surroundings = [FORMAT, module.text, *asked, *map(str, linked)]
    base = dependencies.base_key(
        toolchain, source, flags, *surroundings, *map(str, runtime_text()), *arguments
    )
    known = dependencies.recall("capture", base)
    if known is not None:
        return _restored(known)
    job = _Job(
        toolchain,
        (source, *linked),
        module,
        answers,
        tuple(arguments),
        tuple(flags),
        timeout,
        launch,
    )
    with tempfile.TemporaryDirectory(prefix="gpuwatch-") as name:
        folder = Path(name)
        files, done = job.run(folder)
        found = exchange.read_capture(folder, module.entries(), launch, done)
    _require_launch(found, done, source.name, timeout, launch)
    if sum(b.nbytes for one in found.launches for b in one.buffers) <= CACHED_BYTES:
        inputs = [Path(argument).absolute() for argument in arguments if Path(argument).is_file()]
        dependencies.record("capture", base, [*files, *inputs], pickle.dumps(found, protocol=5))
    return found


def _restored(content: bytes) -> Capture:
    captured = pickle.loads(content)
    if not isinstance(captured, Capture):
        raise TypeError("the cached capture is of another kind")
    return captured


@dataclass(frozen=True, slots=True)
class _Job:
    """What is to be run; `keep` is the launch whose contents are wanted."""

    toolchain: Toolchain
    sources: tuple[Path, ...]
    module: Module
    answers: DeviceAnswers
    arguments: tuple[str, ...]
    flags: tuple[str, ...]
    timeout: float
    keep: int | None

    def run(self, folder: Path) -> tuple[list[Path], Finished]:
        """Builds and runs in `folder`; the local files that went in, and how it ended."""
        number = f"{self.answers.compute_major}{self.answers.compute_minor}"
        library = place_runtime(self.toolchain, folder)
        environment = {"GPUWATCH_CAPTURE_DIR": str(folder), "LD_LIBRARY_PATH": _search_path(folder)}
        main = self.sources[0]
        if binary.is_program(main):
            binary.require_shared_runtime(main, library.name)
            program, files = main, [main]
            environment["LD_PRELOAD"] = str(library)
        else:
            program, files = build_program(self.toolchain, self.sources, self.flags, number, folder)
        self._write_request(folder, f"sm_{number}")
        done = run([program, *self.arguments], timeout=self.timeout, environment=environment)
        return files, done

    def _write_request(self, folder: Path, arch: str) -> None:
        kernels = self.module.entries()
        names = [kernel.name for kernel in kernels]
        assembled = assemble_all(self.toolchain, self.module.text, arch, names)
        pairs = list(zip(kernels, assembled, strict=True))
        content = exchange.request(self.answers, self.module, pairs, self.keep)
        (folder / "request").write_text(content)


def _search_path(folder: Path) -> str:
    former = os.environ.get("LD_LIBRARY_PATH")
    return f"{folder}:{former}" if former else str(folder)


def _require_launch(
    found: Capture, done: Finished, name: str, timeout: float, wanted: int | None
) -> None:
    """Raises UserError unless there is a launch to watch."""
    if done.timed_out and not found.launches:
        raise UserError(
            f"{name} ran longer than {timeout:g} s",
            detail=done.output,
            hint="give it smaller sizes after --, or a longer time limit with --timeout",
            status=1,
        )
    if done.status == _CAPTURE_FAILED and "capture: " in done.output:
        raise UserError(f"{name} could not be captured", detail=done.output, status=1)
    if wanted is not None:
        _require_wanted(found, done, name, wanted)
    if not found.launches:
        raise _no_launch(found, done, name)


def _require_wanted(found: Capture, done: Finished, name: str, wanted: int) -> None:
    if any(launch.index == wanted for launch in found.launches):
        return
    failed = next((one for one in found.listed if one.index == wanted and one.error), None)
    if failed is not None:
        raise UserError(
            _failure(failed), detail=_explained(done.output), hint="choose another --launch"
        )
    raise UserError(
        f"{name} made no launch {wanted}: it made {found.total}",
        detail=_explained(done.output),
        hint="launches count from 0; `gpuwatch kernels` lists them",
    )


def _explained(output: str) -> str:
    """What the program printed, and what to make of it."""
    said = "the program ran without a GPU, so its own checks fail; it printed:"
    return f"{said}\n{output}" if output.strip() else ""


def _no_launch(found: Capture, done: Finished, name: str) -> UserError:
    failed = next((one for one in found.listed if one.error), None)
    if failed is not None:
        return UserError(
            _failure(failed),
            detail=done.output,
            hint="mend the launch, or choose a device that can do it with -d",
        )
    if found.refused_calls:
        return UserError(
            f"{name} uses what a capture does not support: {', '.join(found.refused_calls)}",
            detail=done.output,
            hint=OTHER_WAYS,
        )
    if done.status < 0:
        return UserError(
            f"{name} was ended by {signal.Signals(-done.status).name} before it launched a kernel",
            detail=done.output,
            hint=OTHER_WAYS,
            status=1,
        )
    return UserError(
        f"{name} launched no kernel (exit status {done.status})",
        detail=done.output,
        hint="give it, after --, the arguments that make it launch",
    )


def _failure(record: LaunchRecord) -> str:
    kernel = demangle([record.kernel])[record.kernel].partition("(")[0]
    return f"launch {record.index} of kernel {kernel} failed: {record.error}"
