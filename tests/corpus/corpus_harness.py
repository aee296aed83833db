"""The corpus: its programs and probes, and what becomes of a kernel with a probe woven in."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gpuwatch.device import open_device
from gpuwatch.device.base import Device
from gpuwatch.engine.options import Options
from gpuwatch.engine.program import WatchedProgram
from gpuwatch.engine.session import Session
from gpuwatch.errors import UserError
from gpuwatch.instrument import weave
from gpuwatch.probe import load
from gpuwatch.probe.catalogue import presets
from gpuwatch.toolchain import assemble

HOME = Path(__file__).parent
DEVICE = "sim:h200"
"""Capability 9.0, as the GPU that the recorded answers come from."""
LAUNCH_SECONDS = 5.0

STAGES = ("absent", "broken", "refused", "woven", "assembled", "ran", "identical")
"""How far a pair came: "absent" what the probe stands at, "broken" by an error that is no message
to the user, "refused" by the weaver, "ran" with other outputs than the plain kernel."""

BUGS = (LookupError, TypeError, ValueError, AttributeError, AssertionError, RuntimeError)
"""What a user must never see."""


Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Pair:
    """A kernel with a probe: the last stage reached, why not further, and its record counts."""

    kernel: str
    probe: str
    stage: str
    reason: str = ""
    records: int = 0
    missing: int = 0
    dropped: int = 0

    @property
    def good(self) -> bool:
        """Ran with identical outputs, no record missing and none dropped."""
        return self.stage == "identical" and self.missing == self.dropped == 0


def programs() -> list[str]:
    """Names of the programs, without suffix."""
    return sorted(path.stem for path in HOME.glob("*.cu"))


def probes() -> list[str]:
    """Every preset of the catalogue, then the paths of the corpus's own probes."""
    own = sorted(path for path in (HOME / "probes").iterdir() if path.suffix in (".py", ".toml"))
    return [name for _, name, _ in presets()] + [str(path) for path in own]


def short(probe: str) -> str:
    """The name of a preset or probe file."""
    return Path(probe).stem


def title(program: str) -> str:
    """The comment that a program starts with."""
    return (HOME / f"{program}.cu").read_text().splitlines()[0].removeprefix("// ")


@contextmanager
def opened(program: str, device: str = DEVICE) -> Iterator[Session]:
    """A session on a program of the corpus. Raises UserError when it does not compile or run."""
    source = str(HOME / f"{program}.cu")
    session = Session(Options(source, device=device, timeout=LAUNCH_SECONDS))
    try:
        yield session
    finally:
        session.close()


@contextmanager
def watched(program: str, device: str = DEVICE) -> Iterator[tuple[WatchedProgram, Device]]:
    """A program of the corpus and the device that it is compiled for. Raises as `opened`."""
    target, _ = open_device(device, LAUNCH_SECONDS)
    try:
        options = Options(str(HOME / f"{program}.cu"), device=device, timeout=LAUNCH_SECONDS)
        yield WatchedProgram(options, target, lambda _step: None), target
    finally:
        target.close()


def kernels(program: WatchedProgram) -> dict[str, str]:
    """Mangled name of each kernel, by a readable one without parameters; several with one name
    are numbered."""
    found: dict[str, str] = {}
    for entry in program.module.entries():
        full = program.demangled(entry.name)
        name = full.removeprefix("void ").partition("(")[0].strip()
        same = sum(1 for known in found if known.partition("#")[0] == name)
        found[f"{name}#{same + 1}" if same else name] = entry.name
    return found


def attempt(session: Session, kernel: str, mangled: str, probe: str) -> Pair:
    """Weaves, assembles, runs and compares one pair."""
    try:
        session.select(kernel=mangled, probe=probe)
        frame = session.frame()
    except UserError as problem:
        stage = _stage_before(session, mangled, probe)
        return Pair(kernel, short(probe), stage, problem.message)
    except BUGS as bug:
        return Pair(kernel, short(probe), "broken", f"{type(bug).__name__}: {bug}")
    stage = "identical" if frame.outputs_identical else "ran"
    return Pair(kernel, short(probe), stage, "", frame.records, frame.missing, frame.dropped)


def each_in_its_own_process(
    work: Callable[[str, str], Result], names: Sequence[str], device: str, jobs: int
) -> Iterator[tuple[str, Result | str]]:
    """`work(program, device)` of each program, in order, `jobs` at a time; or why it has none. A
    crash or a fault of the device costs one program only."""

    def alone(program: str) -> Result | str:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            try:
                return pool.submit(work, program, device).result()
            except UserError as problem:
                return problem.message
            except BrokenProcessPool:
                return "the process crashed"
            except BUGS as bug:
                return f"{type(bug).__name__}: {bug}"

    with ThreadPoolExecutor(jobs) as threads:
        yield from zip(names, threads.map(alone, names), strict=True)


def _stage_before(session: Session, mangled: str, probe: str) -> str:
    """The last stage that a pair passes which did not run."""
    program = session.program
    try:
        woven = weave(program.module, mangled, load(probe))
    except UserError as problem:
        return "absent" if "matches nothing" in problem.message else "refused"
    try:
        assemble(program.toolchain, woven.text, program.arch, mangled)
    except UserError:
        return "woven"
    return "assembled"
