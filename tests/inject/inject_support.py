"""Programs over the stand-in driver, alone, before a listener of ours, and in a session."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpuwatch.engine.frame import LogEntry
from gpuwatch.engine.program_kernels import ProgramKernel
from gpuwatch.engine.program_process import key_of
from gpuwatch.engine.program_session import ProgramOptions, ProgramSession, Records
from gpuwatch.inject.protocol import INJECTION, RUN
from gpuwatch.inject.server import Link, Server, Wishes

HERE = Path(__file__).parent
PATIENCE = 60.0
"""Seconds after which what has not come does not come."""
PLAIN_NS, PROBED_NS = 5000, 6000
"""What the stand-in says that every launch takes."""
RECORD = np.dtype([("start", "u8"), ("elapsed", "u4"), ("sm", "u4")])


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended: what it printed, and its status, negative for a signal."""

    output: str
    status: int


@dataclass(frozen=True, slots=True)
class Fake:
    """The folder of the stand-in, the program and its images; and the injected library."""

    folder: Path
    library: Path

    def image(self, kind: str) -> Path:
        return self.folder / f"kernels.{kind}"

    def command(self, mode: str, count: int, loader: str = "data", image: str = "ptx") -> list[str]:
        program = self.folder / "program"
        return [str(program), mode, loader, str(self.image(image)), str(count)]

    def environment(self, *more: str) -> dict[str, str]:
        return {"LD_LIBRARY_PATH": str(self.folder), **dict(one.split("=", 1) for one in more)}

    def alone(self, command: Sequence[str], *more: str) -> Ended:
        """Runs a program that nothing watches; `more` is for its environment."""
        environment = {**os.environ, **self.environment(*more)}
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        return Ended(done.stdout, done.returncode)


def wait_for(condition: Callable[[], object], turn: Callable[[], object]) -> None:
    """Takes turns until something is so."""
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "it did not come"
        turn()


def children_of(pid: int) -> list[int]:
    """The programs of these tests that a process has started."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    names = {int(one): Path(f"/proc/{one}/comm").read_text().strip() for one in text.split()}
    return [one for one, name in names.items() if name == "program"]


class Listener:
    """Listens to programs without weaving: `lines` has what each process told, by its number."""

    def __init__(self, fake: Fake, wishes: Wishes | None = None) -> None:
        self.fake = fake
        self.server = Server(wishes or Wishes(), self._heard)
        self.lines: dict[int, list[tuple[str, ...]]] = {}
        self.answers: dict[str, Callable[[Link, list[str]], None]] = {}
        self.child: subprocess.Popen[str] | None = None

    def _heard(self, link: Link, verb: str, words: list[str]) -> None:
        self.lines.setdefault(link.pid, []).append((verb, *words))
        if verb in self.answers:
            self.answers[verb](link, words)

    def start(self, command: Sequence[str], *more: str) -> None:
        own = {INJECTION: str(self.fake.library), RUN: str(self.server.folder)}
        self.child = subprocess.Popen(
            command, env={**os.environ, **own, **self.fake.environment(*more)},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def turn(self) -> None:
        self.server.poll(0.02)

    def until(self, condition: Callable[[], object]) -> None:
        wait_for(condition, self.turn)

    def run(self, command: Sequence[str], *more: str) -> Ended:
        """Runs a program to its end."""
        self.start(command, *more)
        return self.end()

    def end(self) -> Ended:
        child = self.child
        assert child is not None
        self.until(lambda: child.poll() is not None and all(one.gone for one in self.server.links))
        output, _ = child.communicate(timeout=PATIENCE)
        return Ended(output, child.returncode)

    def told(self, verb: str, link: int = 0) -> list[tuple[str, ...]]:
        """The words behind a verb, of the process that joined first or a later one."""
        if link >= len(self.server.links):
            return []
        lines = self.lines.get(self.server.links[link].pid, [])
        return [words[1:] for words in lines if words[0] == verb]

    def rows(self, link: int = 0) -> NDArray[np.void]:
        table = self.server.links[link].table
        assert table is not None
        return table.rows()

    def close(self) -> None:
        self.server.close()
        self.server.remove()
        if self.child is not None and self.child.poll() is None:
            self.child.kill()
            self.child.communicate()


@dataclass(frozen=True, slots=True)
class Seen:
    """The records of one launch. The stand-in writes into them how many launches of the kernel
    there were before."""

    name: str
    pid: int
    number: int
    seconds: float
    build: int
    blocks: int
    table: NDArray[np.void]

    @property
    def launch(self) -> int:
        """Which launch left them; -1 unless every record is whole and of this one."""
        launches = set((self.table["elapsed"].astype(np.int64) - 100).tolist())
        launch = launches.pop() if len(launches) == 1 else -1
        expected = 1000 * (launch + 1) + np.arange(len(self.table))
        return launch if (self.table["start"] == expected).all() else -1


@dataclass(slots=True)
class Watched:
    """What a session has seen of a program."""

    session: ProgramSession
    output: Path
    seen: list[Seen] = field(default_factory=list)
    log: list[LogEntry] = field(default_factory=list)
    kernels: list[ProgramKernel] = field(default_factory=list)
    ended: Ended = Ended("", 0)

    def took(self, records: Records) -> None:
        attachment, build = records.attachment, records.build
        layout = build.layout
        table = records.slot.read_map(layout.places[0].records).view(RECORD).copy()
        name = attachment.kernel.name
        pid = attachment.process.pid
        one = Seen(name, pid, records.number, records.seconds, id(build), layout.blocks, table)
        self.seen.append(one)

    @property
    def launches(self) -> list[int]:
        """Of whom there are records, in the order of their numbers."""
        return sorted(one.number for one in self.seen)

    @property
    def errors(self) -> str:
        return "\n".join(one.text for one in self.log if one.who == "error")

    def turn(self) -> None:
        self.session.poll(0.02)

    def until(self, condition: Callable[[], object]) -> None:
        wait_for(condition, self.turn)

    def end(self) -> None:
        """Listens until the program and all its processes have ended."""
        self.until(lambda: self.session.idle)
        self.kernels = [one for all_ in self.session.processes.values() for one in all_.listed()]
        self.ended = Ended(self.output.read_text(), self.session.wait())

    def kernel(self, name: str) -> ProgramKernel:
        (found,) = [one for one in self.kernels if one.mangled == name]
        return found

    def close(self) -> None:
        self.session.close()
        if self.session.poll_status() is None and self.session.pid:
            os.kill(self.session.pid, 9)
            self.session.wait()
        self.session.remove()


def watch(
    fake: Fake, output: Path, command: Sequence[str], environment: Sequence[str] = (),
    **options: object,
) -> Watched:  # fmt: skip
    """Starts a program in a session; unless `options` say otherwise every launch is probed."""
    words: Mapping[str, str] = fake.environment(*environment)
    whole = ("env", *(f"{name}={value}" for name, value in words.items()), *command)
    given = {"hold": True, "wait": True, "pace": 0.0, "plain_every": 0} | options
    made: list[Watched] = []
    session = ProgramSession(
        ProgramOptions(command=whole, output=output, **given),  # type: ignore[arg-type]
        lambda records: made[0].took(records),
        lambda entry: made[0].log.append(entry),
    )
    made.append(Watched(session, output))
    session.start()
    return made[0]


def main(folder: str, library: str, output: str, kernel: str, *command: str) -> None:
    """Watches a program to its end. Prints the folder of the run, "seen" when there are records,
    and at the end how the program ended and what went wrong."""
    watched = watch(Fake(Path(folder), Path(library)), Path(output), command, kernel=kernel)
    print(watched.session.folder, flush=True)
    watched.until(lambda: watched.seen or watched.session.idle)
    print("seen" if watched.seen else "not seen", flush=True)
    watched.end()
    watched.close()
    print(watched.ended.status, watched.errors)


Start = Callable[..., Watched]


def whole(seen: list[Seen]) -> bool:
    """Whether there is a record of every warp, and each is of the launch that it says."""
    return all(one.launch == one.number for one in seen)


def beside(fake: Fake, output: Path, kernel: str, *command: str) -> list[str]:
    """A session in a process of its own."""
    script = HERE / "inject_support.py"
    given = (script, fake.folder, fake.library, output, kernel)
    return [sys.executable, *map(str, given), *command]


def stop_file(tmp_path: Path) -> tuple[Path, str]:
    path = tmp_path / "stop"
    return path, f"PROGRAM_STOP={path}"


def key_for(watched: Watched, name: str) -> str:
    """The key of a kernel, once it is known."""

    def found() -> list[str]:
        return [
            key_of(process, kernel)
            for process in watched.session.processes.values()
            for kernel in process.kernels.values()
            if kernel.mangled == name
        ]

    watched.until(found)
    return found()[0]


if __name__ == "__main__":
    main(*sys.argv[1:])
